/* SPDX-License-Identifier: MIT */
/*
 * busy - does nothing but allocate: a target for the overhead budget.
 *
 *	busy THREADS [PAIRS_PER_SECOND [WORK]]
 *
 * Each thread allocates and frees blocks of 100 bytes as fast as it can, or that many pairs a second,
 * and counts to WORK beside each pair. A line of input is another number of pairs a second.
 * Says READY, and then ten times a second how far it has come: "AT <ns> <CPU time in ns> <pairs>". Ends
 * with its input.
 */
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define THREADS_CAP 64
#define BLOCK_BYTES 100
#define BATCH 64

static struct {
	uint64_t pairs; /* written by its thread alone */
	char pad[56];
} progress[THREADS_CAP];

static volatile double pairs_per_second;
static long work_cnt;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static __attribute__((noinline)) void *busy_site(size_t bytes)
{
	void *p = malloc(bytes);

	__asm__ volatile("" : : "r"(p) : "memory");
	return p;
}

static void do_pair(void)
{
	free(busy_site(BLOCK_BYTES));
	for (long i = 0; i < work_cnt; i++)
		__asm__ volatile("" : "+r"(i));
}

static void *work(void *arg)
{
	uint64_t *pairs = arg, begin_ns = 0, begin_pairs = 0;
	double rate = 0;

	for (;;) {
		for (int i = 0; i < BATCH; i++)
			do_pair();
		__atomic_fetch_add(pairs, BATCH, __ATOMIC_RELAXED);
		if (rate != pairs_per_second) {
			rate = pairs_per_second;
			begin_ns = clock_ns(CLOCK_MONOTONIC);
			begin_pairs = *pairs;
		}
		if (rate > 0) {
			uint64_t due_ns =
				begin_ns + (uint64_t)((*pairs - begin_pairs) / rate * 1e9);
			uint64_t at_ns = clock_ns(CLOCK_MONOTONIC);

			if (due_ns > at_ns + 1000000)
				usleep((useconds_t)((due_ns - at_ns) / 1000));
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };
	int thread_cnt = argc > 1 ? atoi(argv[1]) : 1;
	char line[32];
	pthread_t thread;
	ssize_t n;

	if (argc > 2)
		pairs_per_second = atof(argv[2]);
	if (argc > 3)
		work_cnt = atol(argv[3]);
	if (thread_cnt < 1 || thread_cnt > THREADS_CAP)
		return 2;
	for (int i = 0; i < thread_cnt; i++)
		if (pthread_create(&thread, NULL, work, &progress[i].pairs))
			return 1;
	printf("READY\n");
	fflush(stdout);
	for (;;) {
		uint64_t sum = 0;

		if (poll(&in, 1, 100) > 0) {
			n = read(0, line, sizeof(line) - 1);
			if (n <= 0)
				break;
			line[n] = '\0';
			pairs_per_second = atof(line);
			continue;
		}
		for (int i = 0; i < thread_cnt; i++)
			sum += __atomic_load_n(&progress[i].pairs, __ATOMIC_RELAXED);
		printf("AT %llu %llu %llu\n", (unsigned long long)clock_ns(CLOCK_MONOTONIC),
		       (unsigned long long)clock_ns(CLOCK_PROCESS_CPUTIME_ID),
		       (unsigned long long)sum);
		fflush(stdout);
	}
	return 0;
}
