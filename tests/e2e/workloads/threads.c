/* SPDX-License-Identifier: MIT */
/*
 * threads.c - who frees is not who allocated.
 *
 * E2E_MODE=handover: producers allocate, consumers free two of three. =race: every thread
 * allocates, reallocates, hands over through a shared table, and frees what others left there, at
 * random, for E2E_MS milliseconds from the start or until a line comes; what the account holds at the
 * end must be what the profile holds. =named: a thread named t<i> holds i MiB, frees it, holds i/2 MiB.
 * =deaths: threads allocate and end at once, thousands of them, others free what they left.
 * E2E_THREADS: how many (8). E2E_SEED: of the random numbers. E2E_REST_MS: for which a racer sleeps after 64
 * turns, so that a race goes on beside others (0).
 */
#include <poll.h>
#include <time.h>

#include "ledger.h"

#define SLOTS 1024
static void *_Atomic slot[SLOTS];
static int thread_cnt = 8, run_ms = 1000, rest_ms;
static uint64_t seed = 20011;
static pthread_barrier_t barrier;
static bool is_over; /* the race */

static int number(const char *name, int otherwise)
{
	const char *s = getenv(name);

	return s ? (int)strtol(s, NULL, 10) : otherwise;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ULL + t.tv_nsec / 1000000;
}

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

SITE void *site_produce(size_t size)
{
	return led_alloc(__func__, malloc(size), size);
}

static void *producer(void *arg)
{
	int id = (intptr_t)arg;
	char name[16];

	snprintf(name, sizeof(name), "prod%d", id);
	led_name_thread(name);
	for (int i = 0; i < 3001; i++) {
		void *p = site_produce(101 + id);
		int s;

		for (s = i % SLOTS;; s = (s + 1) % SLOTS) {
			void *none = NULL;

			if (__atomic_compare_exchange_n((void **)&slot[s], &none, p, false,
							__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
				break;
			if (s == SLOTS - 1)
				usleep(1);
		}
	}
	return NULL;
}

static int consumed, to_consume;

static void *consumer(void *arg)
{
	char name[16];

	snprintf(name, sizeof(name), "cons%d", (int)(intptr_t)arg);
	led_name_thread(name);
	while (__atomic_load_n(&consumed, __ATOMIC_ACQUIRE) < to_consume) {
		bool found = false;

		for (int s = 0; s < SLOTS; s++) {
			void *p = __atomic_exchange_n((void **)&slot[s], NULL, __ATOMIC_ACQ_REL);

			if (!p)
				continue;
			found = true;
			if (__atomic_fetch_add(&consumed, 1, __ATOMIC_ACQ_REL) % 3)
				free(led_free(p));
		}
		if (!found)
			usleep(10);
	}
	return NULL;
}

SITE void *site_race_small(size_t size)
{
	return led_alloc(__func__, malloc(size), size);
}

SITE void *site_race_zeroed(size_t size)
{
	return led_alloc(__func__, calloc(1, size), size);
}

SITE void *site_race_resized(void *p, size_t size)
{
	struct led_block b = led_take(p);

	return led_settle(__func__, &b, realloc(p, size), size);
}

SITE void *site_race_aligned(size_t size)
{
	void *p = NULL;

	if (posix_memalign(&p, 64, size))
		return NULL;
	return led_alloc(__func__, p, size);
}

/* The end of the standard input is no line. */
static bool line_came(void)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };
	char c = 0;

	if (poll(&in, 1, 0) <= 0)
		return false;
	while (read(0, &c, 1) == 1 && c != '\n')
		;
	return c == '\n';
}

static void *racer(void *arg)
{
	uint64_t state = seed * 7919 + (intptr_t)arg + 1, until;
	char name[16];

	snprintf(name, sizeof(name), "race%d", (int)(intptr_t)arg);
	led_name_thread(name);
	pthread_barrier_wait(&barrier);
	until = now_ms() + run_ms;
	while (now_ms() < until && !__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
		if (!arg && line_came())
			__atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
		for (int i = 0; i < 64; i++) {
			uint64_t r = next(&state);
			size_t size = 1 + (r >> 8) % (r & 0x40 ? 200000 : 500);
			int s = (r >> 32) % SLOTS;
			void *p = __atomic_exchange_n((void **)&slot[s], NULL, __ATOMIC_ACQ_REL);

			if (p && r % 3 == 0) {
				p = site_race_resized(p, size);
			} else {
				if (p)
					free(led_free(p));
				p = r % 5 == 0 ? site_race_zeroed(size) :
				    r % 7 == 0 ? site_race_aligned(size) :
						 site_race_small(size);
			}
			p = __atomic_exchange_n((void **)&slot[s], p, __ATOMIC_ACQ_REL);
			if (p)
				free(led_free(p));
		}
		if (rest_ms)
			usleep(1000 * rest_ms);
	}
	return NULL;
}

SITE void *site_named(size_t size)
{
	return led_alloc(__func__, malloc(size), size);
}

static void *named(void *arg)
{
	int id = 1 + (intptr_t)arg;
	char name[16];
	void *p;

	snprintf(name, sizeof(name), "t%d", id);
	led_name_thread(name);
	p = site_named((size_t)id << 20);
	pthread_barrier_wait(&barrier);
	free(led_free(p));
	site_named((size_t)id << 19);
	return NULL;
}

SITE void *site_dying(size_t size)
{
	return led_alloc(__func__, malloc(size), size);
}

static void *dying(void *arg)
{
	uint64_t state = (intptr_t)arg * 48271 + 11;

	led_name_thread("dying");
	for (int i = 0; i < 5; i++) {
		int s = next(&state) % SLOTS;
		void *p = __atomic_exchange_n((void **)&slot[s], site_dying(10 + i),
					      __ATOMIC_ACQ_REL);

		if (p)
			free(led_free(p));
	}
	return NULL;
}

static void run_all(void *(*a)(void *), int a_cnt, void *(*b)(void *), int b_cnt)
{
	pthread_t thread[256];
	int n = 0;

	pthread_barrier_init(&barrier, NULL, a_cnt + b_cnt);
	for (int i = 0; i < a_cnt; i++)
		if (pthread_create(&thread[n++], NULL, a, (void *)(intptr_t)i))
			led_die("threads: no thread\n");
	for (int i = 0; i < b_cnt; i++)
		if (pthread_create(&thread[n++], NULL, b, (void *)(intptr_t)i))
			led_die("threads: no thread\n");
	for (int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
}

int main(void)
{
	const char *mode = getenv("E2E_MODE");

	thread_cnt = number("E2E_THREADS", thread_cnt);
	run_ms = number("E2E_MS", run_ms);
	rest_ms = number("E2E_REST_MS", rest_ms);
	seed = number("E2E_SEED", seed);
	if (!mode || thread_cnt < 1 || thread_cnt > 100)
		led_die("threads: E2E_MODE is not set\n");
	e2e_ready();
	if (!strcmp(mode, "handover")) {
		to_consume = thread_cnt * 3001;
		run_all(producer, thread_cnt, consumer, thread_cnt);
	} else if (!strcmp(mode, "race")) {
		run_all(racer, thread_cnt, NULL, 0);
	} else if (!strcmp(mode, "named")) {
		run_all(named, thread_cnt, NULL, 0);
	} else if (!strcmp(mode, "deaths")) {
		for (int i = 0; i < run_ms / 4; i++)
			run_all(dying, thread_cnt, NULL, 0);
	}
	e2e_done();
	return 0;
}
