/* SPDX-License-Identifier: MIT */
/*
 * scope_hostile.c - a program whose scopes are nonsense, and change while they are read.
 *
 * Workers allocate and free under random records: nodes that do not exist, huge ids, any instance.
 * Two more threads write random values over the descriptor and the node table all the time: magic,
 * sizes, mode and offset of the record, addresses of chunks and names, lengths, parents (of loops
 * too), the address of labels. Bytes and objects must come out right whatever they are charged to.
 * Only "paused" is never said, since that would rightly leave allocations out.
 * E2E_SEED: of the random numbers; E2E_MS: how long.
 */
#include <heaptap/scope.h>
#include <time.h>

#include "ledger.h"

#define WORKERS 3
#define KEPT 512
#define DESC_BYTES 640
#define NODES 64

static unsigned char *desc, *nodes, good[DESC_BYTES]; /* good: as it was */
static uint64_t seed = 7;
static int run_ms = 1000;
static int _Atomic is_over;

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* A number of the kind that breaks readers. */
static uint64_t nasty(uint64_t *state)
{
	static const uint64_t values[] = { 0,
					   1,
					   7,
					   255,
					   256,
					   65535,
					   0x7fffffff,
					   0x80000000,
					   0xffffffff,
					   0x7fffffffffff,
					   0xffff800000000000,
					   ~0ULL };
	uint64_t r = next(state);

	switch (r >> 60) {
	case 0:
		return next(state);
	case 1:
		return (uintptr_t)desc + (r & 1023);
	case 2:
		return (uintptr_t)&r;
	default:
		return values[r % (sizeof(values) / sizeof(*values))];
	}
}

SITE void *site_hostile(size_t size)
{
	return led_alloc(__func__, malloc(size), size);
}

static void *worker(void *arg)
{
	uint64_t state = seed * 2654435761u + (uintptr_t)arg;
	void *kept[KEPT] = { 0 };

	led_name_thread("worker");
	while (!is_over) {
		unsigned i = next(&state) % KEPT;
		heaptap_state s = heaptap_get();

		s.scope = next(&state) & 1 ? next(&state) % NODES : nasty(&state);
		s.scope &= ~(1ULL << 32);
		s.instance = nasty(&state);
		s.kv = next(&state) & 3 ? 0 : nasty(&state);
		heaptap_set(s);
		if (kept[i]) {
			led_free(kept[i]);
			free(kept[i]);
			kept[i] = NULL;
		} else {
			kept[i] = site_hostile(1 + next(&state) % 3000);
		}
	}
	return NULL;
}

/* Any of: the descriptor's head, its chunk addresses, a node of the first chunk. */
static void *corrupter(void *arg)
{
	uint64_t state = seed * 40503 + (uintptr_t)arg;

	led_name_thread("corrupter");
	while (!is_over) {
		uint64_t r = next(&state), value = nasty(&state);
		unsigned off = next(&state) % 60 * 8 + 8;

		if (r & 3) { /* a node: parent, kind, flags, addresses, lengths */
			memcpy(nodes + 32 * (1 + (r >> 8) % NODES) + (r >> 32) % 4 * 8, &value, 8);
		} else if (off == 16) { /* sizes, mode, flags: not the flag that pauses */
			value &= ~(1ULL << 48);
			memcpy(desc + off, &value, 8);
		} else {
			memcpy(desc + off, &value, 8);
		}
		if (!(r >> 4 & 7)) /* sound for a moment, or nothing would ever be followed */
			memcpy(desc + 8, good + 8, sizeof(good) - 8);
		for (volatile int i = 0; i < 200; i++)
			;
	}
	return NULL;
}

int main(void)
{
	pthread_t thread[WORKERS + 2];
	char name[32];

	desc = (unsigned char *)&heaptap_scope_v1;
	if (getenv("E2E_SEED"))
		seed = strtoull(getenv("E2E_SEED"), NULL, 10);
	if (getenv("E2E_MS"))
		run_ms = (int)strtol(getenv("E2E_MS"), NULL, 10);
	for (int i = 0; i < NODES; i++) {
		snprintf(name, sizeof(name), "scope %d", i);
		heaptap_push(name);
		if (i % 8 == 7)
			heaptap_push_label("key", name);
	}
	memcpy(good, desc, sizeof(good));
	memcpy(&nodes, good + 128, sizeof(nodes));
	e2e_ready();
	for (uintptr_t i = 0; i < WORKERS + 2; i++)
		if (pthread_create(&thread[i], NULL, i < WORKERS ? worker : corrupter,
				   (void *)(i + 1)))
			led_die("no thread\n");
	usleep(run_ms * 1000);
	is_over = 1;
	for (int i = 0; i < WORKERS + 2; i++)
		pthread_join(thread[i], NULL);
	e2e_done();
	return 0;
}
