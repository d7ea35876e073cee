/* SPDX-License-Identifier: MIT */
/*
 * map_times.c - a heap and many mappings; a thread that maps and unmaps a page every 20 us, and measures how long that takes.
 *
 * "begin" and "end": the 99th percentile and the longest of the time between, in ns.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define BLOCK_CNT 4000000
#define MAPPING_CNT 3000
#define CAP 10000000

static atomic_uint cnt;
static unsigned int *times; /* ns */

static long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void *measure(void *arg)
{
	while (cnt < CAP) {
		long begin = now(), took;
		void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0);

		munmap(p, 4096);
		took = now() - begin;
		times[cnt] = took < 0xffffffffL ? (unsigned int)took : 0xffffffff;
		cnt++;
		while (now() - begin < 20000)
			;
	}
	return arg;
}

static int compare(const void *a, const void *b)
{
	const unsigned int *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int main(void)
{
	char line[64];
	unsigned int begin = 0, n;
	pthread_t thread;

	times = calloc(CAP, sizeof(*times));
	for (int i = 0; i < BLOCK_CNT; i++)
		*(volatile char *)malloc(56) = 1;
	for (int i = 0; i < MAPPING_CNT; i++) {
		/* every other one may be written, so they are not merged */
		char *p = mmap(NULL, 4096, PROT_READ | (i % 2 ? PROT_WRITE : 0),
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (i % 2)
			*p = 1;
	}
	pthread_create(&thread, NULL, measure, NULL);
	printf("READY\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (!strncmp(line, "begin", 5))
			begin = cnt;
		n = cnt - begin;
		if (!strncmp(line, "end", 3) && n) {
			qsort(times + begin, n, sizeof(*times), compare);
			printf("DONE %u %u %u\n", times[begin + n - n / 100 - 1],
			       times[begin + n - 1], n);
		} else
			printf("DONE\n");
		fflush(stdout);
	}
	return 0;
}
