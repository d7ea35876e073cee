/* SPDX-License-Identifier: MIT */
/*
 * early.c - has blocks from its first moment on, then does nothing but allocate and free, so that probes cost too much;
 * then frees and reallocates blocks of before, and allocates more.
 *
 * E2E_BLOCKS: blocks of each kind (1000). E2E_BYTES: of each (200). E2E_BUSY_MS: of CPU time that it is busy (1200).
 * E2E_REST: it rests so many times as long, in turns of some milliseconds (0).
 * E2E_CHILDREN: that many forked children do the same, beside it, and its own account is theirs, too (0).
 */
#include <sys/wait.h>
#include <time.h>

#include "ledger.h"

#define BUSY_BYTES 48
#define BATCH 256
#define TURN_US 2000

static void **kept, **freed, **grown, **late;
static size_t cnt = 1000, bytes = 200;
static long rest;

static long number(const char *name, long otherwise)
{
	const char *s = getenv(name);

	return s ? strtol(s, NULL, 10) : otherwise;
}

SITE void *site_kept(size_t size)
{
	return led_alloc(__func__, malloc(size), size);
}

SITE void *site_freed(size_t size)
{
	return led_alloc(__func__, calloc(1, size), size);
}

SITE void *site_to_grow(size_t size)
{
	return led_alloc(__func__, malloc(size), size);
}

SITE void *site_grown(void *p, size_t size)
{
	struct led_block b = led_take(p);

	return led_settle(__func__, &b, realloc(p, size), size);
}

SITE void *site_late(size_t size)
{
	return led_alloc(__func__, malloc(size), size);
}

SITE void site_busy(void)
{
	void *p = OPAQUE(malloc(BUSY_BYTES));

	free(p);
}

static long cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000L + t.tv_nsec / 1000;
}

static void be_busy(long busy_us)
{
	long end_us = cpu_us() + busy_us, turn_us = 0;

	for (long now_us; (now_us = cpu_us()) < end_us;) {
		if (rest && now_us >= turn_us) {
			if (turn_us)
				usleep((useconds_t)(rest * TURN_US));
			turn_us = now_us + TURN_US;
		}
		for (int i = 0; i < BATCH; i++)
			site_busy();
	}
}

/* The arrays are nobody's sites. */
static void **array(void)
{
	void **p = calloc(cnt, sizeof(*p));

	if (!p)
		led_die("early: no memory\n");
	return p;
}

static void work(long busy_ms)
{
	for (size_t i = 0; i < cnt; i++) {
		kept[i] = site_kept(bytes);
		freed[i] = site_freed(bytes);
		grown[i] = site_to_grow(bytes);
	}
	be_busy(busy_ms * 1000);
	for (size_t i = 0; i < cnt; i++) {
		free(led_free(freed[i]));
		grown[i] = site_grown(grown[i], 5 * bytes);
		late[i] = site_late(bytes);
	}
}

int main(void)
{
	long child_cnt = number("E2E_CHILDREN", 0), busy_ms = number("E2E_BUSY_MS", 1200);

	cnt = (size_t)number("E2E_BLOCKS", (long)cnt);
	bytes = (size_t)number("E2E_BYTES", (long)bytes);
	rest = number("E2E_REST", 0);
	e2e_ready();
	kept = array();
	freed = array();
	grown = array();
	late = array();
	for (long i = 0; i < child_cnt; i++)
		if (!fork()) {
			work(busy_ms);
			_exit(0);
		}
	work(busy_ms);
	while (wait(NULL) > 0)
		;
	e2e_done();
	return 0;
}
