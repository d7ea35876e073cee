/* SPDX-License-Identifier: MIT */
/*
 * tap_own - a program with an allocator in its own file, as embedded and numeric programs have. The compiler knows which
 * registers those functions use, and keeps values in the others across a call (-fipa-ra).
 *
 *	tap_own [bare]
 *
 * bare: when told to "do" it, a thread begins that has no thread pointer (fs base 0), and allocates.
 */
#include "tap_target.h"

#include <sched.h>
#include <sys/mman.h>

#define ARENA_BYTES (1 << 24)
#define BARE_STACK_BYTES (1 << 16)

static char arena[ARENA_BYTES] __attribute__((aligned(64)));
static size_t arena_at;
static volatile uint64_t in[12] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
static void *volatile last;
static volatile uint64_t first, round_cnt, bare_cnt;
static char bare_stack[BARE_STACK_BYTES] __attribute__((aligned(64)));

/* Not for several threads at once, but then nobody here looks at what is in a block. What is allocated first stays. */
__attribute__((noinline)) void *malloc(size_t bytes)
{
	size_t old = arena_at;

	bytes = (bytes + 15) & ~15UL;
	if (old + bytes > sizeof(arena))
		old = sizeof(arena) / 2;
	arena_at = old + bytes;
	return arena + old;
}

__attribute__((noinline)) void free(void *block)
{
	if (block == arena)
		arena_at = 0;
}

__attribute__((noinline)) void *calloc(size_t cnt, size_t bytes)
{
	return memset(malloc(cnt * bytes), 0, cnt * bytes);
}

__attribute__((noinline)) void *realloc(void *old, size_t bytes)
{
	return old ? memmove(malloc(bytes), old, bytes) : malloc(bytes);
}

/* Eleven values that live across the calls. */
__attribute__((noinline)) static uint64_t work(void)
{
	uint64_t a = in[0], b = in[1], c = in[2], d = in[3], e = in[4], f = in[5], g = in[6],
		 h = in[7];
	uint64_t i = in[8], j = in[9], k = in[10];

	for (int n = 0; n < 100; n++) {
		void *p = malloc(100);

		last = p;
		a += b;
		b += c;
		c += d;
		d += e;
		e += f;
		f += g;
		g += h;
		h += i;
		i += j;
		j += k;
		k += a;
		free(p);
	}
	return a + b + c + d + e + f + g + h + i + j + k;
}

static void *work_always(void *arg)
{
	for (;; round_cnt++) {
		if (work() != first)
			bad("a wrong result");
		if (round_cnt % 50 == 0)
			nap_us(1000);
	}
	return arg;
}

/* It does not call the C library, which needs a thread pointer. */
__attribute__((used, visibility("hidden"))) void run_bare(void);
void run_bare(void)
{
	for (;; bare_cnt++) {
		if (work() != first)
			__builtin_trap();
		for (volatile int i = 0; i < 100000; i++)
			;
	}
}

/* The call itself, since the thread begins on an empty stack, with 0 as its thread pointer. */
long clone_bare(long flags, void *stack);
__asm__(".text\n"
	"clone_bare: mov $56, %eax\n"
	"xor %edx, %edx\n"
	"xor %r10d, %r10d\n"
	"xor %r8d, %r8d\n"
	"syscall\n"
	"test %eax, %eax\n"
	"jnz 1f\n"
	"call run_bare\n"
	"1: ret\n");

static void begin_bare(void)
{
	uint64_t before;

	if (clone_bare(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
			       CLONE_SYSVSEM | CLONE_SETTLS,
		       bare_stack + BARE_STACK_BYTES - 64) < 0)
		bad("clone");
	before = bare_cnt;
	nap_us(200000);
	if (bare_cnt == before)
		bad("a thread without a thread pointer does not get on");
}

int main(int argc, char **argv)
{
	first = work();
	begin(work_always, NULL);
	be_ready();
	obey(argc > 1 && !strcmp(argv[1], "bare") ? begin_bare : NULL);
}
