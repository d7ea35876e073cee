/* SPDX-License-Identifier: MIT */
/*
 * recorder_open.c - sets up a recorder, from its options to the first allocation that it sees; see recorder.h.
 *
 * recorder_open() refuses all that can be refused, before any probe is attached. A guardian holds all probes: it
 * takes them out, however this process ends.
 */
#include "record/recorder_priv.h"

#include "base/err.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/thread.h"
#include "base/units.h"
#include "guardian/exec_hold.h"
#include "guardian/guardian.h"
#include "heaptap/abi.h"
#include "kernel/engine.h"
#include "kernel/features.h"
#include "kernel/privileges.h"
#include "proc/events.h"
#include "proc/launch.h"
#include "proc/process.h"
#include "proc/reader.h"
#include "proc/runtime_kind.h"
#include "profile/history.h"
#include "record/idle_tasks.h"
#include "track/file_content.h"
#include "track/files.h"
#include "track/governor.h"
#include "track/tracker.h"

static int choose_mode(struct recorder *r)
{
	int err = session_new("record", r->opts.mode, &r->session);
	bool is_main_thread_gone = false;
	const struct target *t;

	if (err)
		return err;
	/* A multi link to a process whose main thread is gone attaches but never fires. */
	vec_each(&r->targets.list, t)
		is_main_thread_gone |= t->is_main_thread_gone;
	if (r->opts.mode == ATTACH_AUTO && is_main_thread_gone && r->session->features.perf_uprobe)
		r->session->mode = ATTACH_PERF;
	return 0;
}

/* A strict seccomp filter may kill the target for a return probe. */
static int check_seccomp(const struct recorder *r)
{
	const struct target *t;
	bool is_safe = true;
	pid_t pid = 0;

	vec_each(&r->targets.list, t)
		if (t->seccomp && !pid)
			pid = t->pid;
	if (!pid || seccomp_probe_returns(&is_safe) || is_safe)
		return 0;
	log_error(
		"record: cannot record PID %d: its seccomp filter would kill it at the end of a "
		"return probe; needs a kernel older than 6.11, or 6.14 and later (or a stable one "
		"with the fix)",
		pid);
	return -ENOTSUP;
}

/* A return probe ends in a system call, which such a process would be given to handle. */
static int check_dispatch(const struct recorder *r)
{
	const struct target *t;
	uint32_t flags;

	vec_each(&r->targets.list, t) {
		flags = 0;
		if (!t->catches_sigsys ||
		    engine_ask_threads(r->session->engine, t->pid, &flags) == -ENOTSUP ||
		    !(flags & HT_THREAD_DISPATCHES))
			continue;
		log_error(
			"record: cannot record PID %d: it handles its system calls itself "
			"(syscall user dispatch, as Wine does), so probes and a tap would harm it",
			t->pid);
		return -ENOTSUP;
	}
	return 0;
}

static int prepare_launch(struct recorder *r)
{
	struct err why;
	int err = launch_prepare(r->opts.argv, &r->launch);

	if (err) {
		log_error("record: %s", find_program_explain(r->opts.argv[0], err, &why));
		return err;
	}
	return targets_add_launched(&r->targets, r->launch->pid, r->launch->path);
}

/* Called early: little memory, one thread. */
static int start_guardian(struct recorder *r)
{
	int err = guardian_start(&r->guardian);

	if (err)
		log_error("record: cannot start the process that attaches: %s", strerror(-err));
	return err;
}

/* Runs in a child of the reader. */
static int run_job(uint32_t kind, int fd, const void *args, size_t args_bytes, int out_fd)
{
	return kind == HEAP_KIND_JOB ? heap_kind_run_job(args, args_bytes, out_fd) :
				       file_job_run(kind, fd, args, args_bytes, out_fd);
}

/* Without a reader, this process reads the target. */
static void start_reader(struct recorder *r)
{
	int err = reader_start(READER_PATIENT_MS, run_job, &r->targets.reader);

	if (err)
		log_warn("record: cannot start the process that reads the target's files (%s): "
			 "heaptap reads them itself",
			 strerror(-err));
}

int recorder_open(const struct recorder_options *opts, struct recorder **ret)
{
	struct recorder *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->opts = *opts;
	r->facts.exit_status = -1;
	r->facts.end_reason = "";
	err = start_guardian(r);
	if (!err)
		start_reader(r);
	if (!err && opts->pid_cnt)
		err = targets_check(&r->targets, opts->pids, opts->pid_cnt, opts->named_cnt);
	if (!err)
		err = choose_mode(r);
	if (!err)
		err = check_seccomp(r);
	if (!err && !opts->pid_cnt)
		err = prepare_launch(r);
	if (err) {
		recorder_close(r);
		return err;
	}
	*ret = r;
	return 0;
}

const struct targets *recorder_targets(const struct recorder *r)
{
	return &r->targets;
}

static void on_event(void *ctx, const struct ht_event *event)
{
	struct recorder *r = ctx;

	r->facts.unrecorded_cnt += event->kind == HT_EVENT_FORK && !r->opts.follow;
	tracker_on_event(r->session->tracker, event);
}

static void on_mmap(void *ctx, const struct process_events_map *map)
{
	struct recorder *r = ctx;

	tracker_on_mmap(r->session->tracker, map);
}

static void on_code(void *ctx, pid_t pid)
{
	struct recorder *r = ctx;

	tracker_on_code(r->session->tracker, pid);
}

static void on_lost(void *ctx, uint64_t cnt)
{
	struct recorder *r = ctx;

	log_debug("record: %llu mapping events lost, reading the mappings again",
		  (unsigned long long)cnt);
	tracker_on_lost(r->session->tracker);
}

static bool is_tapped_at_once(const struct recorder *r)
{
	return r->opts.tap == TAP_IF_POSSIBLE || r->opts.tap == TAP_ONLY;
}

static bool holds_programs(const struct recorder *r)
{
	return r->launch && !r->opts.no_hold && !is_tapped_at_once(r);
}

static bool is_auto_rate(const struct recorder *r)
{
	return !r->opts.rate_is_fixed && !is_tapped_at_once(r);
}

static pid_t process_of(const struct recorder *r, const struct exec_hold_stop *stop)
{
	struct process_info info;

	if (stop->is_exec || tracker_follows(r->session->tracker, stop->tid) ||
	    process_glance(r->targets.reader, stop->tid, &info))
		return stop->tid;
	return info.tgid;
}

/* All that was reported of the process until now happened before its stop. */
static void read_held(struct recorder *r, const struct exec_hold_stop *stop)
{
	pid_t pid = process_of(r, stop);
	bool traces = false;

	tracker_read_held(r->session->tracker, pid, stop->is_exec, stop->until_ns, &traces);
	if (!traces) {
		exec_hold_resume(r->hold, stop);
		return;
	}
	log_info(
		"record: PID %d uses ptrace itself, so heaptap cannot pause it at an exec: allocations "
		"right after one may be missed",
		pid);
	engine_mark_target(r->session->engine, pid, 0, HT_TARGET_HELD);
	exec_hold_detach(r->hold, pid);
}

/* Processes are held. */
static void on_hold(void *ctx, int fd)
{
	struct recorder *r = ctx;
	struct exec_hold_stop stop;

	(void)fd;
	while (!exec_hold_next(r->hold, &stop)) {
		engine_events_drain(r->session->engine);
		if (r->events)
			process_events_drain(r->events);
		read_held(r, &stop);
	}
}

/*
 * Make a started program wait at each exec until it is probed, with --follow also its children. guardian/exec_hold.h
 * says how, guardian/tracer.c what the program can see of it. Without holds the recording goes on; what it misses is
 * logged.
 */
static void begin_holds(struct recorder *r)
{
	pid_t pid = r->launch->pid;
	int err = exec_hold_new(r->guardian, &r->hold);

	if (!err)
		err = exec_hold_begin(r->hold, pid, r->opts.follow);
	if (!err)
		err = engine_mark_target(r->session->engine, pid, HT_TARGET_HELD, 0);
	if (!err) {
		(void)loop_watch(r->loop, exec_hold_fd(r->hold), on_hold, r);
		return;
	}
	log_warn("record: cannot pause the program at an exec (%s%s): allocations right "
		 "after one will be missing",
		 strerror(-err), err == -EPERM ? "; it may be traced already" : "");
	exec_hold_free(r->hold);
	r->hold = NULL;
}

/* Who traces the program keeps the tap out. */
static bool may_tap(void *ctx, pid_t pid)
{
	struct recorder *r = ctx;

	(void)pid;
	if (r->hold)
		loop_unwatch(r->loop, exec_hold_fd(r->hold));
	exec_hold_free(r->hold);
	r->hold = NULL;
	return true;
}

static int start_session(struct recorder *r)
{
	const bool is_several = r->opts.follow || r->targets.list.cnt > 1;
	const uint64_t throw_limit_bytes = targets_throw_limit(&r->targets);
	const struct session_options opts = {
		.engine = {
			.live_cap = r->opts.live_cap,
			.stack_cap = r->opts.stack_cap,
			.only_tgid = is_several ? 0 : r->targets.list.data[0].pid,
			.keeps_peak = true, /* and the sums of images, for the status line */
			.realloc_keeps_scope = r->opts.realloc_keeps_scope,
		},
		.ops = { .on_event = on_event },
		.ctx = r,
		.guardian = r->guardian,
		.governor = {
			.limit = r->opts.max_overhead,
			.rate_bytes = is_auto_rate(r) ? 0 : r->opts.rate_bytes,
			.program_argv = r->opts.argv,
			/* Children that come later would miss their first allocations. */
			.tap_share = r->launch && !r->opts.follow ? GOVERNOR_TAP_SHARE : 0,
			.keeps_ended = true,
			.is_one = r->opts.follow,
		},
		.rate_bytes = is_auto_rate(r) ? AUTO_RATE_USUAL : r->opts.rate_bytes,
		.finest_rate_bytes = is_auto_rate(r) ? AUTO_RATE_FINEST : 0,
		.throw_limit_bytes = throw_limit_bytes,
		.may_be_unlimited = true,
	};
	int err;

	r->session->policy = (struct track_policy){
		.reader = r->targets.reader,
		.is_patient = true,
		.holds = holds_programs(r),
		.follow = r->opts.follow,
		.alloc = r->opts.alloc,
		.source = r->opts.source,
		.tap_rate_bytes =
			is_tapped_at_once(r) || r->opts.tap == TAP_AUTO ? r->opts.rate_bytes : 0,
		.taps_on_request = r->opts.tap == TAP_AUTO,
		.may_tap = may_tap,
		.may_tap_ctx = r,
		.tap_rate_is_fixed = r->opts.rate_is_fixed,
	};
	err = session_start(r->session, &opts);
	if (err)
		return err;
	err = engine_set_throw_limit(r->session->engine, throw_limit_bytes);
	if (!err)
		err = idle_tasks_new(r->session->engine, &r->idle_tasks);
	if (!err)
		err = history_new(MOMENT_INTERVAL_NS, &r->history);
	if (err)
		log_error("record: cannot set up: %s", strerror(-err));
	return err;
}

static void on_ring(void *ctx, int fd)
{
	const struct recorder *r = ctx;

	(void)fd;
	engine_events_drain(r->session->engine);
}

static void on_mapping_events(void *ctx, int fd)
{
	const struct recorder *r = ctx;

	(void)fd;
	process_events_drain(r->events);
}

static int open_loop(struct recorder *r)
{
	static const struct process_events_ops ops = { on_mmap, on_code, on_lost };
	int err = process_events_open(&ops, r, &r->events);

	if (err) {
		log_warn("record: no mapping events (%s%s): libraries that are loaded later are "
			 "found late",
			 strerror(-err), privileges_perf_advice(err));
		r->events = NULL;
	}
	err = recorder_watch(r);
	if (!err)
		err = loop_watch(r->loop, engine_events_fd(r->session->engine), on_ring, r);
	if (!err && r->events)
		err = loop_watch(r->loop, process_events_fd(r->events), on_mapping_events, r);
	if (err)
		log_error("record: cannot set up: %s", strerror(-err));
	return err;
}

/* Say what will be missing because of the kind of program. */
void recorder_say_heap(const struct target *t)
{
	struct heap_words words;

	if (heap_words_partial(&t->heap, &words))
		log_msg(t->heap.is_go ? LOG_WARN : LOG_INFO, "record: PID %d (%s): %s; %s", t->pid,
			t->comm, words.what, words.advice);
}

static bool has_unseen(const struct recorder *r)
{
	const struct track_instance *inst;

	vec_each(&tracker_instances(r->session->tracker)->list, inst)
		if (inst->unseen[0])
			return true;
	return false;
}

static void say_heaps(const struct recorder *r, size_t site_cnt, size_t failed_cnt)
{
	char name[TARGETS_NAME_BYTES];
	const struct target *t;

	vec_each(&r->targets.list, t)
		if (site_cnt)
			recorder_say_heap(t);
	/* What could not be probed, or cannot be seen, is there, and was told. */
	if (site_cnt || failed_cnt || has_unseen(r))
		return;
	targets_name(&r->targets, name);
	if (r->opts.source == SOURCE_USDT)
		log_warn("record: no sampler in %s yet (looked for USDT probes of otel_memory and "
			 "ddheap): nothing is recorded until one is loaded; without --source usdt "
			 "its allocator is probed",
			 name);
	else
		log_warn("record: no known allocator in %s yet (looked for " HEAP_KIND_LOOKED_FOR
			 "): nothing is recorded until one is loaded; see: heaptap doctor -p %d",
			 name, r->targets.list.data[0].pid);
}

static void say_start(struct recorder *r)
{
	const struct probes_counts counts = tracker_counts(r->session->tracker).probes;
	char rate[UNITS_BUF], name[TARGETS_NAME_BYTES];

	if (counts.failed_cnt)
		log_warn("record: %zu probe sites or files could not be probed: %s",
			 counts.failed_cnt, recorder_failed_why(r, counts.failed_err));
	if (counts.throwing_cnt)
		log_warn("record: allocations of %zu functions that may throw (operator new) are "
			 "missing: on this kernel, an exception in a probed function would end "
			 "the program; --probe-throwing-new takes that risk",
			 counts.throwing_cnt);
	say_heaps(r, counts.site_cnt, counts.failed_cnt);
	if (r->opts.follow && !is_tapped_at_once(r))
		log_info("record: --follow: during the recording, every process that uses the "
			 "same allocator pays about %.0f ns per malloc and per free",
			 r->session->costs.emulated_ns);
	if (r->opts.is_quiet)
		return;
	targets_name(&r->targets, name);
	format_bytes(r->opts.rate_bytes, rate, sizeof(rate));
	fprintf(stderr, "heaptap: recording %s: %zu probe sites, %s%s%s, %s\n", name,
		counts.site_cnt, r->opts.rate_bytes > 1 ? "1 sample per " : "every allocation",
		r->opts.rate_bytes > 1 ? rate : "", r->opts.rate_is_fixed ? "" : " at first",
		r->opts.duration_ns ? "until the time is up" : "Ctrl-C to stop");
}

static int add_running(struct recorder *r, pid_t pid)
{
	int looks = 0, err = tracker_add(r->session->tracker, pid);

	while ((err == -ESRCH || err == -ENOENT) && target_may_return(pid, &looks)) {
		tracker_remove(r->session->tracker, pid);
		err = tracker_add(r->session->tracker, pid);
	}
	return err;
}

/* Remove one that ended before it could be attached to. */
static void targets_drop(struct targets *t, pid_t pid)
{
	for (size_t i = 0; i < t->list.cnt; i++) {
		if (t->list.data[i].pid != pid)
			continue;
		free(t->list.data[i].exe);
		memmove(&t->list.data[i], &t->list.data[i + 1],
			(t->list.cnt - i - 1) * sizeof(*t->list.data));
		t->list.cnt--;
		return;
	}
}

/* A process found by a rule may have ended meanwhile: the others are recorded. */
static int track_running(struct recorder *r)
{
	const struct tracker *t = r->session->tracker;
	const struct track_instance *inst;
	int err = -ESRCH;

	for (size_t i = 0; i < r->targets.list.cnt;) {
		pid_t pid = r->targets.list.data[i].pid;

		err = add_running(r, pid);
		if ((err == -ESRCH || err == -ENOENT) && r->targets.list.cnt > 1) {
			log_warn("record: PID %d ended before heaptap had attached", pid);
			tracker_remove(r->session->tracker, pid);
			targets_drop(&r->targets, pid);
			continue;
		}
		if (err == -ESRCH || err == -ENOENT)
			log_error("record: PID %d ended before heaptap had attached", pid);
		else if (err)
			log_error("record: cannot attach to PID %d: %s", pid, strerror(-err));
		if (err)
			return err;
		inst = instances_find(tracker_instances(t), pid, tracker_generation(t, pid));
		if (r->opts.tap == TAP_ONLY && inst && inst->is_tap_refused) {
			log_error("record: --tap=only: PID %d is not recorded", pid);
			return -ENOTSUP;
		}
		i++;
	}
	err = r->opts.follow ? family_add(r->session->engine, r->session->tracker, &r->targets) : 0;
	if (err)
		log_error("record: cannot attach to the children: %s", strerror(-err));
	return err;
}

/* Refuse Go programs without a loader: nothing would ever be seen. And if all have ended, their files may have gone
 * before anything was found in them. */
static int check_heaps(const struct recorder *r)
{
	const struct target *t;
	struct heap_words words;
	bool is_over = true;

	if (r->opts.follow || tracker_counts(r->session->tracker).probes.site_cnt)
		return 0;
	vec_each(&r->targets.list, t)
		is_over = is_over && process_has_ended(r->targets.reader, t->pid);
	if (is_over) {
		t = &r->targets.list.data[0];
		log_error("record: PID %d (%s) ended before heaptap had attached", t->pid, t->comm);
		return -ESRCH;
	}
	vec_each(&r->targets.list, t)
		if (!t->heap.is_go || !t->heap.is_static)
			return 0;
	t = &r->targets.list.data[0];
	heap_words_none(&t->heap, &words);
	log_error("record: cannot record PID %d (%s): %s (looked for " HEAP_KIND_LOOKED_FOR "); %s",
		  t->pid, t->comm, words.what, words.advice);
	return -ENOTSUP;
}

/* Paths that the program will map, from launch_libraries(). */
struct path_list {
	VEC(char *) path;
	int err;
};

static void on_library(void *ctx, const char *path)
{
	struct path_list *list = ctx;
	char *copy = strdup(path);

	if (!copy || vec_push(&list->path, copy)) {
		free(copy);
		list->err = -ENOMEM;
	}
}

/* Its process waits to execute it: probe the files of the program before it is started, and fill in its heap. */
static int track_started(struct recorder *r)
{
	struct target *t = &r->targets.list.data[0];
	struct path_list list = { 0 };
	int err = launch_libraries(r->opts.argv, on_library, &list);

	if (err >= 0)
		err = list.err;
	if (!err) {
		const char *const *paths = (const char *const *)list.path.data;

		heap_kind_of_files(r->targets.reader, paths, list.path.cnt, &t->heap);
		err = tracker_add_launch(r->session->tracker, t->pid, paths, list.path.cnt);
	}
	for (size_t i = 0; i < list.path.cnt; i++)
		free(list.path.data[i]);
	vec_release(&list.path);
	return err;
}

static void begin_rows(struct recorder *r)
{
	const struct target *list = r->targets.list.data;

	for (size_t i = 1; i < r->targets.list.cnt; i++)
		if (list[i].rss_begin_bytes > list[r->rows_target].rss_begin_bytes)
			r->rows_target = i;
	r->has_rows = true;
	if (r->has_rows && r->launch) /* it has nothing yet */
		r->rows_begin =
			(struct rows_reader){ .is_over = true,
					      .answer = { .is_known = true, .is_proved = true } };
	else if (r->has_rows)
		rows_reader_begin(&r->rows_begin, list[r->rows_target].pid,
				  list[r->rows_target].rss_begin_bytes, ROWS_MOST_NS, NULL);
}

int recorder_start(struct recorder *r)
{
	int err = recorder_loop_new(r);

	if (err) {
		log_error("record: cannot set up: %s", strerror(-err));
		return err;
	}
	err = start_session(r);
	if (!err)
		err = check_dispatch(r);
	if (!err)
		err = open_loop(r);
	if (err)
		return err;
	r->session->policy.taps_are_patient = true;
	if (!r->launch) {
		err = track_running(r);
		if (!err)
			err = check_heaps(r);
	} else {
		err = track_started(r);
		if (err)
			log_error("record: cannot attach to '%s': %s", r->opts.argv[0],
				  strerror(-err));
	}
	r->session->policy.taps_are_patient = false;
	if (err)
		return err;
	r->facts.begin_ns = now_ns();
	r->facts.begin_epoch_ns = clock_ns(CLOCK_REALTIME);
	begin_rows(r);
	say_start(r);
	/* What a program maps in its first milliseconds must be read before its threads allocate. */
	thread_use_short_slices();
	if (r->launch) {
		if (holds_programs(r))
			begin_holds(r);
		err = launch_go(r->launch);
		if (err) {
			struct err why;

			log_error("record: %s", find_program_explain(r->opts.argv[0], err, &why));
		}
	}
	return err;
}
