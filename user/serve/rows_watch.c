/* SPDX-License-Identifier: MIT */
/* rows_watch.c - see live_view_priv.h. */
#include "serve/live_view_priv.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/log.h"
#include "metrics/rows_past.h"
#include "proc/process.h"
#include "record/rows_reader.h"
#include "result/make.h"
#include "serve/daemon.h"
#include "track/tracker.h"

#define KEEP_EVERY_NS NS_PER_S
#define RETRY_NS NS_PER_S
#define START_NS (5 * NS_PER_MS) /* what a job costs besides its reading */

struct rows_watch {
	uint64_t interval_ns;
	struct rows_reader reader;
	/* What it reads. */
	pid_t pid;
	uint64_t image, began_ns;
	size_t next; /* the process that is looked at next */
	uint64_t rest_until_ns, keep_due_ns;
};

int rows_watch_new(uint64_t interval_ns, struct rows_watch **ret)
{
	struct rows_watch *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->interval_ns = interval_ns;
	*ret = w;
	return 0;
}

void rows_watch_free(struct rows_watch *w)
{
	if (!w)
		return;
	rows_reader_give_up(&w->reader, "");
	free(w);
}

static bool is_followed(const struct rows_watch *w, const struct result_source *src)
{
	return tracker_follows(src->tracker, w->pid) && result_image(src, w->pid) == w->image;
}

/* CPU time; without an answer it may have taken all of its time. */
static uint64_t took_ns(const struct rows_watch *w, uint64_t now)
{
	const struct resident_reading *r = &w->reader.answer;
	uint64_t wall_ns = now - w->began_ns;

	return r->cpu_ns && r->cpu_ns + START_NS < wall_ns ? r->cpu_ns + START_NS : wall_ns;
}

/* A late one has mostly waited. */
struct rows_pause rows_pause_after(uint64_t took_ns, bool is_late, uint64_t interval_ns)
{
	struct rows_pause p = { took_ns * ROWS_OWN_REST, took_ns * ROWS_REST };

	if (is_late)
		p = (struct rows_pause){ ROWS_LATE_NS, ROWS_INTERVAL_MIN_NS };
	if (p.own_ns < interval_ns)
		p.own_ns = interval_ns;
	return p;
}

static void take(struct rows_watch *w, const struct result_source *src, uint64_t now)
{
	struct resident_reading *r = &w->reader.answer;
	struct rows_pause pause =
		rows_pause_after(took_ns(w, now), w->reader.is_late, w->interval_ns);
	int err;

	w->rest_until_ns = now + pause.all_ns;
	if (!is_followed(w, src) || process_has_ended(w->pid))
		return; /* what was read before is the newest of it */
	r->is_counted = false; /* how often it was called meanwhile is not known */
	err = rows_past_add(src->rows, w->image, w->began_ns, w->began_ns + pause.own_ns, r);
	if (err || !r->is_known)
		log_debug("serve: resident memory of PID %d by row is unknown: %s", w->pid,
			  err ? strerror(-err) : r->why);
}

/* What is not followed any more is kept for a while, and then forgotten. */
static void keep_followed(struct rows_watch *w, const struct result_source *src, uint64_t now)
{
	size_t cnt = tracker_running_cnt(src->tracker);

	if (now < w->keep_due_ns)
		return;
	w->keep_due_ns = now + KEEP_EVERY_NS;
	for (size_t i = 0; i < cnt; i++)
		rows_past_keep(src->rows, result_image(src, tracker_running_at(src->tracker, i)),
			       now);
	rows_past_forget(src->rows, now);
}

static bool is_due(const struct result_source *src, uint64_t image, uint64_t now)
{
	const struct rows_past_image *i = rows_past_find(src->rows, image);

	return i ? now >= i->due_ns : !rows_past_is_full(src->rows);
}

static void begin(struct rows_watch *w, const struct result_source *src, uint64_t now)
{
	size_t cnt = tracker_running_cnt(src->tracker);
	struct process_info info;

	for (size_t i = 0; i < cnt; i++) {
		pid_t pid = tracker_running_at(src->tracker, w->next++ % cnt);
		uint64_t image = result_image(src, pid);

		if (!is_due(src, image, now) || process_glance(pid, &info) || info.is_zombie)
			continue;
		w->pid = pid;
		w->image = image;
		w->began_ns = now;
		rows_reader_begin_job(&w->reader, info.uid, pid, info.rss_bytes);
		if (!rows_reader_is_at_work(&w->reader)) /* other jobs have all places */
			w->rest_until_ns = now + RETRY_NS;
		return;
	}
}

void rows_watch_tick(struct rows_watch *w, const struct result_source *src)
{
	uint64_t now = now_ns();

	if (!src->rows)
		return;
	keep_followed(w, src, now);
	if (rows_reader_is_at_work(&w->reader)) {
		if (rows_reader_work(&w->reader))
			take(w, src, now);
	} else if (now >= w->rest_until_ns) {
		begin(w, src, now);
	}
}
