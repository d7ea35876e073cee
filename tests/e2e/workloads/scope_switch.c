/* SPDX-License-Identifier: MIT */
/*
 * scope_switch.c - very many instances of one task.
 *
 *	scope_switch live [INSTANCES [THREADS [MS]]]	10000 8 2000
 *		all of them live; the threads enter and leave them at random, a million times a
 *		second in total ("RATE <per second>" says how often it was). At every hundredth visit
 *		an instance allocates, frees what it has, or frees what another one has. A fifth of
 *		them exits at the end. EXPECT_INSTANCE for each
 *	scope_switch short [INSTANCES [THREADS]]	1000000 8
 *		each allocates 32 bytes, frees them and exits; every thousandth keeps 10 more:
 *		outstanding after exit
 */
#include <sys/mman.h>
#include <time.h>

#include "scope_ledger.h"

#define RATE 1000000
#define HOLDS 4

struct connection {
	uint64_t number;
	int is_busy; /* somebody is in it */
	void *held[HOLDS];
	size_t size[HOLDS];
	int64_t inuse_bytes, inuse_objects, alloc_bytes, alloc_objects;
	bool has_exited;
};

static struct connection *connections;
static int instance_cnt, thread_cnt, run_ms;
static heaptap_node kind;
static int64_t visits;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

SITE void *site_visit(size_t size)
{
	return led_alloc(__func__, malloc(size), size);
}

/* With c entered. */
static void allocate(struct connection *c, uint64_t random)
{
	int i = random % HOLDS;

	if (c->held[i])
		return;
	c->size[i] = 16 + (random >> 8) % 500;
	c->held[i] = site_visit(c->size[i]);
	c->inuse_bytes += c->size[i];
	c->inuse_objects++;
	c->alloc_bytes += c->size[i];
	c->alloc_objects++;
}
/* Whoever is entered: the bytes go back to c. */
static void release(struct connection *c, uint64_t random)
{
	int i = random % HOLDS;

	if (!c->held[i])
		return;
	free(led_free(c->held[i]));
	c->held[i] = NULL;
	c->inuse_bytes -= c->size[i];
	c->inuse_objects--;
}

static bool lock(struct connection *c)
{
	return !__atomic_exchange_n(&c->is_busy, 1, __ATOMIC_ACQUIRE);
}
static void unlock(struct connection *c)
{
	__atomic_store_n(&c->is_busy, 0, __ATOMIC_RELEASE);
}

static void visit(struct connection *c, uint64_t random, uint64_t *state)
{
	struct connection *other = &connections[next(state) % instance_cnt];
	heaptap_state before = heaptap_enter(kind, c->number);

	if (random % 100 < 6)
		allocate(c, random >> 8);
	else if (random % 100 < 8)
		release(c, random >> 8);
	else if (random % 100 < 10 && other != c && lock(other)) {
		release(other, random >> 8);
		unlock(other);
	}
	heaptap_leave(before);
}

static void *work_live(void *arg)
{
	uint64_t state = (uintptr_t)arg * 7919 + 20011, start = now_ns(), now, due, done = 0;
	uint64_t per_thread = (uint64_t)RATE * run_ms / 1000 / thread_cnt;

	led_name_thread("switch");
	while (done < per_thread) {
		struct connection *c = &connections[next(&state) % instance_cnt];
		uint64_t random = next(&state);

		if (done++ % 10) {
			/* nine of ten only come and go */
			heaptap_leave(heaptap_enter(kind, c->number));
		} else if (lock(c)) {
			visit(c, random, &state);
			unlock(c);
		}
		due = start + done * 1000000000ULL / (RATE / thread_cnt);
		if (done % 1000)
			continue;
		now = now_ns(); /* once: it passes */
		if (now < due)
			usleep((due - now) / 1000);
	}
	__atomic_fetch_add(&visits, (int64_t)done, __ATOMIC_RELAXED);
	return NULL;
}

static void print_live(void)
{
	char line[200];

	for (int i = 0; i < instance_cnt; i++) {
		const struct connection *c = &connections[i];

		if (!c->has_exited || c->inuse_objects) {
			snprintf(line, sizeof(line),
				 "EXPECT_INSTANCE %llu %s %lld %lld %lld %lld server/conn\n",
				 (unsigned long long)c->number, c->has_exited ? "exited" : "live",
				 (long long)c->inuse_bytes, (long long)c->inuse_objects,
				 (long long)c->alloc_bytes, (long long)c->alloc_objects);
			e2e_say(line);
		}
		scope_rows[0].inuse_bytes += c->inuse_bytes;
		scope_rows[0].inuse_objects += c->inuse_objects;
	}
	snprintf(scope_rows[0].path, sizeof(scope_rows[0].path), "server/conn");
}

SITE void *site_short(size_t size)
{
	return malloc(size);
}
SITE void *site_kept(size_t size)
{
	return malloc(size);
}

static void *work_short(void *arg)
{
	int first = (int)((uintptr_t)arg * instance_cnt / thread_cnt);
	int end = (int)(((uintptr_t)arg + 1) * instance_cnt / thread_cnt);

	led_name_thread("switch");
	for (int i = first; i < end; i++) {
		uint64_t number = i + 1;
		heaptap_state before = heaptap_enter(kind, number);

		free(OPAQUE(site_short(32)));
		if (number % 1000 == 0) {
			OPAQUE(site_kept(10));
			scope_has_instance("server/conn", number);
			scope_bulk("server/conn", number, 32, 1, 0);
			scope_bulk("server/conn", number, 10, 1, 1);
		}
		heaptap_leave(before);
		heaptap_task_exit(kind, number);
		if (number % 1000 == 0)
			scope_instance_exits(number);
	}
	return NULL;
}

static void run_threads(void *(*work)(void *))
{
	pthread_t thread[256];

	heaptap_pause(); /* what pthread_create() allocates */
	for (uintptr_t i = 0; i < (uintptr_t)thread_cnt; i++)
		if (pthread_create(&thread[i], NULL, work, (void *)i))
			led_die("scope_switch: no thread\n");
	heaptap_unpause();
	for (int i = 0; i < thread_cnt; i++)
		pthread_join(thread[i], NULL);
}

static void run_live(void)
{
	uint64_t start = now_ns();
	char line[64];

	run_threads(work_live);
	snprintf(line, sizeof(line), "RATE %lld\n",
		 (long long)(visits * 1000000000LL / (int64_t)(now_ns() - start)));
	e2e_say(line);
	for (int i = 0; i < instance_cnt; i += 5) {
		connections[i].has_exited = true;
		heaptap_task_exit(kind, connections[i].number);
	}
	print_live();
}

static void run_short(void)
{
	led_name_thread("switch");
	run_threads(work_short);
	led_bulk("site_short", 32, instance_cnt, 0);
	led_bulk("site_kept", 10, instance_cnt / 1000, instance_cnt / 1000);
}

static int argument(int argc, char **argv, int i, int otherwise)
{
	int n = argc > i ? (int)strtol(argv[i], NULL, 10) : otherwise;

	if (n < 1)
		led_die("scope_switch: a number is wrong\n");
	return n;
}

int main(int argc, char **argv)
{
	bool is_live = argc > 1 && !strcmp(argv[1], "live");

	if (!is_live && (argc < 2 || strcmp(argv[1], "short")))
		led_die("scope_switch: live or short?\n");
	instance_cnt = argument(argc, argv, 2, is_live ? 10000 : 1000000);
	thread_cnt = argument(argc, argv, 3, 8);
	run_ms = argument(argc, argv, 4, 2000);
	if (thread_cnt > 256)
		led_die("scope_switch: too many threads\n");
	if (is_live) {
		connections = mmap(NULL, instance_cnt * sizeof(*connections),
				   PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (connections == MAP_FAILED)
			led_die("scope_switch: no memory\n");
		for (int i = 0; i < instance_cnt; i++)
			connections[i].number = heaptap_instance_new();
	}
	{
		HEAPTAP_SCOPE("server");
		kind = heaptap_task("conn");
	}
	e2e_ready();
	if (is_live)
		run_live();
	else
		run_short();
	scope_done();
	return 0;
}
