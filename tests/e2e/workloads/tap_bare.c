/* SPDX-License-Identifier: MIT */
/*
 * tap_bare - a program without a C library: an allocator of its own, no thread pointer (fs base 0). Says READY; ends
 * with its input, with exit status 7. To be built with -static -nostdlib.
 */
typedef unsigned long size_t;

#define ARENA_BYTES (1 << 20)
#define SYS_READ 0
#define SYS_WRITE 1
#define SYS_POLL 7
#define SYS_PRCTL 157
#define SYS_EXIT_GROUP 231

static char arena[ARENA_BYTES];
static size_t arena_at;
static long call_cnt;

void *memset(void *at, int byte, size_t bytes);
void *malloc(size_t bytes);
void free(void *block);
void *calloc(size_t cnt, size_t bytes);
void *realloc(void *old, size_t bytes);
void _start(void);

static long call(long nr, long a, long b, long c)
{
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(nr), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return ret;
}

void *memset(void *at, int byte, size_t bytes)
{
	char *to = at;

	while (bytes--)
		*to++ = (char)byte;
	return at;
}

__attribute__((noinline)) void *malloc(size_t bytes)
{
	void *block;

	if (bytes > 100000)
		return 0;
	bytes = (bytes + 15) & ~15UL;
	if (arena_at + bytes > sizeof(arena))
		arena_at = 0;
	block = arena + arena_at;
	arena_at += bytes;
	call_cnt++;
	__asm__ volatile("" ::: "memory");
	return block;
}

__attribute__((noinline)) void free(void *block)
{
	if (!block)
		return;
	call_cnt--;
	__asm__ volatile("" : : "r"(block) : "memory");
}

__attribute__((noinline)) void *calloc(size_t cnt, size_t bytes)
{
	void *block = malloc(cnt * bytes);

	return block ? memset(block, 0, cnt * bytes) : block;
}

__attribute__((noinline)) void *realloc(void *old, size_t bytes)
{
	free(old);
	return malloc(bytes);
}

__attribute__((force_align_arg_pointer)) void _start(void)
{
	struct {
		int fd;
		short events, revents;
	} in = { 0, 1, 0 };
	char byte;

	call(SYS_PRCTL, 1, 9, 0); /* killed with who started it */
	call(SYS_WRITE, 1, (long)"READY\n", 6);
	for (;;) {
		void *block;

		for (int i = 0; i < 1000; i++)
			free(malloc(100 + (size_t)i % 50));
		block = realloc(calloc(3, 5), 100);
		free(block);
		if (call_cnt)
			call(SYS_EXIT_GROUP, 3, 0, 0);
		if (call(SYS_POLL, (long)&in, 1, 1) > 0 && call(SYS_READ, 0, (long)&byte, 1) == 0)
			call(SYS_EXIT_GROUP, 7, 0, 0);
	}
}
