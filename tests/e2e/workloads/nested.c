/* SPDX-License-Identifier: MIT */
/*
 * nested.c - calls of the allocator that look like a part of another one and are not, or the other way
 * round: one call instruction that leads to several of its functions, and, where a wrapper asks back
 * (wrapper.cc with -DHOOK), what a program may do while it is in the wrapper: a signal's handler that
 * allocates, a jump out of it, another stack. E2E_COUNT times each.
 */
#include "ledger.h"

#include <malloc.h>
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

void wrapper_hook(size_t size);

enum { INTERRUPTED = 10007, LEFT = 10009, SWITCHED = 10037 };

static long cnt = 1000;
static bool has_hook;
static void *volatile sink;
static sigjmp_buf way_out;
static ucontext_t here, there;
static char other_stack[256 << 10];

SITE void site_in_handler(int sig)
{
	(void)sig;
	sink = malloc(1013);
}

SITE void site_on_other_stack(void)
{
	for (;;) {
		sink = malloc(1019);
		swapcontext(&there, &here);
	}
}

/* Of a wrapper, in each call of its malloc. */
void wrapper_hook(size_t size)
{
	has_hook = true;
	if (size == INTERRUPTED)
		raise(SIGUSR1);
	if (size == LEFT)
		siglongjmp(way_out, 1);
	if (size == SWITCHED)
		swapcontext(&here, &there);
}

SITE void site_interrupted(void)
{
	for (long i = 0; i < cnt; i++)
		sink = malloc(INTERRUPTED);
	led_bulk("site_interrupted", INTERRUPTED, cnt, cnt);
	led_bulk("site_in_handler", 1013, cnt, cnt);
}

SITE void site_switched(void)
{
	for (long i = 0; i < cnt; i++)
		sink = malloc(SWITCHED);
	led_bulk("site_switched", SWITCHED, cnt, cnt);
	led_bulk("site_on_other_stack", 1019, cnt, cnt);
}

/* The second malloc has the place on the stack of the one that was left. */
SITE void site_left(void)
{
	volatile size_t size;

	for (volatile long i = 0; i < cnt; i++) {
		size = sigsetjmp(way_out, 0) ? 1031 : LEFT;
		sink = malloc(size);
	}
	led_bulk("site_left", 1031, cnt, cnt);
}

SITE void *own(size_t alignment, size_t size)
{
	void *p = malloc(size - alignment + 64);

	__asm__ volatile("" : "+r"(p));
	return p;
}

SITE void *by_posix(size_t alignment, size_t size)
{
	void *p;

	return posix_memalign(&p, alignment, size) ? NULL : p;
}

static void *(*volatile ways[])(size_t, size_t) = { memalign, own, aligned_alloc, calloc,
						    by_posix };

SITE void site_by_pointer(void)
{
	for (long i = 0; i < 5 * cnt; i++)
		free(sink = ways[i % 5](64, 1024));
	led_bulk("site_by_pointer", 1024, 4 * cnt, 0);
	led_bulk("site_by_pointer", 64 * 1024, cnt, 0);
}

SITE void site_null(void)
{
	for (long i = 0; i < cnt; i++)
		free(sink = realloc(NULL, 1021));
	led_bulk("site_null", 1021, cnt, 0);
}

int main(int argc, char **argv)
{
	const struct sigaction on_signal = { .sa_handler = site_in_handler };

	if (argc > 1)
		cnt = strtol(argv[1], NULL, 10);
	sigaction(SIGUSR1, &on_signal, NULL);
	getcontext(&there);
	there.uc_stack.ss_sp = other_stack;
	there.uc_stack.ss_size = sizeof(other_stack);
	makecontext(&there, site_on_other_stack, 0);
	for (size_t i = 0; i < 5; i++) /* the wrapper has found what it wraps */
		free(ways[i](64, 64));
	free(realloc(NULL, 8));
	free(malloc(1));
	e2e_ready();
	site_by_pointer();
	site_null();
	if (has_hook) {
		site_interrupted();
		site_switched();
		site_left();
	}
	e2e_done();
	return 0;
}
