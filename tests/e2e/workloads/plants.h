/* SPDX-License-Identifier: MIT */
/* plants.h - heaps that are planted: PLANT(how) { ... } is one, and plant(how) plants it. */
#ifndef E2E_PLANTS_H
#define E2E_PLANTS_H

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static struct {
	const char *how;
	void (*plant)(void);
} plants[64];
static size_t plant_cnt;

#define PLANT(name)                                               \
	static void plant_##name(void);                           \
	__attribute__((constructor)) static void add_##name(void) \
	{                                                         \
		plants[plant_cnt].how = #name;                    \
		plants[plant_cnt++].plant = plant_##name;         \
	}                                                         \
	static void plant_##name(void)

static void plant(const char *how)
{
	for (size_t i = 0; i < plant_cnt; i++)
		if (!strcmp(how, plants[i].how))
			plants[i].plant();
}

static void *filled(size_t bytes)
{
	void *p = malloc(bytes);

	if (!p)
		exit(1);
	memset(p, 1, bytes);
	return p;
}

/* So many threads, which are told their number. */
static void begin_threads(uintptr_t first, uintptr_t cnt, void *(*work)(void *number))
{
	pthread_t thread;

	for (uintptr_t i = first; i < first + cnt; i++)
		if (pthread_create(&thread, NULL, work, (void *)i))
			exit(1);
}

#endif
