/* SPDX-License-Identifier: MIT */
/* held_taps.c - see guardian_priv.h. */
#include "guardian/guardian_priv.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/thread.h"
#include "tap/tap.h"

/* Each try stops the process for up to 0.2 s, so tries become rare. */
#define LATE_PAUSE_MS 64
#define LATE_PAUSE_MAX_MS 32768
#define LATE_TRIES 30
#define LOST_LIMIT_NS (1 * NS_PER_S)
#define LOST_FORGET_NS (10 * NS_PER_S)
/* No visit begins later than this after the end has begun; one takes up to 1.6 s. */
#define END_LIMIT_NS (NS_PER_S / 3)
#define END_THREADS_CAP 31

void held_taps_init(struct held_taps *ht, struct err *why)
{
	*ht = (struct held_taps){ .why = why };
	hmap_init(&ht->by_number, sizeof(uint64_t));
}

static struct tap *find(const struct held_taps *ht, uint64_t number)
{
	const uint64_t *value = hmap_get(&ht->by_number, &number);

	return value ? (struct tap *)(uintptr_t)*value : NULL;
}

/* Is too much time lost already? */
static bool is_worn(struct held_taps *ht)
{
	if (now_ns() - ht->lost_at_ns > LOST_FORGET_NS)
		ht->lost_ns = 0;
	return ht->lost_ns > LOST_LIMIT_NS;
}

static void note_visit(struct held_taps *ht, uint64_t begin_ns, int err)
{
	if (err != -ETIMEDOUT && err != -ETIME)
		return;
	ht->lost_at_ns = now_ns();
	ht->lost_ns += ht->lost_at_ns - begin_ns;
}

/* Without memory for the list it stays in the process, without a rate, until the next heaptap finds it. */
static void add_late(struct held_taps *ht, struct tap *t)
{
	tap_set_rate(t, 0);
	if (vec_push(&ht->late, t))
		tap_free(t);
	else
		ht->late_pause_ms = LATE_PAUSE_MS;
}

/* What somebody else has changed does not become right by waiting. */
static bool is_out(int err)
{
	return !err || err == -EUCLEAN;
}

/* Then its memory is gone, and the tap with it: a visit would only find that out. */
static bool has_ended(pid_t pid)
{
	struct pollfd p = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
	bool is_over = p.fd < 0 ? errno == ESRCH : poll(&p, 1, 0) > 0;

	if (p.fd >= 0)
		close(p.fd);
	return is_over;
}

static bool take_out(struct held_taps *ht, struct tap *t)
{
	uint64_t begin_ns = now_ns();
	struct tap_result result;
	int err;

	if (has_ended(tap_pid(t))) {
		tap_set_rate(t, 0); /* another process may be in that memory */
		tap_free(t);
		return true;
	}
	err = tap_take_out(t, &result, ht->why);
	note_visit(ht, begin_ns, err);
	if (!is_out(err))
		return false;
	tap_free(t);
	return true;
}

static void take_out_or_later(struct held_taps *ht, struct tap *t)
{
	if (t && (is_worn(ht) || !take_out(ht, t)))
		add_late(ht, t);
}

/* The memory files of all taps that are held or late. */
static struct tap_files own_files(const struct held_taps *ht, uint64_t **ret_buf)
{
	struct tap_files own = { 0 };
	const void *key;
	uint64_t value;
	size_t pos = 0;

	*ret_buf = calloc(ht->by_number.cnt + ht->late.cnt + 1, sizeof(**ret_buf));
	own.ino = *ret_buf;
	while (*ret_buf && hmap_next(&ht->by_number, &pos, &key, &value))
		(*ret_buf)[own.cnt++] = tap_ino((const struct tap *)(uintptr_t)value);
	for (size_t i = 0; *ret_buf && i < ht->late.cnt; i++)
		(*ret_buf)[own.cnt++] = tap_ino(ht->late.data[i]);
	return own;
}

static int put_in(struct held_taps *ht, const struct tap_order *order, struct tap **ret,
		  int *ret_fd, struct tap_result *result, struct err *why)
{
	uint64_t begin_ns = now_ns(), *buf;
	struct tap_files own = own_files(ht, &buf);
	int err = tap_put_in(order, &own, ret, ret_fd, result, why);

	note_visit(ht, begin_ns, err);
	free(buf);
	return err;
}

/* false: one of them is still in, perhaps. */
static bool try_late_of(struct held_taps *ht, pid_t pid)
{
	bool is_any = false;

	for (size_t i = ht->late.cnt; i-- > 0;) {
		if (tap_pid(ht->late.data[i]) != pid)
			continue;
		if (is_worn(ht) || !take_out(ht, ht->late.data[i]))
			is_any = true;
		else
			ht->late.data[i] = ht->late.data[--ht->late.cnt];
	}
	return !is_any;
}

int held_taps_put_in(struct held_taps *ht, uint64_t number, const struct tap_order *order,
		     int *ret_fd, struct tap_result *result, struct err *why)
{
	const bool is_free = try_late_of(ht, order->pid);
	struct tap *t = NULL;
	int err;

	if (is_worn(ht))
		return err_set(why, -EAGAIN,
			       "other processes do not answer, and too much time was lost on them");
	/* It would be taken for the new one, and the new one would be taken out with it. */
	if (!is_free)
		return err_set(why, -EAGAIN, "its earlier tap could not be removed yet (%s)",
			       ht->why->text);
	err = put_in(ht, order, &t, ret_fd, result, why);
	if (!err)
		err = hmap_put(&ht->by_number, &number, (uintptr_t)t);
	if (err && t)
		add_late(ht, t);
	return err;
}

int held_taps_set(const struct held_taps *ht, uint64_t number, uint64_t rate_bytes,
		  struct tap_lost *ret)
{
	struct tap *t = find(ht, number);
	int err = t ? 0 : -ENOENT;

	if (!err && rate_bytes)
		err = tap_set_rate(t, rate_bytes);
	if (!err)
		tap_read_lost(t, ret);
	return err;
}

void held_taps_take_out(struct held_taps *ht, uint64_t number)
{
	struct tap *t = find(ht, number);

	hmap_del(&ht->by_number, &number);
	take_out_or_later(ht, t);
}

int held_taps_try_late(struct held_taps *ht)
{
	if (!ht->late.cnt)
		return -1;
	/* What was tried in vain comes after the others, the next time as well. */
	for (size_t left = ht->late.cnt; left && !is_worn(ht); left--) {
		struct tap *t = ht->late.data[0];

		ht->late.cnt--;
		memmove(ht->late.data, ht->late.data + 1, ht->late.cnt * sizeof(*ht->late.data));
		if (!take_out(ht, t))
			ht->late.data[ht->late.cnt++] = t;
	}
	if (ht->late_pause_ms < LATE_PAUSE_MAX_MS)
		ht->late_pause_ms *= 2;
	return ht->late.cnt ? ht->late_pause_ms : -1;
}

/* The late ones, as a queue for threads that each take one out after the other. */
struct queue {
	struct held_taps *ht;
	size_t next;
	uint64_t end_ns; /* no visit begins later */
	pthread_mutex_t lock; /* protects ht->why */
};

static void *take_out_queued(void *arg)
{
	struct queue *q = arg;
	struct held_taps *ht = q->ht;
	size_t i;

	while (now_ns() < q->end_ns &&
	       (i = __atomic_fetch_add(&q->next, 1, __ATOMIC_RELAXED)) < ht->late.cnt) {
		struct tap_result result;
		struct err why = { 0 };
		int err = tap_take_out(ht->late.data[i], &result, &why);

		if (is_out(err)) {
			tap_free(ht->late.data[i]);
			ht->late.data[i] = NULL;
			continue;
		}
		pthread_mutex_lock(&q->lock);
		*ht->why = why;
		pthread_mutex_unlock(&q->lock);
	}
	return NULL;
}

/* A process that does not answer takes its visit's time, so those beside it do not wait for that. */
static void take_late_out_side_by_side(struct held_taps *ht, uint64_t end_ns)
{
	struct queue q = { .ht = ht, .end_ns = end_ns, .lock = PTHREAD_MUTEX_INITIALIZER };
	pthread_t threads[END_THREADS_CAP];
	size_t thread_cnt = 0, kept = 0;

	while (thread_cnt < END_THREADS_CAP && thread_cnt + 1 < ht->late.cnt &&
	       !thread_start(&threads[thread_cnt], take_out_queued, &q))
		thread_cnt++;
	take_out_queued(&q);
	while (thread_cnt)
		pthread_join(threads[--thread_cnt], NULL);
	for (size_t i = 0; i < ht->late.cnt; i++)
		if (ht->late.data[i])
			ht->late.data[kept++] = ht->late.data[i];
	ht->late.cnt = kept;
}

size_t held_taps_take_all_out(struct held_taps *ht)
{
	const uint64_t end_ns = now_ns() + END_LIMIT_NS;
	const void *key;
	uint64_t value;
	size_t pos = 0;

	while (hmap_next(&ht->by_number, &pos, &key, &value))
		add_late(ht, (struct tap *)(uintptr_t)value);
	hmap_release(&ht->by_number);
	hmap_init(&ht->by_number, sizeof(uint64_t));
	take_late_out_side_by_side(ht, end_ns);
	while (ht->late.cnt && now_ns() < end_ns) {
		usleep(LATE_PAUSE_MS * 1000);
		take_late_out_side_by_side(ht, end_ns);
	}
	return ht->late.cnt;
}

void held_taps_finish(struct held_taps *ht)
{
	for (int i = 0; i < LATE_TRIES && ht->late.cnt; i++) {
		int pause_ms;

		ht->lost_ns = 0;
		pause_ms = held_taps_try_late(ht);
		if (pause_ms > 0)
			usleep((useconds_t)pause_ms * 1000);
	}
}
