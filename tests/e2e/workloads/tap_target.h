/* SPDX-License-Identifier: MIT */
/*
 * tap_target.h - what the targets of test_tap_harm.sh and its neighbours share: programs that do something odd, and notice
 * whether it still goes right when they are tapped.
 *
 * A program says "READY <pid>" and obeys lines, each answered by DONE:
 *
 *	go	allocates E2E_BLOCKS (5000) blocks of 1000 bytes within E2E_MS (0), keeps them, and says HELD <bytes>
 *	do	does what it is for
 *	at	says AT <pairs> <us>: how often it has allocated and freed a block, in how much CPU time
 *
 * At the end of its input its exit status is 7. What is wrong is said (BAD), with status 3. It ends with who started
 * it, and after E2E_LIFE_SECONDS (120).
 */
#ifndef E2E_TAP_TARGET_H
#define E2E_TAP_TARGET_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SHARED_HELPER __attribute__((noinline, unused)) static
#define KEPT_CAP (1 << 17)
#define BLOCK_BYTES 1000
#define PAIR_BLOCKS 8

static volatile uint64_t pair_cnt;
static uint64_t held_bytes;
static void *kept[KEPT_CAP];
static unsigned kept_cnt;

/* No buffer: it allocates nothing, and a child that shares the memory may say something too. */
SHARED_HELPER void say(const char *format, ...)
{
	char line[512];
	va_list args;
	ssize_t n;

	va_start(args, format);
	n = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	n = write(1, line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line));
	(void)n;
}

SHARED_HELPER void bad(const char *what)
{
	say("BAD %s: %s\n", what, strerror(errno));
	_exit(3);
}

SHARED_HELPER unsigned number_of(const char *name, unsigned otherwise)
{
	const char *value = getenv(name);

	return value ? (unsigned)strtoul(value, NULL, 10) : otherwise;
}

/* Not nanosleep(): a stop may make the kernel continue that by another system call. Absolute, so that it is not. */
SHARED_HELPER void nap_us(long us)
{
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += us % 1000000 * 1000;
	end.tv_sec += us / 1000000 + end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
		;
}

SHARED_HELPER void *filled(void *block, size_t bytes)
{
	if (!block)
		bad("allocation");
	return memset(block, (int)(bytes * 31 & 0xff), bytes);
}

SHARED_HELPER void check(const unsigned char *block, size_t up_to, size_t bytes)
{
	for (size_t i = 0; i < up_to; i++)
		if (block[i] != (unsigned char)(bytes * 31))
			bad("block");
}

/* Allocates, checks every byte, resizes and frees; nothing is kept. With E2E_ALIGNED posix_memalign() is among the functions. */
SHARED_HELPER void do_pairs(unsigned cnt, uint32_t *random)
{
	unsigned char *block[PAIR_BLOCKS];
	size_t bytes[PAIR_BLOCKS], more;
	static int is_aligned = -1;

	if (is_aligned < 0)
		is_aligned = (int)number_of("E2E_ALIGNED", 0);

	for (unsigned n = 0; n < cnt; n += PAIR_BLOCKS) {
		for (int i = 0; i < PAIR_BLOCKS; i++) {
			*random = *random * 1103515245 + 12345;
			bytes[i] = 16 + (*random >> 16 & 511);
			if (is_aligned && i == 5 &&
			    posix_memalign((void **)&block[i], 64, bytes[i]))
				bad("posix_memalign");
			if (!is_aligned || i != 5)
				block[i] = i % 2 ? malloc(bytes[i]) : calloc(1, bytes[i]);
			filled(block[i], bytes[i]);
		}
		for (int i = 0; i < PAIR_BLOCKS; i++) {
			check(block[i], bytes[i], bytes[i]);
			more = 2 * bytes[i];
			if (i % 4 == 0) {
				block[i] = realloc(block[i], more);
				if (!block[i])
					bad("reallocation");
				check(block[i], bytes[i], bytes[i]);
			}
			free(block[i]);
		}
		__atomic_fetch_add(&pair_cnt, PAIR_BLOCKS, __ATOMIC_RELAXED);
	}
}

static unsigned nap_factor = 1; /* of many threads each naps for longer */

/* A thread that allocates for ever: some percent of a processor, some tens with E2E_BUSY. */
SHARED_HELPER void *allocate(void *arg)
{
	uint32_t random = (uint32_t)(uintptr_t)arg * 7919 + 1;
	unsigned is_busy = number_of("E2E_BUSY", 0);

	for (;;) {
		do_pairs(is_busy ? 2000 : 80, &random);
		nap_us((is_busy ? 4000L : 1000L) * nap_factor);
	}
	return NULL;
}

SHARED_HELPER void begin(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	errno = pthread_create(&thread, NULL, run, arg);
	if (errno)
		bad("pthread_create");
}

SHARED_HELPER void keep(unsigned cnt)
{
	unsigned ms = number_of("E2E_MS", 0);

	for (unsigned i = 0; i < cnt; i++) {
		if (kept_cnt == KEPT_CAP)
			bad("keep: no place");
		kept[kept_cnt++] = filled(malloc(BLOCK_BYTES), BLOCK_BYTES);
		held_bytes += BLOCK_BYTES;
		if (ms && i % 100 == 99)
			nap_us(ms * 1000L / (cnt / 100));
	}
}

SHARED_HELPER void be_ready(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(number_of("E2E_LIFE_SECONDS", 120));
	say("READY %d\n", (int)getpid());
}

/* With NULL, "do" does nothing. Ends the program. */
SHARED_HELPER void obey(void (*act)(void))
{
	struct timespec cpu;
	char line[64];
	size_t n = 0;
	ssize_t got;

	for (;;) {
		got = read(0, &line[n], 1);
		if (got < 0 && errno != EINTR)
			bad("read");
		if (got == 0)
			_exit(7);
		if (got < 0 || (line[n] != '\n' && ++n < sizeof(line) - 1))
			continue;
		line[n] = '\0';
		n = 0;
		if (!strcmp(line, "go")) {
			keep(number_of("E2E_BLOCKS", 5000));
			say("HELD %llu\n", (unsigned long long)held_bytes);
		} else if (!strcmp(line, "do") && act) {
			act();
		} else if (!strcmp(line, "at")) {
			clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
			say("AT %llu %lld\n", (unsigned long long)pair_cnt,
			    (long long)cpu.tv_sec * 1000000 + cpu.tv_nsec / 1000);
		}
		say("DONE\n");
	}
}

#endif
