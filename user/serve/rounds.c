/* SPDX-License-Identifier: MIT */
/* rounds.c - see rounds.h. */
#include "serve/rounds.h"

#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "serve/follow.h"
#include "saved/keeper.h"
#include "serve/live_view.h"
#include "serve/profiles.h"
#include "serve/pushes.h"
#include "serve/share_log.h"
#include "kernel/engine.h"
#include "kernel/privileges.h"
#include "record/idle_tasks.h"
#include "http/http.h"
#include "proc/events.h"
#include "track/tracker.h"

#define SCAN_NS NS_PER_S
/* After a scan that forks asked for the next one waits so many times as long as it took. */
#define SCAN_REST 20
/* What processes count themselves changes slowly, and costs a look into each. */
#define COUNTERS_NS NS_PER_S
/* Of a tick, for taking out what ended processes left. */
#define RECLAIM_NS (5 * NS_PER_MS)
/* What was needed for a moment, for a snapshot say, lies between what stays: it goes back to the kernel. */
#define TRIM_NS (10 * NS_PER_S)
/* Who loses something by taking too much is told soon. */
#define SHARES_NS (5 * NS_PER_S)
/* A fork of a followed process is followed up after this, when the child may have executed. */
#define FORK_SCAN_NS (50 * NS_PER_MS)

struct rounds {
	struct rounds_parts parts;
	struct process_events *events; /* NULL: cannot be had */
	struct idle_tasks *idle_tasks; /* those that ended without saying so */
	struct share_log *share_log;
	uint64_t scan_due_ns, scan_least_ns, counters_due_ns, trim_due_ns, shares_due_ns;
};

static void on_mmap(void *ctx, pid_t pid, uint64_t addr, uint64_t bytes, uint64_t off, uint32_t dev,
		    uint64_t ino, const char *path)
{
	struct rounds *r = ctx;

	(void)addr, (void)bytes, (void)off, (void)dev, (void)ino, (void)path;
	if (tracker_follows(r->parts.tracker, pid))
		tracker_on_mmap(r->parts.tracker, pid);
	else
		follow_note(r->parts.follow, pid);
}

static void on_code(void *ctx, pid_t pid)
{
	struct rounds *r = ctx;

	tracker_on_code(r->parts.tracker, pid);
}

static void on_lost(void *ctx, uint64_t cnt)
{
	struct rounds *r = ctx;

	log_debug("serve: %llu mapping events lost, reading the mappings again",
		  (unsigned long long)cnt);
	tracker_on_lost(r->parts.tracker);
	follow_note_lost(r->parts.follow);
}

int rounds_open(const struct rounds_parts *parts, struct rounds **ret)
{
	static const struct process_events_ops ops = { on_mmap, on_code, on_lost };
	struct rounds *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->parts = *parts;
	err = idle_tasks_new(parts->engine, &r->idle_tasks);
	if (!err)
		err = share_log_new(parts->engine, &r->share_log);
	if (err) {
		rounds_close(r);
		return err;
	}
	err = process_events_open(&ops, r, &r->events);
	if (err) {
		log_warn("serve: libraries that are loaded later are found late, because mapping "
			 "events are not available: %s%s",
			 strerror(-err), privileges_perf_advice(err));
		r->events = NULL;
	}
	*ret = r;
	return 0;
}

void rounds_close(struct rounds *r)
{
	if (!r)
		return;
	process_events_close(r->events);
	idle_tasks_free(r->idle_tasks);
	share_log_free(r->share_log);
	free(r);
}

int rounds_fd(const struct rounds *r)
{
	return r->events ? process_events_fd(r->events) : -1;
}

void rounds_drain(struct rounds *r)
{
	process_events_drain(r->events);
}

void rounds_on_event(struct rounds *r, const struct ht_event *event)
{
	uint64_t due_ns = now_ns() + FORK_SCAN_NS;

	keeper_on_event(r->parts.keeper, event);
	tracker_on_event(r->parts.tracker, event);
	if (event->kind == HT_EVENT_EXEC)
		follow_note_exec(r->parts.follow, (pid_t)event->tgid);
	if (due_ns < r->scan_least_ns)
		due_ns = r->scan_least_ns;
	if (event->kind == HT_EVENT_FORK && r->scan_due_ns > due_ns)
		r->scan_due_ns = due_ns;
}

int rounds_scan(struct rounds *r)
{
	uint64_t begin_ns = now_ns(), end_ns;
	int err;

	if (!r->events)
		follow_note_lost(r->parts.follow);
	r->scan_due_ns = UINT64_MAX; /* events that it reads may want the next one soon */
	err = follow_scan(r->parts.follow);
	keeper_sync(r->parts.keeper);
	end_ns = now_ns();
	if (r->scan_due_ns > end_ns + SCAN_NS)
		r->scan_due_ns = end_ns + SCAN_NS;
	/* In a storm of forks no more than a part of the time is spent looking. */
	r->scan_least_ns = end_ns + SCAN_REST * (end_ns - begin_ns);
	if (err)
		log_warn("serve: cannot look at /proc: %s", strerror(-err));
	return err;
}

/* Of those that look up stacks of a snapshot, the oldest. */
static uint64_t reader_since_ns(const struct rounds *r)
{
	uint64_t profiles_ns = profiles_reader_since_ns(r->parts.profiles);
	uint64_t keeper_ns = keeper_reader_since_ns(r->parts.keeper);

	return profiles_ns < keeper_ns ? profiles_ns : keeper_ns;
}

void rounds_tick(struct rounds *r)
{
	uint64_t now = now_ns();
	int err;

	if (now >= r->counters_due_ns) {
		r->counters_due_ns = now + COUNTERS_NS;
		tracker_read_counters(r->parts.tracker);
	}
	http_end_slow(r->parts.http);
	live_view_tick(r->parts.live_view);
	if (follow_look(r->parts.follow))
		log_warn("serve: out of memory: processes are followed late");
	if (now >= r->scan_due_ns) {
		rounds_scan(r);
		pushes_offer(r->parts.pushes, r->parts.files);
	}
	keeper_tick(r->parts.keeper);
	err = tracker_reclaim(r->parts.tracker, reader_since_ns(r), RECLAIM_NS);
	if (err)
		log_debug("serve: cannot take out what ended processes left: %s", strerror(-err));
	if (now >= r->trim_due_ns) {
		r->trim_due_ns = now + TRIM_NS;
		malloc_trim(0);
	}
	if (now >= r->shares_due_ns) {
		r->shares_due_ns = now + SHARES_NS;
		err = share_log_look(r->share_log);
		if (err)
			log_debug("serve: cannot look at the shares of tables: %s", strerror(-err));
	}
	err = idle_tasks_run(r->idle_tasks);
	if (err)
		log_debug("serve: cannot look for idle tasks: %s", strerror(-err));
}
