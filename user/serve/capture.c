/* SPDX-License-Identifier: MIT */
/* capture.c - see daemon_priv.h. */
#include "serve/daemon_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "budget/governor.h"
#include "guardian/guardian.h"
#include "kernel/engine.h"
#include "kernel/features.h"
#include "alloc/allocators.h"
#include "track/files.h"
#include "proc/process.h"
#include "proc/select.h"
#include "track/tap_rate.h"
#include "track/tracker.h"

/* A file that was unmapped is noticed after this, if not before. */
#define REFRESH_NS (60 * NS_PER_S)

struct capture {
	struct capture_options opts;
	struct engine_ops ops;
	void *ctx; /* of ops */
	struct kernel_features features;
	enum attach_mode mode; /* that was chosen */
	bool has_events; /* processes can share probes */
	struct plan_costs costs;
	struct engine *engine;
	struct track_files *files;
	struct tracker *tracker;
	struct governor *governor;
	struct select_rules *tap_rules; /* NULL: nobody may be tapped */
};

static int check_kernel(struct capture *c)
{
	enum attach_mode wanted = c->opts.mode;
	int err = kernel_features_probe(&c->features);

	if (err) {
		log_error("serve: cannot probe the kernel: %s", strerror(-err));
		return err;
	}
	if (!kernel_features_suffice(&c->features)) {
		log_error("serve: %s", c->features.why);
		return -ENOTSUP;
	}
	err = kernel_features_choose_mode(&c->features, wanted, &c->mode);
	if (err)
		log_error("serve: this kernel has no '%s' uprobes; see: heaptap doctor",
			  attach_mode_name(wanted));
	return err;
}

/* Without, every process has links of its own, unless all may pay. */
static int open_uprobe_events(struct capture *c)
{
	size_t removed_cnt = 0;
	char why[256];
	int err = guardian_open_events(c->opts.guardian, &removed_cnt, why, sizeof(why));

	if (removed_cnt)
		log_info("serve: removed %zu probe definitions that a killed heaptap has left",
			 removed_cnt);
	c->has_events = !err;
	if (!err)
		return 0;
	if (c->opts.way == PLAN_EVENT) {
		log_error("serve: processes cannot share probes: %s", why);
		return err;
	}
	log_warn("serve: many processes that use one library will slow each other down, because "
		 "they cannot share probes: %s",
		 why);
	return 0;
}

static void measure_costs(struct capture *c)
{
	struct probe_costs costs;

	if (probe_costs_measure(&c->features, &costs))
		return; /* the planner has figures of its own */
	c->costs = (struct plan_costs){ costs.emulated_ns, costs.return_ns };
}

static bool may_tap(void *ctx, pid_t pid)
{
	const struct capture *c = ctx;
	struct process_info info;

	return !process_glance(pid, &info) &&
	       select_matches(c->tap_rules,
			      &(struct select_candidate){ .comm = info.comm, .exe = info.exe });
}

static int make_tap_rules(struct capture *c)
{
	const struct select_options opts = { .comm = *c->opts.tap, .exe = *c->opts.tap_exe };
	char why[512];
	int err = opts.comm.cnt || opts.exe.cnt ?
			  select_rules_new(&opts, &c->tap_rules, why, sizeof(why)) :
			  0;

	if (err)
		log_error("serve: --tap or --tap-exe: %s", why);
	return err;
}

static int open_engine(struct capture *c)
{
	const struct engine_options opts = {
		.mode = c->mode,
		.live_cap = (uint32_t)c->opts.live_cap,
		.stack_cap = (uint32_t)c->opts.stack_cap,
		.has_events = c->has_events,
		.is_verbose = log_get_level() >= LOG_DEBUG,
	};
	const struct alloc_options alloc_opts = { 0 };
	const struct tracker_options track_opts = {
		.refresh_ns = REFRESH_NS,
		.is_all = c->opts.is_all || c->opts.way == PLAN_ALL,
		.source = c->opts.source,
		.tap_rate_bytes = c->tap_rules ? TAP_RATE_FINEST : 0,
		.may_tap = may_tap,
		.may_tap_ctx = c,
		.way = c->opts.way,
		.guardian = c->opts.guardian,
		.has_events = c->has_events,
		.costs = c->costs,
	};
	char why[512];
	int err = engine_open(&opts, &c->features, &c->ops, c->ctx, &c->engine, why, sizeof(why));

	if (err) {
		log_error("serve: %s", why);
		return err;
	}
	/* The limit of what throws is set before each attachment. */
	err = engine_set_rate(c->engine, 0, c->opts.rate_bytes, 0);
	if (!err)
		err = track_files_new(c->engine, &alloc_opts, &c->files);
	if (!err)
		err = tracker_new(c->engine, c->files, &track_opts, &c->tracker);
	if (err)
		log_error("serve: cannot set up: %s", strerror(-err));
	return err;
}

/* What a hit costs is measured before there are any. */
static int open_governor(struct capture *c)
{
	struct governor_options opts = {
		.command = "serve",
		.limit = c->opts.max_overhead,
		.max_host_share = c->opts.max_overhead_host,
		.rate_bytes = c->opts.rate_bytes,
	};
	struct probe_costs costs;
	int err;

	if (probe_costs_measure(&c->features, &costs)) {
		bool is_limited = budget_has_limit(&opts.limit) || opts.max_host_share > 0;

		log_error("serve: the cost of a probe could not be measured, so that the overhead "
			  "cannot be limited%s",
			  is_limited ? "; --max-overhead off --max-overhead-host off goes without" :
				       "");
		if (is_limited)
			return -EIO;
	}
	opts.costs = (struct budget_costs){ costs.emulated_ns, costs.stepped_ns, costs.return_ns };
	err = governor_new(c->engine, c->tracker, &opts, &c->governor);
	if (err)
		log_error("serve: cannot set up: %s", strerror(-err));
	return err;
}

int capture_new(const struct capture_options *opts, const struct engine_ops *ops, void *ctx,
		struct capture **ret)
{
	struct capture *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	c->opts = *opts;
	c->ops = *ops;
	c->ctx = ctx;
	err = make_tap_rules(c);
	c->opts.tap = c->opts.tap_exe = NULL;
	if (!err)
		err = check_kernel(c);
	if (err) {
		capture_free(c);
		return err;
	}
	*ret = c;
	return 0;
}

int capture_start(struct capture *c)
{
	int err = open_uprobe_events(c);

	if (err)
		return err;
	measure_costs(c);
	err = open_engine(c);
	return err ? err : open_governor(c);
}

void capture_stop(struct capture *c)
{
	if (!c)
		return;
	governor_free(c->governor);
	tracker_free(c->tracker);
	c->governor = NULL;
	c->tracker = NULL;
}

void capture_free(struct capture *c)
{
	if (!c)
		return;
	capture_stop(c);
	track_files_free(c->files);
	engine_close(c->engine);
	select_rules_free(c->tap_rules);
	free(c);
}

enum attach_mode capture_mode(const struct capture *c)
{
	return c->mode;
}

struct engine *capture_engine(const struct capture *c)
{
	return c->engine;
}

struct track_files *capture_files(const struct capture *c)
{
	return c->files;
}

struct tracker *capture_tracker(const struct capture *c)
{
	return c->tracker;
}

struct governor *capture_governor(const struct capture *c)
{
	return c->governor;
}
