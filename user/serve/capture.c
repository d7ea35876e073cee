/* SPDX-License-Identifier: MIT */
/* capture.c - see daemon_priv.h. */
#include "serve/daemon_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "guardian/guardian.h"
#include "proc/process.h"
#include "proc/select.h"
#include "session/session.h"
#include "track/tap_rate.h"

/* An unmapped file is noticed after this at the latest. */
#define REFRESH_NS (60 * NS_PER_S)

struct capture {
	struct capture_options opts;
	struct session *session;
	struct select_rules *tap_rules; /* NULL: no process may be tapped */
};

/* Without uprobe events every process has links of its own, unless all may pay. */
static int open_uprobe_events(const struct capture *c, bool *ret_has_events)
{
	size_t removed_cnt = 0;
	struct err why;
	int err = guardian_open_events(c->opts.guardian, &removed_cnt, &why);

	if (removed_cnt)
		log_info("serve: removed %zu probe definitions that a killed heaptap has left",
			 removed_cnt);
	*ret_has_events = !err;
	if (!err)
		return 0;
	if (c->opts.sharing == SHARING_EVENT) {
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
	const struct capture *c = ctx;
	struct process_info info;

	return !process_glance(pid, &info) &&
	       select_matches(c->tap_rules,
			      &(struct select_candidate){ .comm = info.comm, .exe = info.exe });
}

static int make_tap_rules(struct capture *c)
{
	const struct select_options opts = { .comm = *c->opts.tap, .exe = *c->opts.tap_exe };
	struct err why;
	int err = opts.comm.cnt || opts.exe.cnt ? select_rules_new(&opts, &c->tap_rules, &why) : 0;

	if (err)
		log_error("serve: --tap or --tap-exe: %s", why.text);
	return err;
}

int capture_new(const struct capture_options *opts, struct capture **ret,
		struct session **ret_session)
{
	struct capture *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	c->opts = *opts;
	err = make_tap_rules(c);
	c->opts.tap = c->opts.tap_exe = NULL;
	if (!err)
		err = session_new("serve", opts->mode, &c->session);
	if (err) {
		capture_free(c);
		return err;
	}
	*ret = c;
	*ret_session = c->session;
	return 0;
}

int capture_start(struct capture *c, void (*on_event)(void *ctx, const struct ht_event *event),
		  void *ctx)
{
	bool has_events = false;
	int err = open_uprobe_events(c, &has_events);
	const struct session_options opts = {
		.engine = {
			.live_cap = (uint32_t)c->opts.live_cap,
			.stack_cap = (uint32_t)c->opts.stack_cap,
			.has_events = has_events,
		},
		.ops = { .on_event = on_event },
		.ctx = ctx,
		.track = {
			.refresh_ns = REFRESH_NS,
			.is_all = c->opts.is_all || c->opts.sharing == SHARING_ALL,
			.source = c->opts.source,
			.tap_rate_bytes = c->tap_rules ? TAP_RATE_FINEST : 0,
			.may_tap = may_tap,
			.may_tap_ctx = c,
			.sharing = c->opts.sharing,
			.guardian = c->opts.guardian,
			.has_events = has_events,
		},
		.governor = {
			.limit = c->opts.max_overhead,
			.max_host_share = c->opts.max_overhead_host,
			.rate_bytes = c->opts.rate_bytes,
		},
		/* The limit for throwing functions is set before each attachment. */
		.rate_bytes = c->opts.rate_bytes,
	};

	return err ? err : session_start(c->session, &opts);
}

void capture_free(struct capture *c)
{
	if (!c)
		return;
	session_free(c->session);
	select_rules_free(c->tap_rules);
	free(c);
}
