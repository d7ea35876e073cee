/* SPDX-License-Identifier: MIT */
/* inuse_watch.c - see live_view_priv.h. */
#include "serve/live_view_priv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hmap.h"
#include "http/inuse_past.h"
#include "kernel/engine.h"
#include "proc/process.h"
#include "result/make.h"
#include "track/governor.h"
#include "track/tracker.h"

_Static_assert(INUSE_PAST_PROCESSES_CAP >= HT_TARGETS_CAP, "each that is followed has a past");

struct sums {
	const struct result_source *src;
	struct hmap by_pid; /* uint32_t -> bytes, a double's bits */
};

/*
 * Skip images before an exec and ended processes: what they held is gone, and only running processes are shown
 * here. (record/recorder.c keeps ended ones: what a process held at its end is what a recording is for.)
 */
static int add_image(void *ctx, const struct ht_image_key *key, const struct ht_image *image)
{
	struct sums *s = ctx;
	double bytes = (double)image->inuse_bytes_8 / 256, before;
	const uint64_t *known;
	uint64_t bits;

	if (tracker_is_over(s->src->tracker, (pid_t)key->tgid, key->generation))
		return 0;
	known = hmap_get(&s->by_pid, &key->tgid);
	if (known) {
		memcpy(&before, known, sizeof(before));
		bytes += before;
	}
	memcpy(&bits, &bytes, sizeof(bits));
	return hmap_put(&s->by_pid, &key->tgid, bits);
}

/* A process without a sum has allocated no sample yet: it holds nothing that was seen. */
static double held(const struct sums *s, pid_t pid)
{
	struct governor_view view;
	uint32_t key = (uint32_t)pid;
	const uint64_t *known = hmap_get(&s->by_pid, &key);
	double bytes = 0;

	if (governor_view(s->src->governor, pid, &view) || !view.has_inuse)
		return NAN;
	if (known)
		memcpy(&bytes, known, sizeof(bytes));
	return fmax(bytes, 0);
}

static double resident(pid_t pid)
{
	struct process_info info;

	return process_glance(pid, &info) ? NAN : (double)info.rss_bytes;
}

int inuse_watch_tick(const struct result_source *src, struct inuse_past *past)
{
	struct sums s = { .src = src };
	size_t cnt = tracker_running_cnt(src->tracker);
	int err;

	if (!inuse_past_begin(past, now_ns()))
		return 0;
	hmap_init(&s.by_pid, sizeof(uint32_t));
	err = engine_each_image(src->engine, add_image, &s);
	for (size_t i = 0; i < cnt && !err; i++) {
		pid_t pid = tracker_running_at(src->tracker, i);
		const double bytes[] = {
			[INUSE_PAST_INUSE] = held(&s, pid), [INUSE_PAST_RESIDENT] = resident(pid)
		};

		err = inuse_past_add(past, pid, tracker_followed_ns(src->tracker, pid), bytes);
		if (err == -ENOSPC)
			err = 0; /* ended ones make room next time; its page says so */
	}
	hmap_release(&s.by_pid);
	return err ? err : inuse_past_end(past);
}
