/* SPDX-License-Identifier: MIT */
/*
 * daemon.c - see daemon.h and daemon_priv.h.
 *
 * Sets up the parts in the order in which things can be refused, changes them when the configuration does, and
 * takes them down. Their work in between begins in daemon_loop.c.
 */
#include "serve/daemon_priv.h"

#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/units.h"
#include "guardian/guardian.h"
#include "http/http.h"
#include "http/past.h"
#include "kernel/engine.h"
#include "proc/process.h"
#include "proc/reader.h"
#include "proc/select.h"
#include "record/rows_reader.h"
#include "result/saver.h"
#include "serve/follow.h"
#include "serve/pushes.h"
#include "symbol/symbol.h"
#include "track/file_content.h"
#include "track/governor.h"
#include "track/session.h"
#include "track/tracker.h"

/* An unmapped file is noticed after this at the latest. */
#define REFRESH_NS (60 * NS_PER_S)

static void on_event(void *ctx, const struct ht_event *event)
{
	struct daemon *d = ctx;

	ticks_on_event(d->ticks, event);
}

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

	return !process_glance(pid, &info) &&
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
	const struct live_view_options view_opts = {
		.scopes_max = d->opts.metrics_scopes,
		.live_cap = d->opts.live_cap,
		.stack_cap = d->opts.stack_cap,
		.rows_interval_ns = d->opts.rows_interval_ns,
	};
	int err;

	d->source = (struct result_source){
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
	return err ? err : live_view_new(&d->source, &view_opts, &d->live_view);
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
	err = reader_start(READER_PROMPT_MS, run_job);
	if (err) {
		log_error("serve: cannot start the process that reads: %s", strerror(-err));
		return err;
	}
	err = slow_files_new(&d->slow);
	if (!err)
		err = name_cache_new(&d->names);
	if (!err)
		err = daemon_loop_open(d);
	if (!err)
		err = make_tap_rules(d);
	if (!err)
		err = session_new("serve", d->opts.mode, &d->session);
	if (!err)
		err = requests_open(d->opts.listen, d->opts.token_file, &d->requests);
	if (err)
		return err;
	d->http = requests_server(d->requests);
	err = saver_open(&d->opts.keep, &d->saver);
	if (!err)
		err = pushes_open(&d->opts.pushes, d->loop, &d->pushes);
	if (!err)
		err = start_session(d);
	if (!err)
		err = follow_new(d->session->engine, d->session->tracker, &follow_opts, &d->follow);
	if (!err)
		err = open_profiles(d);
	if (!err)
		err = ticks_open(d, &d->ticks);
	if (!err)
		err = daemon_loop_start(d);
	return err;
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
	const struct requests_parts parts = {
		.tracker = d->session->tracker,
		.source = &d->source,
		.follow = d->follow,
		.live_view = d->live_view,
		.profiles = d->profiles,
		.pushes = d->pushes,
		.saver = d->saver,
	};

	saver_start(d->saver, &d->source, d->loop);
	requests_start(d->requests, &parts);
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
		err = ticks_scan(d->ticks);
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

int daemon_run(struct daemon *d, enum daemon_wish *ret)
{
	bool wants_reload = false;
	int err = daemon_loop_run(d, &wants_reload);

	*ret = wants_reload ? DAEMON_RELOAD : DAEMON_END;
	return err;
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
	/* These stay: they need a new start. */
	enum probes_source source = d->opts.source;
	enum sharing sharing = d->opts.sharing;
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
	d->opts.source = source;
	d->opts.sharing = sharing;
	ticks_scan(d->ticks);
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
	ticks_close(d->ticks);
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
	reader_end();
	free(d);
}
