/* SPDX-License-Identifier: MIT */
/*
 * recorder_open.c - a recorder from its options to the first allocation that it sees; see recorder.h.
 *
 * Everything that can be refused is refused in recorder_open(), before any probe is attached. A guardian holds all probes:
 * however this process ends, it takes them out.
 */
#include "record/recorder_priv.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/units.h"
#include "budget/auto_rate.h"
#include "budget/governor.h"
#include "guardian/guardian.h"
#include "kernel/engine.h"
#include "profile/history.h"
#include "kernel/features.h"
#include "kernel/privileges.h"
#include "kernel/seccomp_probe.h"
#include "record/holds.h"
#include "record/idle_tasks.h"
#include "record/targets.h"
#include "alloc/allocators.h"
#include "proc/events.h"
#include "proc/find_program.h"
#include "proc/launch.h"
#include "proc/reader.h"
#include "track/file_job.h"
#include "track/files.h"
#include "track/followed.h"
#include "track/tracker.h"

#define TICK_NS 200000000ULL /* of the status line and of work that waits */

/* From here on SIGINT and SIGTERM end the recording normally. */
static int take_signals(struct recorder *r)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, &r->old_mask))
		return -errno;
	r->mask_is_set = true;
	signal(SIGPIPE, SIG_IGN);
	r->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return r->signal_fd < 0 ? -errno : 0;
}

static int check_kernel(struct recorder *r)
{
	int err = kernel_features_probe(&r->features);
	enum attach_mode wanted = r->opts.mode;
	bool is_main_thread_gone = false;
	const struct target *t;

	if (err) {
		log_error("record: cannot probe the kernel: %s", strerror(-err));
		return err;
	}
	if (!kernel_features_suffice(&r->features)) {
		log_error("record: %s", r->features.why);
		return -ENOTSUP;
	}
	/* A multi link on a process whose main thread is gone attaches and never fires. */
	vec_each(&r->targets.list, t)
		is_main_thread_gone |= t->is_main_thread_gone;
	if (wanted == ATTACH_AUTO && is_main_thread_gone && r->features.perf_uprobe)
		wanted = ATTACH_PERF;
	err = kernel_features_choose_mode(&r->features, wanted, &r->opts.mode);
	if (err)
		log_error("record: this kernel has no '%s' uprobes; see: heaptap doctor",
			  attach_mode_name(wanted));
	return err;
}

/* A return probe may be what a strict seccomp filter kills the target for. */
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
		"record: PID %d runs under seccomp, and on this kernel its filter would kill it at "
		"the end of a return probe; needs a kernel older than 6.11, or 6.14 and later (or "
		"a stable one with its fix)",
		pid);
	return -ENOTSUP;
}

static int prepare_launch(struct recorder *r)
{
	char why[512];
	int err = launch_prepare(r->opts.argv, &r->launch);

	if (err) {
		log_error("record: %s",
			  find_program_explain(r->opts.argv[0], err, why, sizeof(why)));
		return err;
	}
	return targets_add_launched(&r->targets, launch_pid(r->launch), launch_path(r->launch));
}

/* While there is little memory and one thread. */
static int start_guardian(struct recorder *r)
{
	int err = guardian_start(&r->guardian);

	if (err)
		log_error("record: cannot start the process that attaches: %s", strerror(-err));
	return err;
}

/* Without it the target is read here. */
static void start_reader(void)
{
	int err = reader_start(READER_PATIENT_MS, file_job_run);

	if (err)
		log_warn(
			"record: cannot start the process that reads the target's files (%s): it is "
			"done without",
			strerror(-err));
}

int recorder_open(const struct recorder_options *opts, struct recorder **ret)
{
	struct recorder *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->opts = *opts;
	r->epoll_fd = r->signal_fd = r->tick_fd = -1;
	r->facts.exit_status = -1;
	r->facts.end_reason = "";
	err = start_guardian(r);
	if (!err)
		start_reader();
	if (!err && opts->pid_cnt)
		err = targets_check(&r->targets, opts->pids, opts->pid_cnt, opts->named_cnt);
	if (!err)
		err = check_kernel(r);
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

	tracker_on_event(r->tracker, event);
}

static void on_mmap(void *ctx, pid_t pid, uint64_t addr, uint64_t bytes, uint64_t off, uint32_t dev,
		    uint64_t ino, const char *path)
{
	struct recorder *r = ctx;

	(void)addr, (void)bytes, (void)off, (void)dev, (void)ino, (void)path;
	tracker_on_mmap(r->tracker, pid);
}

static void on_code(void *ctx, pid_t pid)
{
	struct recorder *r = ctx;

	tracker_on_code(r->tracker, pid);
}

static void on_lost(void *ctx, uint64_t cnt)
{
	struct recorder *r = ctx;

	log_debug("record: %llu mapping events lost, reading the mappings again",
		  (unsigned long long)cnt);
	tracker_on_lost(r->tracker);
}

static bool holds_programs(const struct recorder *r)
{
	return r->launch && !r->opts.no_hold && !r->opts.tap;
}

static bool is_auto_rate(const struct recorder *r)
{
	return !r->opts.rate_is_fixed && !r->opts.tap;
}

static int open_engine(struct recorder *r)
{
	const struct engine_options opts = {
		.mode = r->opts.mode,
		.live_cap = r->opts.live_cap,
		.stack_cap = r->opts.stack_cap,
		.only_tgid =
			r->opts.follow || r->targets.list.cnt > 1 ? 0 : r->targets.list.data[0].pid,
		.holds = holds_programs(r),
		.sums_images = !r->opts.is_quiet, /* for the status line */
		.realloc_keeps_scope = r->opts.realloc_keeps_scope,
		.is_verbose = log_get_level() >= LOG_DEBUG,
	};
	const struct engine_ops ops = { .on_event = on_event };
	const struct alloc_options alloc_opts = { .naive = r->opts.naive_placement,
						  .probe_throwing = r->opts.probe_throwing };
	const struct tracker_options track_opts = {
		.guardian = r->guardian,
		.is_patient = true,
		.holds = holds_programs(r),
		.follow = r->opts.follow,
		.source = r->opts.source,
		.tap_rate_bytes = r->opts.tap ? r->opts.rate_bytes : 0,
		.tap_rate_is_fixed = r->opts.rate_is_fixed,
		.probe_throwing = r->opts.probe_throwing,
	};
	char why[512];
	int err = engine_open(&opts, &r->features, &ops, r, &r->engine, why, sizeof(why));

	if (err) {
		log_error("record: %s", why);
		return err;
	}
	if (is_auto_rate(r))
		engine_set_finest_rate(r->engine, AUTO_RATE_FINEST);
	err = engine_set_rate(r->engine, 0, is_auto_rate(r) ? AUTO_RATE_USUAL : r->opts.rate_bytes,
			      targets_throw_limit(&r->targets));
	if (!err)
		err = track_files_new(r->engine, &alloc_opts, &r->files);
	if (!err)
		err = tracker_new(r->engine, r->files, &track_opts, &r->tracker);
	if (!err)
		err = idle_tasks_new(r->engine, &r->idle_tasks);
	if (!err)
		err = history_new(MOMENT_INTERVAL_NS, &r->history);
	if (err)
		log_error("record: cannot set up: %s", strerror(-err));
	return err;
}

/* What a hit costs is measured before there are any. */
static int open_governor(struct recorder *r)
{
	struct governor_options opts = {
		.command = "record",
		.limit = r->opts.max_overhead,
		.rate_bytes = is_auto_rate(r) ? 0 : r->opts.rate_bytes,
		.keeps_ended = true,
		.is_one = r->opts.follow,
	};
	int err;

	if (probe_costs_measure(&r->features, &r->costs)) {
		log_warn("record: the cost of a probe could not be measured: the overhead is not "
			 "known, and not limited");
		opts.limit = BUDGET_NO_LIMIT;
	}
	opts.costs = (struct budget_costs){ r->costs.emulated_ns, r->costs.stepped_ns,
					    r->costs.return_ns };
	err = governor_new(r->engine, r->tracker, &opts, &r->governor);
	if (!err)
		err = engine_set_throw_limit(r->engine, targets_throw_limit(&r->targets));
	if (err)
		log_error("record: cannot set up: %s", strerror(-err));
	return err;
}

static int watch(struct recorder *r, int fd, enum source source)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = source };

	return epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

/* No events are asked for: that the other end is closed is always told. A file has none: -EPERM. */
static void watch_reader(struct recorder *r)
{
	struct epoll_event ev = { .events = 0, .data.u32 = SOURCE_READER };

	if (r->opts.stdout_fd >= 0)
		(void)epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, r->opts.stdout_fd, &ev);
}

static int open_loop(struct recorder *r)
{
	static const struct process_events_ops ops = { on_mmap, on_code, on_lost };
	struct itimerspec tick = { .it_interval.tv_nsec = TICK_NS, .it_value.tv_nsec = TICK_NS };
	int err = process_events_open(&ops, r, &r->events);

	if (err) {
		log_warn("record: mapping events are not available (%s%s): libraries that are "
			 "loaded later are found late",
			 strerror(-err), privileges_perf_advice(err));
		r->events = NULL;
	}
	r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	r->tick_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (r->epoll_fd < 0 || r->tick_fd < 0 || timerfd_settime(r->tick_fd, 0, &tick, NULL))
		return -errno;
	err = watch(r, r->signal_fd, SOURCE_SIGNAL);
	if (!err)
		err = watch(r, r->tick_fd, SOURCE_TICK);
	if (!err)
		err = watch(r, engine_events_fd(r->engine), SOURCE_RING);
	if (!err)
		err = watch(r, guardian_fd(r->guardian), SOURCE_GUARDIAN);
	if (!err && r->events)
		err = watch(r, process_events_fd(r->events), SOURCE_MMAP);
	if (!err && r->launch)
		err = watch(r, launch_wait_fd(r->launch), SOURCE_CHILD);
	if (!err)
		watch_reader(r);
	if (!err && r->opts.guest)
		err = watch(r, r->opts.guest->fd, SOURCE_GUEST);
	return err;
}

/* What will be missing because of what the programs are. */
void recorder_say_heap(const struct target *t)
{
	struct heap_words words;

	if (heap_words_partial(&t->heap, &words))
		log_msg(t->heap.is_go ? LOG_WARN : LOG_INFO, "record: PID %d (%s): %s; %s", t->pid,
			t->comm, words.what, words.advice);
}

static void say_heaps(const struct recorder *r, size_t site_cnt)
{
	char name[TARGETS_NAME_BYTES];
	const struct target *t;

	vec_each(&r->targets.list, t)
		if (site_cnt)
			recorder_say_heap(t);
	if (site_cnt)
		return;
	targets_name(&r->targets, name);
	if (r->opts.source == SOURCE_USDT)
		log_warn("record: no sampler in %s yet (looked for USDT probes of otel_memory and "
			 "ddheap): nothing will be seen until one is loaded; without --source usdt "
			 "its allocator is probed",
			 name);
	else
		log_warn("record: no known allocator in %s yet (looked for " HEAP_KIND_LOOKED_FOR
			 "): nothing will be seen until one is loaded; see: heaptap doctor -p %d",
			 name, r->targets.list.data[0].pid);
}

static void say_start(struct recorder *r)
{
	size_t failed_cnt, site_cnt = tracker_site_cnt(r->tracker);
	char rate[UNITS_BUF], name[TARGETS_NAME_BYTES];
	int err;

	failed_cnt = tracker_failed_cnt(r->tracker, &err);
	if (failed_cnt)
		log_warn("record: %zu probe sites or files could not be had: %s", failed_cnt,
			 strerror(-err));
	if (tracker_throwing_cnt(r->tracker))
		log_warn("record: %zu functions that throw (operator new of the allocator) are not "
			 "probed: on this kernel a new that fails would end the program. What they "
			 "allocate is missing; --probe-throwing-new records it at that risk",
			 tracker_throwing_cnt(r->tracker));
	say_heaps(r, site_cnt);
	if (r->opts.follow && !r->opts.tap)
		log_info("record: --follow: until the end, every process that uses the same "
			 "allocator pays about %.0f ns per malloc and per free",
			 r->costs.emulated_ns);
	if (r->opts.is_quiet)
		return;
	targets_name(&r->targets, name);
	format_bytes(r->opts.rate_bytes, rate, sizeof(rate));
	fprintf(stderr, "heaptap: recording %s: %zu probe sites, %s%s%s, %s\n", name, site_cnt,
		r->opts.rate_bytes > 1 ? "1 sample per " : "every allocation",
		r->opts.rate_bytes > 1 ? rate : "", r->opts.rate_is_fixed ? "" : " at first",
		r->opts.duration_ns ? "until the time is up" : "Ctrl-C to stop");
}

/* A descriptor per file and per link; the started program has its own limits already. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* One that was found by a rule may have ended meanwhile: the others are recorded. */
static int track_running(struct recorder *r)
{
	int err = -ESRCH;

	for (size_t i = 0; i < r->targets.list.cnt;) {
		pid_t pid = r->targets.list.data[i].pid;

		err = tracker_add(r->tracker, pid);
		if ((err == -ESRCH || err == -ENOENT) && r->targets.list.cnt > 1) {
			log_warn("record: PID %d ended while it was being attached to", pid);
			tracker_remove(r->tracker, pid);
			targets_drop(&r->targets, pid);
			continue;
		}
		if (err == -ESRCH || err == -ENOENT)
			log_error("record: PID %d ended while it was being attached to", pid);
		else if (err)
			log_error("record: cannot attach to PID %d: %s", pid, strerror(-err));
		if (err)
			return err;
		if (tracker_is_tap_refused(r->tracker, pid) && r->opts.tap == TAP_ONLY) {
			log_error("record: --tap=only: PID %d is not recorded", pid);
			return -ENOTSUP;
		}
		i++;
	}
	err = r->opts.follow ? family_add(r->engine, r->tracker, &r->targets) : 0;
	if (err)
		log_error("record: cannot attach to the children: %s", strerror(-err));
	return err;
}

/* Go programs without a loader: whatever they do, nothing would be seen. And the files of one that ended
 * may have gone before anything was found in them. */
static int check_heaps(const struct recorder *r)
{
	const struct target *t;
	struct heap_words words;
	bool is_over = true;

	if (r->opts.follow || tracker_site_cnt(r->tracker))
		return 0;
	vec_each(&r->targets.list, t)
		is_over = is_over && followed_has_ended(t->pid);
	if (is_over) {
		t = &r->targets.list.data[0];
		log_error("record: PID %d (%s) ended while it was being attached to", t->pid,
			  t->comm);
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

/* Without them the recording goes on; what is missed by that is said. */
static void begin_holds(struct recorder *r)
{
	const struct holds_parts parts = { r->guardian, r->engine, r->tracker, r->events };

	if (holds_programs(r) &&
	    !holds_begin(&parts, launch_pid(r->launch), r->opts.follow, &r->holds))
		(void)watch(r, holds_fd(r->holds), SOURCE_HOLD);
}

int recorder_start(struct recorder *r)
{
	int err = take_signals(r);

	raise_file_limit();
	if (!err)
		err = open_engine(r);
	if (err)
		return err;
	err = open_governor(r);
	if (!err)
		err = open_loop(r);
	if (err) {
		log_error("record: cannot set up: %s", strerror(-err));
		return err;
	}
	if (!r->launch) {
		err = track_running(r);
		if (!err)
			err = check_heaps(r);
	} else {
		err = started_track(r->tracker, &r->targets.list.data[0], r->opts.argv);
		if (err)
			log_error("record: cannot attach to '%s': %s", r->opts.argv[0],
				  strerror(-err));
	}
	if (err)
		return err;
	r->facts.begin_ns = now_ns();
	r->facts.begin_epoch_ns = clock_ns(CLOCK_REALTIME);
	say_start(r);
	/* What a program maps in its first milliseconds is to be read before its threads allocate. */
	thread_be_prompt();
	if (r->launch) {
		begin_holds(r);
		err = launch_go(r->launch);
		if (err) {
			char why[512];

			log_error("record: %s",
				  find_program_explain(r->opts.argv[0], err, why, sizeof(why)));
		}
	}
	return err;
}
