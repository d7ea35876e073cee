/* SPDX-License-Identifier: MIT */
/* daemon_loop.c - see daemon_priv.h. */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hmap.h"
#include "base/log.h"
#include "base/loop.h"
#include "guardian/guardian.h"
#include "heaptap/abi.h"
#include "http/http.h"
#include "kernel/engine.h"
#include "kernel/privileges.h"
#include "kernel/reclaim.h"
#include "proc/events.h"
#include "proc/process.h"
#include "record/idle_tasks.h"
#include "result/saver.h"
#include "serve/daemon_priv.h"
#include "serve/follow.h"
#include "serve/pushes.h"
#include "symbol/symbol.h"
#include "track/governor.h"
#include "track/session.h"
#include "track/tracker.h"

/*
 * Shares: logs once for each process that it has used up its share of a table that all share (see bpf/share.bpf.h),
 * and what it loses by that. The others lose nothing.
 */
struct share_log {
	struct engine *engine;
	struct hmap told; /* struct ht_image_key -> bit mask of tables */
	struct hmap next; /* the same, for the images found in this look */
};

static const struct {
	const char *table, *loss;
} words[] = {
	[HT_SHARED_LIVE] = { "live samples (--max-live)",
			     "its new allocations are missing from heap in use" },
	[HT_SHARED_TOTALS] = { "sums (--max-stacks)",
			       "its new allocations are missing from allocated" },
	[HT_SHARED_STACKS] = { "stacks (--max-stacks)", "its new stacks are missing" },
	[HT_SHARED_CONTEXTS] = { "threads and scopes", "its new ones are not distinguished" },
	[HT_SHARED_SCOPES] = { "scopes", "its new ones are shown as (other)" },
	[HT_SHARED_LABELS] = { "labels", "its new ones are missing" },
	[HT_SHARED_BINS] = { "sizes and lifetimes (--max-stacks)",
			     "those of its new allocations are not all known" },
	[HT_SHARED_INSTANCES] = { "live tasks", "its new ones are not distinguished" },
};
_Static_assert(sizeof(words) / sizeof(*words) == HT_SHARED_CNT, "one for each table");

static int share_log_new(struct engine *e, struct share_log **ret)
{
	struct share_log *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->engine = e;
	hmap_init(&s->told, sizeof(struct ht_image_key));
	hmap_init(&s->next, sizeof(struct ht_image_key));
	*ret = s;
	return 0;
}

static void share_log_free(struct share_log *s)
{
	if (!s)
		return;
	hmap_release(&s->told);
	hmap_release(&s->next);
	free(s);
}

static void tell(const struct ht_image_key *key, const struct ht_image *image, enum ht_shared table)
{
	struct process_info info = { 0 };

	process_glance((pid_t)key->tgid, &info);
	log_warn("serve: PID %u (%s) has used up its share of the table of %s (%u entries): %s; "
		 "other processes lose nothing",
		 key->tgid, info.comm, words[table].table, image->used[table], words[table].loss);
}

static int on_image(void *ctx, const struct ht_image_key *key, const struct ht_image *image)
{
	struct share_log *s = ctx;
	const uint64_t *told = hmap_get(&s->told, key);
	uint64_t mask = 0;

	for (int table = 0; table < HT_SHARED_CNT; table++) {
		if (!image->refused[table])
			continue;
		mask |= UINT64_C(1) << table;
		if (!told || !(*told >> table & 1))
			tell(key, image, (enum ht_shared)table);
	}
	return mask ? hmap_put(&s->next, key, mask) : 0;
}

/* Call now and then. */
static int share_log_look(struct share_log *s)
{
	struct hmap told = s->told;
	int err = engine_each_image(s->engine, on_image, s);

	s->told = s->next;
	hmap_release(&told);
	hmap_init(&s->next, sizeof(struct ht_image_key));
	return err;
}

#define SCAN_NS NS_PER_S
/* After a scan that a storm of forks asked for, the next one waits this many times as long as it took. */
#define SCAN_REST 20
/* Counters of processes change slowly, and reading them costs a look into each process. */
#define COUNTERS_NS NS_PER_S
/* Time in a tick for reclaiming what ended processes left. */
#define RECLAIM_NS (5 * NS_PER_MS)
/* Memory needed only for a moment, as for a snapshot, lies between memory that stays: return it to the kernel. */
#define TRIM_NS (10 * NS_PER_S)
/* A process that loses something by taking too much is reported soon. */
#define SHARES_NS (5 * NS_PER_S)
/* Delay of a scan after a storm of forks: the children may have executed by then. */
#define FORK_SCAN_NS (50 * NS_PER_MS)

struct ticks {
	const struct daemon *d; /* its parts, which may be gone before the ticks */
	struct process_events *events; /* NULL: not available */
	struct idle_tasks *idle_tasks; /* forgets tasks that ended without saying so */
	struct share_log *share_log;
	uint64_t scan_due_ns, scan_least_ns, counters_due_ns, trim_due_ns, shares_due_ns;
};

static void on_mmap(void *ctx, const struct process_events_map *map)
{
	struct ticks *r = ctx;

	if (tracker_follows(r->d->session->tracker, map->pid))
		tracker_on_mmap(r->d->session->tracker, map);
	else
		follow_note(r->d->follow, map->pid);
}

static void on_code(void *ctx, pid_t pid)
{
	struct ticks *r = ctx;

	tracker_on_code(r->d->session->tracker, pid);
}

static void on_lost(void *ctx, uint64_t cnt)
{
	struct ticks *r = ctx;

	log_debug("serve: %llu mapping events lost, reading the mappings again",
		  (unsigned long long)cnt);
	tracker_on_lost(r->d->session->tracker);
	follow_note_lost(r->d->follow);
}

int ticks_open(const struct daemon *d, struct ticks **ret)
{
	static const struct process_events_ops ops = { on_mmap, on_code, on_lost };
	struct ticks *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->d = d;
	err = idle_tasks_new(d->session->engine, &r->idle_tasks);
	if (!err)
		err = share_log_new(d->session->engine, &r->share_log);
	if (err) {
		ticks_close(r);
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

void ticks_close(struct ticks *r)
{
	if (!r)
		return;
	process_events_close(r->events);
	idle_tasks_free(r->idle_tasks);
	share_log_free(r->share_log);
	free(r);
}

/* Readable when there are mapping events: then call ticks_drain(). -1: there are none. */
static int ticks_fd(const struct ticks *r)
{
	return r->events ? process_events_fd(r->events) : -1;
}

static void ticks_drain(struct ticks *r)
{
	process_events_drain(r->events);
}

void ticks_on_event(struct ticks *r, const struct ht_event *event)
{
	uint64_t due_ns = now_ns() + FORK_SCAN_NS;

	saver_on_event(r->d->saver, event);
	tracker_on_event(r->d->session->tracker, event);
	if (event->kind == HT_EVENT_EXEC)
		follow_note_exec(r->d->follow, (pid_t)event->tgid);
	if (event->kind != HT_EVENT_FORK || follow_note_fork(r->d->follow, (pid_t)event->other))
		return;
	if (due_ns < r->scan_least_ns)
		due_ns = r->scan_least_ns;
	if (r->scan_due_ns > due_ns)
		r->scan_due_ns = due_ns;
}

int ticks_scan(struct ticks *r)
{
	uint64_t begin_ns = now_ns(), end_ns;
	int err;

	if (!r->events)
		follow_note_lost(r->d->follow);
	r->scan_due_ns = UINT64_MAX; /* its events may want the next scan soon */
	err = follow_scan(r->d->follow);
	saver_sync(r->d->saver);
	end_ns = now_ns();
	if (r->scan_due_ns > end_ns + SCAN_NS)
		r->scan_due_ns = end_ns + SCAN_NS;
	/* In a storm of forks only a part of the time goes to scans. */
	r->scan_least_ns = end_ns + SCAN_REST * (end_ns - begin_ns);
	if (err)
		log_warn("serve: cannot read /proc: %s", strerror(-err));
	return err;
}

/* When the oldest snapshot was taken whose stacks are still being looked up. */
static uint64_t reader_since_ns(const struct ticks *r)
{
	uint64_t profiles_ns = profiles_reader_since_ns(r->d->profiles);
	uint64_t saver_ns = saver_reader_since_ns(r->d->saver);

	return profiles_ns < saver_ns ? profiles_ns : saver_ns;
}

static void look_for_processes(struct ticks *r, uint64_t now)
{
	if (follow_look(r->d->follow))
		log_warn("serve: out of memory: processes are followed late");
	if (now >= r->scan_due_ns) {
		ticks_scan(r);
		pushes_offer(r->d->pushes, r->d->session->files);
	}
}

/* Call a few times a second. */
static void ticks_tick(struct ticks *r)
{
	uint64_t now = now_ns();
	int err;

	if (now >= r->counters_due_ns) {
		r->counters_due_ns = now + COUNTERS_NS;
		tracker_read_counters(r->d->session->tracker);
	}
	http_end_slow(r->d->http);
	live_view_tick(r->d->live_view);
	if (!r->d->end.is_over)
		look_for_processes(r, now);
	saver_tick(r->d->saver);
	err = reclaim_run(tracker_reclaim(r->d->session->tracker), reader_since_ns(r), RECLAIM_NS);
	if (err)
		log_debug("serve: cannot remove entries of ended processes: %s", strerror(-err));
	if (now >= r->trim_due_ns) {
		r->trim_due_ns = now + TRIM_NS;
		malloc_trim(0);
		name_cache_renew(r->d->names);
	}
	if (now >= r->shares_due_ns) {
		r->shares_due_ns = now + SHARES_NS;
		err = share_log_look(r->share_log);
		if (err)
			log_debug("serve: cannot read the shares of tables: %s", strerror(-err));
	}
	err = idle_tasks_run(r->idle_tasks);
	if (err)
		log_debug("serve: cannot look for idle tasks: %s", strerror(-err));
}

#define TICK_NS (200 * NS_PER_MS)

/* Time for the last profiles to arrive. */
#define LAST_PUSH_NS (5 * NS_PER_S)
/* Time for their names: a slow process must not cost the others their last profiles, nor delay the end. Names
 * unknown by then stay addresses. */
#define LAST_NAMES_NS (NS_PER_S / 2)
/* Time to make them, once no names are looked up any more. */
#define LAST_MADE_NS NS_PER_S

static void on_tick(void *ctx)
{
	const struct daemon *d = ctx;

	ticks_tick(d->ticks);
}

static void on_signal(void *ctx, int signal)
{
	struct daemon *d = ctx;
	bool pauses = signal == SIGUSR1;
	int err;

	if (signal == SIGHUP && d->opts.can_reload) {
		d->end.wants_reload = true;
		return;
	}
	if (signal != SIGUSR1 && signal != SIGUSR2) {
		d->end.is_over = d->end.is_hurried = true;
		return;
	}
	err = governor_pause(d->session->governor, pauses);
	if (err)
		log_warn("serve: cannot change some probes: %s", strerror(-err));
	log_warn(pauses ? "serve: all probes are removed (SIGUSR1), until SIGUSR2" :
			  "serve: probes are attached again (SIGUSR2)");
}

static void on_guardian_news(void *ctx, int fd)
{
	struct daemon *d = ctx;

	(void)fd;
	if (!guardian_work(d->guardian))
		return;
	log_error("serve: %s (heaptap-guard, PID %d)", guardian_lost_why(d->guardian),
		  guardian_pid(d->guardian));
	d->end.has_lost_guardian = d->end.is_over = true;
}

static void on_ring(void *ctx, int fd)
{
	const struct daemon *d = ctx;

	(void)fd;
	engine_events_drain(d->session->engine);
}

static void on_mapping_events(void *ctx, int fd)
{
	const struct daemon *d = ctx;

	(void)fd;
	ticks_drain(d->ticks);
}

/* Nothing to do: http_run() is called in each turn. */
static void on_http(void *ctx, int fd)
{
	(void)ctx;
	(void)fd;
}

int daemon_loop_open(struct daemon *d)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, 0 };
	int err = loop_new(&d->loop);

	if (!err)
		err = loop_watch_signals(d->loop, signals, on_signal, d);
	if (err)
		return err;
	/* One that comes when the loop is closed already shall not end what is left to do. */
	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	return 0;
}

int daemon_loop_start(struct daemon *d)
{
	int err = loop_every(d->loop, TICK_NS, on_tick, d);

	if (!err)
		err = loop_watch(d->loop, engine_events_fd(d->session->engine), on_ring, d);
	if (!err)
		err = loop_watch(d->loop, guardian_fd(d->guardian), on_guardian_news, d);
	if (!err && ticks_fd(d->ticks) >= 0)
		err = loop_watch(d->loop, ticks_fd(d->ticks), on_mapping_events, d);
	return err ? err : loop_watch(d->loop, http_fd(d->http), on_http, d);
}

static int least(int a, int b)
{
	if (a < 0 || b < 0)
		return a < 0 ? b : a;
	return a < b ? a : b;
}

static int wait_ms(const struct daemon *d)
{
	int ms = tracker_wait_ms(d->session->tracker);

	if (d->end.is_over)
		ms = least(ms, 100);
	ms = least(ms, governor_wait_ms(d->session->governor));
	ms = least(ms, http_wait_ms(d->http));
	return least(ms, profiles_wait_ms(d->profiles));
}

static int follow_changes(struct daemon *d)
{
	int err = tracker_work(d->session->tracker);

	/* Whoever asked the guardian for something may have received that news, too. */
	if (guardian_take_dropped(d->guardian))
		governor_resume_after_stop(d->session->governor, "serve");
	if (err) { /* one process's; the others go on */
		log_warn("serve: cannot follow a change of a process: %s", strerror(-err));
		if (err == -ENOMEM)
			return err;
	}
	return governor_work(d->session->governor);
}

/* At the end the last profiles are made, and nothing new is begun: the kernel may take seconds for a probe. */
static int loop_once(struct daemon *d)
{
	int err = loop_turn(d->loop, wait_ms(d));

	if (!err && !d->end.is_over)
		err = follow_changes(d);
	if (!err)
		err = http_run(d->http);
	if (!err)
		err = profiles_work(d->profiles);
	return err ? err : saver_work(d->saver);
}

/* Finish the profiles of processes that have just ended. */
static int saved_last(struct daemon *d)
{
	int err = 0;

	d->end.is_hurried = false;
	saver_hurry(d->saver);
	while (!err && !d->end.is_hurried && now_ns() < d->end.made_ns && saver_is_busy(d->saver))
		err = loop_once(d);
	return err;
}

/* Push what is held at the end to destinations that answer; for others it waits in the spool. */
static int push_last(struct daemon *d)
{
	uint64_t end_ns = now_ns() + LAST_PUSH_NS;
	int err = 0;

	d->end.is_hurried = false;
	pushes_hurry(d->pushes);
	while (!err && !d->end.is_hurried && now_ns() < end_ns &&
	       ((now_ns() < d->end.made_ns &&
		 (pushes_is_due(d->pushes) || profiles_makes_pushes(d->profiles))) ||
		pushes_are_waiting(d->pushes)))
		err = loop_once(d);
	return err;
}

int daemon_loop_run(struct daemon *d, bool *ret_wants_reload)
{
	int err = 0;

	d->end.wants_reload = false;
	while (!d->end.is_over && !d->end.wants_reload && !err)
		err = loop_once(d);
	*ret_wants_reload = !d->end.is_over && !err;
	if (*ret_wants_reload)
		return 0;
	guardian_begin_end(d->guardian); /* SIGTERM ends all within 2 s */
	d->end.made_ns = now_ns() + LAST_MADE_NS;
	slow_files_end_at(d->slow, now_ns() + LAST_NAMES_NS);
	if (!err)
		err = saved_last(d);
	if (!err && pushes_cnt(d->pushes))
		err = push_last(d);
	if (err)
		log_error("serve: %s: ending", strerror(-err));
	else if (d->end.has_lost_guardian)
		err = -EPIPE;
	else
		log_info("serve: ended by a signal");
	return err;
}
