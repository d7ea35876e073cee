/* SPDX-License-Identifier: MIT */
/*
 * daemon.c - heaptap serve: sets up its parts, runs them in one event loop, changes them when the configuration does,
 * and takes them down (see daemon.h and daemon_priv.h).
 *
 * The parts are set up in the order in which they can fail. The loop only waits and hands out turns: signals, ticks,
 * the kernel's events, HTTP, the children that make profiles, and pushes.
 *
 * BPF goes on recording while the loop is busy. The loop may be busy for long with the first read of a large
 * executable (its unwind table is made), the removal of probes, and the reading of the live map for a snapshot.
 *
 * The periodic work finds processes to track, reads what processes count themselves, and reclaims the entries of ended
 * ones. /proc is scanned each second, and sooner in a storm of forks, but only for a small part of the time. Between
 * scans the kernel's mapping events tell which process has loaded a library. Ended processes are cleaned up in small
 * pieces, so that a tick stays short.
 */
#include "serve/daemon_priv.h"

#include <malloc.h>
#include <signal.h>

#include "base/err.h"
#include "base/hmap.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/units.h"
#include "guardian/guardian.h"
#include "heaptap/abi.h"
#include "http/http.h"
#include "http/past.h"
#include "kernel/engine.h"
#include "kernel/privileges.h"
#include "kernel/reclaim.h"
#include "proc/events.h"
#include "proc/process.h"
#include "proc/reader.h"
#include "proc/select.h"
#include "record/idle_tasks.h"
#include "record/rows_reader.h"
#include "record/saver.h"
#include "serve/follow.h"
#include "serve/pushes.h"
#include "symbol/symbol.h"
#include "track/file_content.h"
#include "track/governor.h"
#include "track/session.h"
#include "track/tracker.h"

/*
 * Shares: logs once for each process that it has used up its share of a table that all share (see bpf/share.bpf.h),
 * and what it loses by that. The others lose nothing.
 */
struct share_log {
	struct reader *reader;
	struct engine *engine;
	struct hmap told; /* struct ht_image_key -> bit mask of tables */
	struct hmap next; /* the same, for the images found in this look */
};

/* The parts, which know each other by this. */
struct daemon {
	struct daemon_options opts;
	struct loop *loop;
	struct {
		bool is_over, is_hurried; /* told to end; told again */
		bool wants_reload;
		bool has_lost_guardian;
		uint64_t made_ns; /* then the last profiles are made, or never will be */
	} end;
	struct guardian *guardian;
	struct reader *reader;
	struct select_rules *rules;
	struct select_rules *tap_rules; /* NULL: no process may be tapped */
	struct session *session;
	struct requests *requests;
	struct requests_parts parts; /* what they ask */
	struct http_server *http; /* owned by requests */
	struct follow *follow;
	struct profiles *profiles;
	struct saver *saver; /* NULL: nothing is saved */
	struct pushes *pushes;
	struct result_source source;
	struct live_view *live_view; /* for the pages */
	struct {
		struct process_events *events; /* NULL: not available */
		struct idle_tasks idle_tasks; /* forgets tasks that ended without saying so */
		struct share_log share_log;
		uint64_t scan_due_ns, scan_least_ns, counters_due_ns, trim_due_ns, shares_due_ns;
	} ticks;
	struct slow_files *slow;
	struct name_cache *names;
	struct stack_past *stacks; /* NULL: none is kept */
	struct rows_past *rows; /* likewise */
};

static const struct {
	const char *table, *loss;
} words[] = {
	[HT_SHARED_LIVE] = { "live samples (--max-live)",
			     "its new allocations are missing from heap in use" },
	[HT_SHARED_TOTALS] = { "sums (--max-stacks)",
			       "its new allocations are missing from bytes allocated" },
	[HT_SHARED_STACKS] = { "stacks (--max-stacks)", "its new stacks are missing" },
	[HT_SHARED_CONTEXTS] = { "threads and scopes",
				 "its new threads and scopes are not distinguished" },
	[HT_SHARED_SCOPES] = { "scopes", "its new scopes are shown as (other)" },
	[HT_SHARED_LABELS] = { "labels", "its new labels are missing" },
	[HT_SHARED_BINS] = { "sizes and lifetimes (--max-stacks)",
			     "sizes and lifetimes of its new allocations are incomplete" },
	[HT_SHARED_INSTANCES] = { "live tasks", "its new tasks are not distinguished" },
};
_Static_assert(ARRAY_CNT(words) == HT_SHARED_CNT, "one for each table");

static void share_log_init(struct share_log *s, struct engine *e, struct reader *reader)
{
	s->engine = e;
	s->reader = reader;
	hmap_init(&s->told, sizeof(struct ht_image_key));
	hmap_init(&s->next, sizeof(struct ht_image_key));
}

static void share_log_release(struct share_log *s)
{
	hmap_release(&s->told);
	hmap_release(&s->next);
}

static void tell(struct reader *reader, const struct ht_image_key *key,
		 const struct ht_image *image, enum ht_shared table)
{
	struct process_info info = { 0 };

	process_glance(reader, (pid_t)key->tgid, &info);
	log_warn("serve: PID %u (%s) has used up its share of the table of %s (%u entries): %s; "
		 "other processes are not affected",
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
			tell(s->reader, key, image, (enum ht_shared)table);
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

static void on_mmap(void *ctx, const struct process_events_map *map)
{
	struct daemon *d = ctx;

	if (tracker_follows(d->session->tracker, map->pid))
		tracker_on_mmap(d->session->tracker, map);
	else
		follow_note(d->follow, map->pid);
}

static void on_code(void *ctx, pid_t pid)
{
	struct daemon *d = ctx;

	tracker_on_code(d->session->tracker, pid);
}

static void on_lost(void *ctx, uint64_t cnt)
{
	struct daemon *d = ctx;

	log_debug("serve: %llu mapping events lost, reading the mappings again",
		  (unsigned long long)cnt);
	tracker_on_lost(d->session->tracker);
	follow_note_lost(d->follow);
}

/* Missing mapping events are logged on stderr and are no error. */
static void ticks_open(struct daemon *d)
{
	static const struct process_events_ops ops = { on_mmap, on_code, on_lost };
	int err;

	share_log_init(&d->ticks.share_log, d->session->engine, d->reader);
	d->ticks.idle_tasks.engine = d->session->engine;
	err = process_events_open(&ops, d, &d->ticks.events);
	if (err) {
		log_warn("serve: libraries that are loaded later are found late, because mapping "
			 "events are not available: %s%s",
			 strerror(-err), privileges_perf_advice(err));
		d->ticks.events = NULL;
	}
}

/* Pass an event of the engine on to the parts; it may bring the next scan forward. */
static void on_event(void *ctx, const struct ht_event *event)
{
	struct daemon *d = ctx;
	uint64_t due_ns = now_ns() + FORK_SCAN_NS;

	saver_on_event(d->saver, event);
	tracker_on_event(d->session->tracker, event);
	if (!follow_on_event(d->follow, event))
		return;
	if (due_ns < d->ticks.scan_least_ns)
		due_ns = d->ticks.scan_least_ns;
	if (d->ticks.scan_due_ns > due_ns)
		d->ticks.scan_due_ns = due_ns;
}

/* Scan now: follow the selected processes and let the others go. */
static int ticks_scan(struct daemon *d)
{
	uint64_t begin_ns = now_ns(), end_ns;
	int err;

	if (!d->ticks.events)
		follow_note_lost(d->follow);
	d->ticks.scan_due_ns = UINT64_MAX; /* its events may want the next scan soon */
	err = follow_scan(d->follow);
	saver_sync(d->saver);
	end_ns = now_ns();
	if (d->ticks.scan_due_ns > end_ns + SCAN_NS)
		d->ticks.scan_due_ns = end_ns + SCAN_NS;
	/* In a storm of forks only a part of the time goes to scans. */
	d->ticks.scan_least_ns = end_ns + SCAN_REST * (end_ns - begin_ns);
	if (err)
		log_warn("serve: cannot read /proc: %s", strerror(-err));
	return err;
}

/* When the oldest snapshot was taken whose stacks are still being looked up. */
static uint64_t reader_since_ns(const struct daemon *d)
{
	uint64_t profiles_ns = profiles_reader_since_ns(d->profiles);
	uint64_t saver_ns = saver_reader_since_ns(d->saver);

	return profiles_ns < saver_ns ? profiles_ns : saver_ns;
}

static void look_for_processes(struct daemon *d, uint64_t now)
{
	if (follow_look(d->follow))
		log_warn("serve: out of memory: processes are tracked late");
	if (now >= d->ticks.scan_due_ns) {
		ticks_scan(d);
		pushes_offer(d->pushes, d->session->files);
	}
}

/* Call a few times a second. */
static void on_tick(void *ctx)
{
	struct daemon *d = ctx;
	uint64_t now = now_ns();
	int err;

	if (now >= d->ticks.counters_due_ns) {
		d->ticks.counters_due_ns = now + COUNTERS_NS;
		tracker_read_counters(d->session->tracker);
	}
	http_end_slow(d->http);
	live_view_tick(d->live_view);
	if (!d->end.is_over)
		look_for_processes(d, now);
	saver_tick(d->saver);
	err = reclaim_run(tracker_reclaim(d->session->tracker), reader_since_ns(d), RECLAIM_NS);
	if (err)
		log_debug("serve: cannot remove entries of ended processes: %s", strerror(-err));
	if (now >= d->ticks.trim_due_ns) {
		d->ticks.trim_due_ns = now + TRIM_NS;
		malloc_trim(0);
		name_cache_renew(d->names);
	}
	if (now >= d->ticks.shares_due_ns) {
		d->ticks.shares_due_ns = now + SHARES_NS;
		err = share_log_look(&d->ticks.share_log);
		if (err)
			log_debug("serve: cannot read the shares of tables: %s", strerror(-err));
	}
	err = idle_tasks_run(&d->ticks.idle_tasks);
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
	if (err && !guardian_is_lost(d->guardian)) /* that has its own line */
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
	process_events_drain(d->ticks.events);
}

/* Nothing to do: http_run() is called in each turn. */
static void on_http(void *ctx, int fd)
{
	(void)ctx;
	(void)fd;
}

/*
 * Let the loop handle signals from here on. Call it first, so that no signal ends the process while probes are in,
 * or before a reload can be handled.
 */
static int open_loop(struct daemon *d)
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

/* Watch the descriptors of the parts that do not do so themselves. */
static int start_loop(struct daemon *d)
{
	int err = loop_every(d->loop, TICK_NS, on_tick, d);

	if (!err)
		err = loop_watch(d->loop, engine_events_fd(d->session->engine), on_ring, d);
	if (!err)
		err = loop_watch(d->loop, guardian_fd(d->guardian), on_guardian_news, d);
	if (!err && d->ticks.events)
		err = loop_watch(d->loop, process_events_fd(d->ticks.events), on_mapping_events, d);
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
		if (!guardian_is_lost(d->guardian)) /* that has its own line */
			log_warn("serve: cannot update a tracked process: %s", strerror(-err));
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

int daemon_run(struct daemon *d, enum daemon_wish *ret)
{
	int err = 0;

	d->end.wants_reload = false;
	while (!d->end.is_over && !d->end.wants_reload && !err)
		err = loop_once(d);
	*ret = !d->end.is_over && !err ? DAEMON_RELOAD : DAEMON_END;
	if (*ret == DAEMON_RELOAD)
		return 0;
	guardian_begin_end(d->guardian); /* SIGTERM ends all within 2 s */
	d->end.made_ns = now_ns() + LAST_MADE_NS;
	slow_files_end_at(d->slow, now_ns() + LAST_NAMES_NS);
	if (!err)
		err = saved_last(d);
	if (!err && d->opts.pushes.target_cnt)
		err = push_last(d);
	if (err)
		log_error("serve: %s: ending", strerror(-err));
	else if (d->end.has_lost_guardian)
		err = -EPIPE;
	else
		log_info("serve: ended by a signal");
	return err;
}

/* An unmapped file is noticed after this at the latest. */
#define REFRESH_NS (60 * NS_PER_S)

/* Runs in a child of the reader. */
static int run_job(uint32_t kind, int fd, const void *args, size_t args_bytes, int out_fd)
{
	switch (kind) {
	case TARGET_MEMORY_JOB:
		return target_memory_run_job(args, args_bytes, out_fd);
	case ROWS_READER_JOB:
		return rows_reader_run_job(args, args_bytes, out_fd);
	case DEBUG_JOB:
		return debug_job_run(fd, args, args_bytes, out_fd);
	default:
		return file_job_run(kind, fd, args, args_bytes, out_fd);
	}
}

/*
 * Without uprobe events every process has links of its own, unless all may pay. Who wants own ones
 * anyway needs no programs for events, each of which has the unwinder in it and takes its time to load.
 */
static int open_uprobe_events(struct guardian *guardian, enum sharing wanted, bool *ret_has_events)
{
	size_t removed_cnt = 0;
	struct err why;
	int err = guardian_open_events(guardian, &removed_cnt, &why);

	if (removed_cnt)
		log_info("serve: removed %zu probe definitions that a killed heaptap left behind",
			 removed_cnt);
	*ret_has_events = !err && wanted != SHARING_OWN;
	if (!err)
		return 0;
	if (wanted == SHARING_EVENT) {
		log_error("serve: processes cannot share probes: %s", why.text);
		return err;
	}
	log_warn("serve: many processes that use one library will slow each other down, because "
		 "they cannot share probes: %s",
		 why.text);
	return 0;
}

static bool may_tap(void *ctx, pid_t pid)
{
	const struct daemon *d = ctx;
	struct process_info info;

	return !process_glance(d->reader, pid, &info) &&
	       select_matches(d->tap_rules,
			      &(struct select_candidate){ .comm = info.comm, .exe = info.exe });
}

static int make_tap_rules(struct daemon *d)
{
	const struct select_options who = { .comm = d->opts.tap, .exe = d->opts.tap_exe };
	struct err why;
	int err = who.comm.cnt || who.exe.cnt ? select_rules_new(&who, &d->tap_rules, &why) : 0;

	if (err)
		log_error("serve: --tap or --tap-exe: %s", why.text);
	return err;
}

/* Start the session: which processes may be tapped, which share probes. */
static int start_session(struct daemon *d)
{
	const struct daemon_options *opts = &d->opts;
	struct track_policy *policy = &d->session->policy;
	const struct session_options session_opts = {
		.engine = {
			.live_cap = (uint32_t)opts->live_cap,
			.stack_cap = (uint32_t)opts->stack_cap,
		},
		.ops = { .on_event = on_event },
		.ctx = d,
		.guardian = d->guardian,
		.governor = {
			.limit = opts->max_overhead,
			.max_host_share = opts->max_overhead_host,
			.rate_bytes = opts->rate_bytes,
		},
		/* The limit for throwing functions is set before each attachment. */
		.rate_bytes = opts->rate_bytes,
	};
	int err;

	*policy = (struct track_policy){
		.reader = d->reader,
		.refresh_ns = REFRESH_NS,
		.is_all_agreed = opts->select.is_all || opts->sharing == SHARING_ALL,
		.source = opts->source,
		.tap_rate_bytes = d->tap_rules || opts->taps_on_request ? TAP_RATE_FINEST : 0,
		.taps_on_request = opts->taps_on_request,
		.may_tap = d->tap_rules ? may_tap : NULL,
		.may_tap_ctx = d,
		.sharing = opts->sharing,
	};
	err = open_uprobe_events(d->guardian, opts->sharing, &policy->has_events);
	return err ? err : session_start(d->session, &session_opts);
}

static int open_profiles(struct daemon *d)
{
	int err;

	d->source = (struct result_source){
		.reader = d->reader,
		.engine = d->session->engine,
		.files = d->session->files,
		.tracker = d->session->tracker,
		.slow = d->slow,
		.names = d->names,
		.governor = d->session->governor,
		.rate_bytes = d->opts.rate_bytes,
		.mode = d->session->mode,
		.begin_epoch_ns = (int64_t)clock_ns(CLOCK_REALTIME),
		.command_argv = d->opts.command_argv,
		.command_argc = d->opts.command_argc,
	};
	if (d->opts.past_interval_ns) {
		err = stack_past_new(d->opts.past_interval_ns, &d->stacks);
		if (err)
			return err;
		d->source.stacks = d->stacks;
	}
	if (d->opts.rows_interval_ns) {
		err = rows_past_new(&d->rows);
		if (err)
			return err;
		d->source.rows = d->rows;
	}
	err = profiles_new(&d->source, d->pushes, d->loop, &d->profiles);
	return err ? err : live_view_new(&d->source, &d->opts, &d->live_view);
}

/* Large arrays of a moment (snapshots, pages) go back to the kernel when they are freed. By itself the C library raises this
 * threshold to the largest that was ever freed, and keeps those that are smaller. */
#define MMAP_THRESHOLD_BYTES (128 << 10)

static int set_up(struct daemon *d)
{
	struct follow_options follow_opts = { .pids = d->opts.pids, .pid_cnt = d->opts.pid_cnt };
	struct err why = { .text = "out of memory" };
	int err = select_rules_new(&d->opts.select, &d->rules, &why);

	if (err) {
		log_error("serve: %s", why.text);
		return err;
	}
	mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES);
	follow_opts.rules = d->rules;
	err = guardian_start(&d->guardian); /* early: little memory, one thread */
	follow_opts.guardian = d->guardian;
	if (err) {
		log_error("serve: cannot start the process that attaches: %s", strerror(-err));
		return err;
	}
	err = reader_start(READER_PROMPT_MS, run_job, &d->reader);
	if (err) {
		log_error("serve: cannot start the process that reads: %s", strerror(-err));
		return err;
	}
	follow_opts.reader = d->reader;
	err = slow_files_new(&d->slow);
	if (!err)
		err = name_cache_new(&d->names);
	if (!err)
		err = open_loop(d);
	if (!err)
		err = make_tap_rules(d);
	if (!err)
		err = session_new("serve", d->opts.mode, &d->session);
	if (!err)
		err = requests_open(d->opts.listen, d->opts.token_file, &d->parts, &d->requests,
				    &d->http);
	if (err)
		return err;
	err = saver_open(&d->opts.keep, &d->saver);
	if (!err)
		err = pushes_open(&d->opts.pushes, d->reader, d->loop, &d->pushes);
	if (!err)
		err = start_session(d);
	if (!err)
		err = follow_new(d->session->engine, d->session->tracker, &follow_opts, &d->follow);
	if (!err)
		err = open_profiles(d);
	if (err)
		return err;
	ticks_open(d);
	return start_loop(d);
}

/* This process waits for the guardian, or for the kernel. */
static void on_wait(void *ctx)
{
	const struct daemon *d = ctx;

	http_run_open(d->http);
}

/* Start the parts that need each other. */
static void start(struct daemon *d)
{
	d->parts = (struct requests_parts){
		.tracker = d->session->tracker,
		.source = &d->source,
		.follow = d->follow,
		.live_view = d->live_view,
		.profiles = d->profiles,
		.pushes = d->pushes,
		.saver = d->saver,
	};
	saver_start(d->saver, &d->source, d->loop);
	guardian_while_waiting(d->guardian, on_wait, d);
	engine_while_waiting(d->session->engine, on_wait, d);
}

int daemon_open(const struct daemon_options *opts, struct daemon **ret)
{
	struct daemon *d = calloc(1, sizeof(*d));
	char rate[UNITS_BUF];
	size_t running_cnt;
	int err;

	if (!d)
		return -ENOMEM;
	d->opts = *opts;
	err = set_up(d);
	if (!err && opts->select.is_all)
		log_warn("serve: --all slows down every process with a known allocator at each "
			 "allocation and free ('heaptap doctor' prints the cost); --exclude and "
			 "--min-rss leave processes out");
	if (!err) {
		start(d);
		err = ticks_scan(d);
	}
	if (err) {
		daemon_close(d);
		return err;
	}
	running_cnt = tracker_running_cnt(d->session->tracker);
	fprintf(stderr, "heaptap: serving %zu process%s on %s, 1 sample per %s\n", running_cnt,
		running_cnt == 1 ? "" : "es", http_address(d->http),
		format_bytes((double)opts->rate_bytes, rate, sizeof(rate)));
	*ret = d;
	return 0;
}

/* Change what may be refused because of its content; on failure nothing has changed. */
static int change_token_and_pushes(struct daemon *d, const struct daemon_options *opts)
{
	int err = requests_set_token(d->requests, opts->token_file);

	if (err)
		return err;
	err = pushes_change(d->pushes, &opts->pushes);
	if (err && requests_set_token(d->requests, d->opts.token_file))
		log_warn("serve: cannot restore the old token: the new one is in effect");
	return err;
}

/* From here on opts is in use, so nothing can be refused any more. Takes over rules. */
static void change_selection(struct daemon *d, const struct daemon_options *opts,
			     struct select_rules *rules)
{
	const bool is_all_agreed = opts->select.is_all || d->opts.sharing == SHARING_ALL;
	struct track_policy *policy = &d->session->policy;
	int err = follow_select(d->follow, rules, opts->pids, opts->pid_cnt);

	if (err) {
		log_warn("serve: the selection has not changed: %s", strerror(-err));
		select_rules_free(rules);
		return;
	}
	select_rules_free(d->rules);
	d->rules = rules;
	if (policy->is_all_agreed == is_all_agreed)
		return;
	policy->is_all_agreed = is_all_agreed;
	probes_plan_anew(tracker_probes(d->session->tracker));
}

/* "5 %" or "none". Returns buf. */
static char *limit_text(double share, char *buf, size_t buf_bytes)
{
	if (share > 0)
		snprintf(buf, buf_bytes, "%.3g %%", 100 * share);
	else
		snprintf(buf, buf_bytes, "none");
	return buf;
}

static void change_budget(struct daemon *d, const struct daemon_options *opts)
{
	char process[RECORDING_TEXT_BUF];
	char host[32];

	if (opts->max_overhead.cpu_share == d->opts.max_overhead.cpu_share &&
	    opts->max_overhead.one_cpu == d->opts.max_overhead.one_cpu &&
	    opts->max_overhead_host == d->opts.max_overhead_host)
		return;
	governor_set_limits(d->session->governor, &opts->max_overhead, opts->max_overhead_host);
	log_info("serve: overhead limits are now: %s of each process, %s of the host",
		 recording_limit_text(&opts->max_overhead, process),
		 limit_text(opts->max_overhead_host, host, sizeof(host)));
}

int daemon_reconfigure(struct daemon *d, const struct daemon_options *opts)
{
	struct select_rules *rules = NULL;
	struct err why;
	int err = select_rules_new(&opts->select, &rules, &why);

	if (err) {
		log_error("serve: %s", why.text);
		return err;
	}
	err = change_token_and_pushes(d, opts);
	if (err) {
		select_rules_free(rules);
		return err;
	}
	change_selection(d, opts, rules);
	change_budget(d, opts);
	saver_change(d->saver, &opts->keep);
	d->opts = *opts;
	ticks_scan(d);
	return 0;
}

void daemon_close(struct daemon *d)
{
	if (!d)
		return;
	session_stop(d->session); /* probes first, so that no process pays for the rest */
	if (d->guardian)
		guardian_while_waiting(d->guardian, NULL, NULL);
	requests_close(d->requests);
	saver_close(d->saver);
	profiles_free(d->profiles);
	pushes_close(d->pushes);
	follow_free(d->follow);
	process_events_close(d->ticks.events);
	idle_tasks_release(&d->ticks.idle_tasks);
	share_log_release(&d->ticks.share_log);
	live_view_free(d->live_view);
	stack_past_free(d->stacks);
	rows_past_free(d->rows);
	session_free(d->session);
	select_rules_free(d->tap_rules);
	select_rules_free(d->rules);
	loop_free(d->loop);
	name_cache_free(d->names);
	slow_files_free(d->slow);
	guardian_end(d->guardian);
	reader_end(d->reader);
	free(d);
}
