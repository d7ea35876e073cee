/* SPDX-License-Identifier: MIT */
/*
 * ledger.h - what a workload is made of: its own account of what it allocates, and the protocol
 * with which a test drives it.
 *
 * A call site is a noinline function site_<name>. After every allocation it tells led_alloc(),
 * before every free led_free(); a reallocation is led_take(), the call, led_settle(). The account
 * is per site and thread name, allocates nothing itself, and is exact whoever frees.
 *
 *	e2e_ready()  prints "READY <pid>" and waits for a line on stdin
 *	e2e_done()   prints "EXPECT <site> <thread> <inuse_bytes> <inuse_objects> <alloc_bytes>
 *	             <alloc_objects>" for every row ("-" = not to be checked), then "DONE", and
 *	             waits for a line again, so that it can be recorded alive
 * With E2E_NOWAIT in the environment nothing is waited for: for programs that heaptap starts;
 * E2E_DELAY_MS then is a pause before the work, for a program that another one executes.
 * Every program ends by itself after 15 minutes, so that none is left behind.
 *
 * Not for signal handlers: the account is under a lock; they count by themselves and the main
 * program adds that with led_bulk().
 */
#ifndef E2E_LEDGER_H
#define E2E_LEDGER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define SITE __attribute__((noinline, unused)) static
#define HELPER __attribute__((noinline, unused)) static
/* A value that the compiler knows nothing about. */
#define OPAQUE(x)                                     \
	__extension__({                               \
		__typeof__(x) opaque_ = (x);          \
		__asm__ volatile("" : "+r"(opaque_)); \
		opaque_;                              \
	})

#define LED_ROWS 4096
#define LED_BLOCKS (1U << 20)
#define LED_GONE ((void *)1)

struct led_row {
	char site[48];
	char thread[16];
	int64_t inuse_bytes, inuse_objects, alloc_bytes, alloc_objects;
	bool skip_alloc;
};

struct led_block {
	void *p;
	size_t size;
	int row;
};

static struct led_row led_rows[LED_ROWS];
static int led_row_cnt;
static struct led_block led_blocks[LED_BLOCKS];
static pthread_mutex_t led_lock = PTHREAD_MUTEX_INITIALIZER;
static __thread char led_thread[16];

HELPER void led_die(const char *what)
{
	ssize_t n = write(2, what, strlen(what));

	(void)n;
	_exit(99);
}

/* Also forgets the cached name: call it after the thread was renamed by other means. */
HELPER void led_name_thread(const char *name)
{
	if (name)
		prctl(PR_SET_NAME, name);
	prctl(PR_GET_NAME, led_thread);
}

HELPER int led_find_row(const char *site)
{
	unsigned h = 5381, i;

	if (!led_thread[0])
		led_name_thread(NULL);
	for (const char *s = site; *s; s++)
		h = h * 33 + (unsigned char)*s;
	for (const char *s = led_thread; *s; s++)
		h = h * 33 + (unsigned char)*s;
	for (i = h % LED_ROWS; led_rows[i].site[0]; i = (i + 1) % LED_ROWS)
		if (!strcmp(led_rows[i].site, site) && !strcmp(led_rows[i].thread, led_thread))
			return i;
	if (++led_row_cnt > LED_ROWS / 2)
		led_die("ledger: too many rows\n");
	snprintf(led_rows[i].site, sizeof(led_rows[i].site), "%s", site);
	memcpy(led_rows[i].thread, led_thread, sizeof(led_thread));
	return i;
}

static unsigned led_slot(const void *p)
{
	return (unsigned)(((uintptr_t)p >> 4) * 0x9e3779b97f4a7c15ULL >> 40) % LED_BLOCKS;
}

HELPER void led_insert(const struct led_block *b)
{
	unsigned i = led_slot(b->p), tries = 0;

	while (led_blocks[i].p && led_blocks[i].p != LED_GONE) {
		if (led_blocks[i].p == b->p)
			led_die("ledger: a block that is in use was handed out\n");
		if (++tries == LED_BLOCKS)
			led_die("ledger: too many blocks\n");
		i = (i + 1) % LED_BLOCKS;
	}
	led_blocks[i] = *b;
}

/* Add what was allocated at a site without a block of its own in the account. */
HELPER void led_bulk(const char *site, int64_t size, int64_t alloc_cnt, int64_t inuse_cnt)
{
	struct led_row *row;

	pthread_mutex_lock(&led_lock);
	row = &led_rows[led_find_row(site)];
	row->inuse_bytes += size * inuse_cnt;
	row->inuse_objects += inuse_cnt;
	row->alloc_bytes += size * alloc_cnt;
	row->alloc_objects += alloc_cnt;
	pthread_mutex_unlock(&led_lock);
}

HELPER void *led_alloc(const char *site, void *p, size_t size)
{
	struct led_block b;

	if (!p)
		return p;
	pthread_mutex_lock(&led_lock);
	b.p = p;
	b.size = size;
	b.row = led_find_row(site);
	led_insert(&b);
	led_rows[b.row].inuse_bytes += size;
	led_rows[b.row].inuse_objects++;
	led_rows[b.row].alloc_bytes += size;
	led_rows[b.row].alloc_objects++;
	pthread_mutex_unlock(&led_lock);
	return p;
}

/* NULL is taken as a block of size 0 in no row. */
HELPER struct led_block led_take(void *p)
{
	struct led_block b = { NULL, 0, -1 };
	unsigned i = led_slot(p);

	if (!p)
		return b;
	pthread_mutex_lock(&led_lock);
	while (led_blocks[i].p && led_blocks[i].p != p)
		i = (i + 1) % LED_BLOCKS;
	if (!led_blocks[i].p)
		led_die("ledger: a block that is not in use is freed\n");
	b = led_blocks[i];
	led_blocks[i].p = LED_GONE;
	led_rows[b.row].inuse_bytes -= b.size;
	led_rows[b.row].inuse_objects--;
	pthread_mutex_unlock(&led_lock);
	return b;
}

/* Call it before the block is freed: afterwards another thread may have it. */
HELPER void *led_free(void *p)
{
	led_take(p);
	return p;
}

HELPER void led_put_back(const struct led_block *b)
{
	if (!b->p)
		return;
	pthread_mutex_lock(&led_lock);
	led_insert(b);
	led_rows[b->row].inuse_bytes += b->size;
	led_rows[b->row].inuse_objects++;
	pthread_mutex_unlock(&led_lock);
}

/* q is what a reallocation of b to `size` bytes returned. */
HELPER void *led_settle(const char *site, const struct led_block *b, void *q, size_t size)
{
	if (q)
		return led_alloc(site, q, size);
	if (size)
		led_put_back(b);
	return q;
}

/* How often a site allocates is the library's business, only what is left is checked. */
HELPER void led_skip_alloc(const char *site)
{
	pthread_mutex_lock(&led_lock);
	led_rows[led_find_row(site)].skip_alloc = true;
	pthread_mutex_unlock(&led_lock);
}

HELPER void e2e_say(const char *line)
{
	ssize_t n = write(1, line, strlen(line));

	(void)n;
}

HELPER void e2e_wait_line(void)
{
	char c;

	if (getenv("E2E_NOWAIT"))
		return;
	while (read(0, &c, 1) == 1)
		if (c == '\n')
			return;
}

HELPER void e2e_ready(void)
{
	const char *delay = getenv("E2E_DELAY_MS"), *life = getenv("E2E_LIFE_SECONDS");
	char line[64];

	alarm(life ? strtoul(life, NULL, 10) : 900); /* whatever becomes of the test */
	snprintf(line, sizeof(line), "READY %d\n", (int)getpid());
	e2e_say(line);
	e2e_wait_line();
	if (delay)
		usleep(1000 * strtol(delay, NULL, 10));
}

HELPER void e2e_print_ledger(void)
{
	char line[256];

	pthread_mutex_lock(&led_lock);
	for (int i = 0; i < LED_ROWS; i++) {
		const struct led_row *r = &led_rows[i];
		int n;

		if (!r->site[0])
			continue;
		n = snprintf(line, sizeof(line), "EXPECT %s %s %lld %lld", r->site, r->thread,
			     (long long)r->inuse_bytes, (long long)r->inuse_objects);
		if (r->skip_alloc)
			snprintf(line + n, sizeof(line) - n, " - -\n");
		else
			snprintf(line + n, sizeof(line) - n, " %lld %lld\n",
				 (long long)r->alloc_bytes, (long long)r->alloc_objects);
		e2e_say(line);
	}
	pthread_mutex_unlock(&led_lock);
}

HELPER void e2e_done(void)
{
	e2e_print_ledger();
	e2e_say("DONE\n");
	e2e_wait_line();
}

/* Fails the program when its own account is not what the arithmetic says. */
HELPER void e2e_self_check(const char *site, int64_t inuse_bytes, int64_t inuse_objects)
{
	const struct led_row *r;
	char line[160];

	pthread_mutex_lock(&led_lock); /* it adds a row where there is none */
	r = &led_rows[led_find_row(site)];
	pthread_mutex_unlock(&led_lock);
	if (r->inuse_bytes == inuse_bytes && r->inuse_objects == inuse_objects)
		return;
	snprintf(line, sizeof(line), "BROKEN %s: %lld bytes in %lld, planned %lld in %lld\n", site,
		 (long long)r->inuse_bytes, (long long)r->inuse_objects, (long long)inuse_bytes,
		 (long long)inuse_objects);
	e2e_say(line);
	_exit(98);
}

#endif
