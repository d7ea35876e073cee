/* SPDX-License-Identifier: MIT */
/*
 * requests - a server that mostly sleeps: a target for the overhead limit.
 *
 *	requests SLEEP_US REQUESTS [WORK [LEAVES_EVERY]]
 *
 * Sleeps so long, then serves so many requests: each allocates 10 blocks of 200 bytes, counts to WORK and
 * frees them. One request in LEAVES_EVERY (100) leaves one block behind. Says READY, and then ten times a
 * second what it holds: "AT <CPU time in ns> <allocated blocks> <held bytes>". Ends with its input.
 */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define BLOCKS 10
#define BLOCK_BYTES 200

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static __attribute__((noinline)) void *request_site(size_t bytes)
{
	void *p = malloc(bytes);

	__asm__ volatile("" : : "r"(p) : "memory");
	return p;
}

static uint64_t leaves_every = 100;
static void *volatile left; /* what is held is in nobody's way */

static void serve(long work_cnt, uint64_t number)
{
	void *block[BLOCKS];

	for (int i = 0; i < BLOCKS; i++)
		block[i] = request_site(BLOCK_BYTES);
	for (long i = 0; i < work_cnt; i++)
		__asm__ volatile("" : "+r"(i));
	left = block[0];
	for (int i = number % leaves_every == 0; i < BLOCKS; i++)
		free(block[i]);
}

int main(int argc, char **argv)
{
	useconds_t sleep_us = argc > 1 ? (useconds_t)atol(argv[1]) : 2000;
	long request_cnt = argc > 2 ? atol(argv[2]) : 40, work_cnt = argc > 3 ? atol(argv[3]) : 0;
	struct pollfd in = { .fd = 0, .events = POLLIN };
	uint64_t number = 0, held = 0, said_ns = 0;

	if (argc > 4)
		leaves_every = (uint64_t)atol(argv[4]);
	setvbuf(stdout, malloc(BUFSIZ), _IOLBF, BUFSIZ);
	printf("READY\n");
	while (poll(&in, 1, 0) == 0) {
		uint64_t now_ns;

		usleep(sleep_us);
		for (long i = 0; i < request_cnt; i++, number++) {
			held += number % leaves_every == 0 ? BLOCK_BYTES : 0;
			serve(work_cnt, number);
		}
		now_ns = clock_ns(CLOCK_MONOTONIC);
		if (now_ns - said_ns < 100000000)
			continue;
		said_ns = now_ns;
		printf("AT %llu %llu %llu\n",
		       (unsigned long long)clock_ns(CLOCK_PROCESS_CPUTIME_ID),
		       (unsigned long long)(number * BLOCKS), (unsigned long long)held);
	}
	return 0;
}
