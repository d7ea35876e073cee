/* SPDX-License-Identifier: MIT */
/*
 * jemalloc_heaps.c - heaps of jemalloc of which all is known: jemalloc_heaps HOW FILE. It prints READY, then answers
 * each line but "end" by writing mallctl()'s counts into FILE, "NAME NUMBER" a line. HOW is one of the plants below.
 * What it does for an answer allocates nothing.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "plants.h"

/* of jemalloc; not in its header if that is not installed, or has a prefix */
int mallctl(const char *name, void *old, size_t *old_bytes, void *new, size_t new_bytes);

#define BLOCK_CNT 400000
#define LARGE_CNT 40
#define THREAD_CNT 6
#define ALL_ARENAS "4096" /* MALLCTL_ARENAS_ALL */

static void *blocks[BLOCK_CNT];
static pthread_barrier_t barrier;

static uint32_t random_now(void)
{
	static __thread uint32_t state = 12345;

	state = state * 1664525 + 1013904223;
	return state >> 8;
}

/* Blocks of 1 to 2000 bytes, all held; and a few larger ones. */
PLANT(live)
{
	for (size_t i = 0; i < BLOCK_CNT / 8; i++)
		blocks[i] = filled(1 + i % 2000);
	for (size_t i = 0; i < LARGE_CNT; i++)
		filled((16 << 10) + i * 50000);
}

/* 400,000 blocks of 48 and 64 bytes, of which a random tenth stays. */
PLANT(pinned)
{
	for (size_t i = 0; i < BLOCK_CNT; i++)
		blocks[i] = filled(i % 2 ? 48 : 64);
	for (size_t i = 0; i < BLOCK_CNT; i++)
		if (random_now() % 10)
			free(blocks[i]);
}

/* 40 MiB are freed, and nothing is returned unless it decays. */
PLANT(dirty)
{
	for (size_t i = 0; i < LARGE_CNT; i++)
		blocks[i] = filled((1 << 20) + i * 4096);
	for (size_t i = 0; i < LARGE_CNT; i++)
		free(blocks[i]);
}

/* The same, and it decays: with each thousandth call that no cache answers, after a time. */
PLANT(muzzy)
{
	plant_dirty();
	for (int i = 0; i < 50; i++) {
		usleep(1000);
		for (int k = 0; k < 1000; k++)
			free(filled(40 << 10));
	}
}

static void *work(void *arg)
{
	const size_t per = BLOCK_CNT / 40, at = (uintptr_t)arg * per;

	for (size_t i = 0; i < per; i++)
		blocks[at + i] = filled(8 + random_now() % 3000);
	for (size_t i = 0; i < per; i++)
		if (i % 4)
			free(blocks[at + i]);
	pthread_barrier_wait(&barrier);
	pause();
	return NULL;
}

/* Threads with an arena and a cache each; of their blocks three quarters are freed. */
PLANT(arenas)
{
	pthread_barrier_init(&barrier, NULL, THREAD_CNT + 1);
	begin_threads(0, THREAD_CNT, work);
	pthread_barrier_wait(&barrier);
}

static void *churn(void *arg)
{
	static __thread void *own[512];

	for (uint32_t i = (uint32_t)(uintptr_t)arg;; i++) {
		uint32_t at = random_now() % 512;

		free(own[at]);
		own[at] = malloc(16 + (i + at) % 3000);
		if (i % 16 == 0)
			usleep(200);
	}
	return NULL;
}

/* Blocks are held while two threads allocate and free. */
PLANT(busy)
{
	plant_live();
	begin_threads(1, 2, churn);
}

static void tell_size(int fd, const char *name)
{
	size_t value = 0, bytes = sizeof(value);

	if (!mallctl(name, &value, &bytes, NULL, 0))
		dprintf(fd, "%s %zu\n", name, value);
}

static void tell_bins(int fd)
{
	unsigned int cnt = 0;
	size_t bytes = sizeof(cnt);
	char name[96];

	mallctl("arenas.nbins", &cnt, &bytes, NULL, 0);
	for (unsigned int i = 0; i < cnt; i++) {
		uint32_t nregs = 0;

		snprintf(name, sizeof(name), "arenas.bin.%u.size", i);
		tell_size(fd, name);
		bytes = sizeof(nregs);
		snprintf(name, sizeof(name), "arenas.bin.%u.nregs", i);
		mallctl(name, &nregs, &bytes, NULL, 0);
		dprintf(fd, "%s %u\n", name, nregs);
		snprintf(name, sizeof(name), "stats.arenas." ALL_ARENAS ".bins.%u.curregs", i);
		tell_size(fd, name);
		snprintf(name, sizeof(name), "stats.arenas." ALL_ARENAS ".bins.%u.curslabs", i);
		tell_size(fd, name);
	}
}

static void tell(const char *path)
{
	static const char *const sizes[] = {
		"stats.allocated",
		"stats.active",
		"stats.metadata",
		"stats.resident",
		"stats.retained",
		"stats.arenas." ALL_ARENAS ".base",
		"stats.arenas." ALL_ARENAS ".pactive",
		"stats.arenas." ALL_ARENAS ".pdirty",
		"stats.arenas." ALL_ARENAS ".pmuzzy",
	};
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	uint64_t epoch = 1;
	size_t bytes = sizeof(epoch);

	if (fd < 0)
		exit(1);
	mallctl("epoch", &epoch, &bytes, &epoch, bytes);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		tell_size(fd, sizes[i]);
	tell_bins(fd);
	close(fd);
}

int main(int argc, char **argv)
{
	static char line[512], in[4096], out[4096];

	if (argc != 3)
		return 1;
	setvbuf(stdin, in, _IOFBF, sizeof(in));
	setvbuf(stdout, out, _IOLBF, sizeof(out));
	plant(argv[1]);
	tell(argv[2]); /* what it allocates, it has by now */
	puts("READY");
	while (fgets(line, sizeof(line), stdin) && strncmp(line, "end", 3) != 0) {
		tell(argv[2]);
		puts("DONE");
	}
	return 0;
}
