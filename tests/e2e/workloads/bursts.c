/* SPDX-License-Identifier: MIT */
/*
 * bursts.c - E2E_THREADS threads that allocate and free in bursts, some tens of thousands of pairs a
 * second each: little for a processor, and far over a budget of probes. For every line on stdin
 * "COST <ns>", the best cost of a malloc and free; for the line "end" it ends.
 */
#include <time.h>

#include "ledger.h"

#define BURST_PAIRS 400
#define PAUSE_NS 8000000

static double now_ns_d(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void burst(unsigned pairs)
{
	while (pairs--) {
		void *p = malloc(64);

		__asm__ volatile("" : "+r"(p) : : "memory");
		free(p);
	}
}

static void *work(void *arg)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };

	(void)arg;
	for (;;) {
		burst(BURST_PAIRS);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static double best_cost(void)
{
	double best = 1e9, begin, ns;

	for (int i = 0; i < 200; i++) {
		begin = now_ns_d();
		burst(100);
		ns = (now_ns_d() - begin) / 100;
		best = ns < best ? ns : best;
	}
	return best;
}

int main(void)
{
	const char *text = getenv("E2E_THREADS");
	int cnt = text ? atoi(text) : 1;
	pthread_t thread;
	char line[64];

	for (int i = 0; i < cnt; i++)
		if (pthread_create(&thread, NULL, work, NULL))
			return 1;
	puts("READY");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin) && line[0] != 'e') {
		printf("COST %.1f\n", best_cost());
		fflush(stdout);
	}
	_exit(0);
}
