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

/* An unmapped file is noticed after this at the latest. */
#define REFRESH_NS (60 * NS_PER_S)

struct capture {
	struct session *session;
	struct select_rules *tap_rules; /* NULL: no process may be tapped */
};

/* Without uprobe events every process has links of its own, unless all may pay. */
static int open_uprobe_events(struct guardian *guardian, enum sharing wanted, bool *ret_has_events)
{
	size_t removed_cnt = 0;
	struct err why;
	int err = guardian_open_events(guardian, &removed_cnt, &why);

	if (removed_cnt)
		log_info("serve: removed %zu probe definitions that a killed heaptap has left",
			 removed_cnt);
	*ret_has_events = !err;
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
	const struct capture *c = ctx;
	struct process_info info;

	return !process_glance(pid, &info) &&
	       select_matches(c->tap_rules,
			      &(struct select_candidate){ .comm = info.comm, .exe = info.exe });
}

static int make_tap_rules(struct capture *c, const struct daemon_options *opts)
{
	const struct select_options who = { .comm = opts->tap, .exe = opts->tap_exe };
	struct err why;
	int err = who.comm.cnt || who.exe.cnt ? select_rules_new(&who, &c->tap_rules, &why) : 0;

	if (err)
		log_error("serve: --tap or --tap-exe: %s", why.text);
	return err;
}

int capture_new(const struct daemon_options *opts, struct capture **ret,
		struct session **ret_session)
{
	struct capture *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	err = make_tap_rules(c, opts);
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

int capture_start(struct capture *c, const struct daemon_options *opts, struct guardian *guardian,
		  void (*on_event)(void *ctx, const struct ht_event *event), void *ctx)
{
	struct track_policy *policy = &c->session->policy;
	const struct session_options session_opts = {
		.engine = {
			.live_cap = (uint32_t)opts->live_cap,
			.stack_cap = (uint32_t)opts->stack_cap,
		},
		.ops = { .on_event = on_event },
		.ctx = ctx,
		.guardian = guardian,
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
		.tap_rate_bytes = c->tap_rules ? TAP_RATE_FINEST : 0,
		.may_tap = may_tap,
		.may_tap_ctx = c,
		.sharing = opts->sharing,
	};
	err = open_uprobe_events(guardian, opts->sharing, &policy->has_events);
	return err ? err : session_start(c->session, &session_opts);
}

void capture_free(struct capture *c)
{
	if (!c)
		return;
	session_free(c->session);
	select_rules_free(c->tap_rules);
	free(c);
}
