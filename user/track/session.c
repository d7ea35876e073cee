/* SPDX-License-Identifier: MIT */
/* session.c - see session.h. */
#include "track/session.h"

#include <sys/resource.h>

#include "base/err.h"
#include "base/log.h"
#include "base/sandbox.h"
#include "track/files.h"

int session_new(const char *command, enum attach_mode wanted, struct session **ret)
{
	struct session *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->command = command;
	err = kernel_features_probe(&s->features);
	if (err) {
		log_error("%s: cannot test the features of the kernel: "
			  "%s",
			  command, strerror(-err));
		goto out;
	}
	if (!kernel_features_suffice(&s->features)) {
		log_error("%s: %s", command, s->features.why.text);
		err = -ENOTSUP;
		goto out;
	}
	err = kernel_features_choose_mode(&s->features, wanted, &s->mode);
	if (err)
		log_error("%s: this kernel has no '%s' uprobes; see: heaptap doctor", command,
			  attach_mode_name(wanted));
out:
	if (err)
		free(s);
	else
		*ret = s;
	return err;
}

/* Descriptors are needed for each file, and some for each process. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* Call before any probes are attached. */
static int measure_costs(struct session *s, struct governor_options *opts, bool may_be_unlimited)
{
	if (!probe_costs_measure(&s->features, &s->costs))
		return 0;
	memset(&s->costs, 0, sizeof(s->costs));
	if (!may_be_unlimited && (budget_has_limit(&opts->limit) || opts->max_host_share > 0)) {
		log_error("%s: cannot measure the cost of a probe, so the overhead cannot be "
			  "limited; to go on without a limit: --max-overhead off "
			  "--max-overhead-host off",
			  s->command);
		return -EIO;
	}
	log_warn("%s: cannot measure the cost of a probe: the overhead is unknown and not limited",
		 s->command);
	opts->limit = BUDGET_NO_LIMIT;
	opts->max_host_share = 0;
	return 0;
}

static int open_engine(struct session *s, const struct session_options *opts)
{
	struct engine_options engine_opts = opts->engine;
	struct err why;
	int err;

	engine_opts.mode = s->mode;
	engine_opts.is_tapped =
		engine_opts.only_tgid && s->policy.tap_rate_bytes && !s->policy.taps_on_request;
	engine_opts.has_events = s->policy.has_events;
	engine_opts.holds = s->policy.holds;
	engine_opts.is_verbose = log_get_level() >= LOG_DEBUG;
	err = engine_open(&engine_opts, &s->features, &opts->ops, opts->ctx, &s->engine, &why);
	if (err) {
		log_error("%s: %s", s->command, why.text);
		return err;
	}
	if (opts->finest_rate_bytes)
		engine_set_finest_rate(s->engine, opts->finest_rate_bytes);
	return engine_set_rate(s->engine, 0, opts->rate_bytes, opts->throw_limit_bytes);
}

int session_start(struct session *s, const struct session_options *opts)
{
	struct governor_options governor_opts = opts->governor;
	int err;

	raise_file_limit();
	if (!sandbox_is_whole())
		log_warn("%s: " SANDBOX_NOT_WHOLE, s->command);
	governor_opts.command = s->command;
	err = measure_costs(s, &governor_opts, opts->may_be_unlimited);
	if (!err)
		err = open_engine(s, opts);
	if (err)
		return err;
	s->policy.finds_mappings = s->features.find_vma;
	s->policy.costs = (struct plan_costs){ s->costs.emulated_ns, s->costs.return_ns };
	governor_opts.costs = (struct budget_costs){ s->costs.emulated_ns, s->costs.stepped_ns,
						     s->costs.return_ns };
	err = track_files_new(s->engine, &s->policy, &s->files);
	if (!err)
		err = tracker_new(s->engine, opts->guardian, s->files, &s->policy, &s->tracker);
	if (!err)
		err = governor_new(s->engine, s->tracker, &governor_opts, &s->governor);
	if (err)
		log_error("%s: cannot set up: %s", s->command, strerror(-err));
	return err;
}

void session_stop(struct session *s)
{
	if (!s)
		return;
	governor_free(s->governor);
	tracker_free(s->tracker);
	s->governor = NULL;
	s->tracker = NULL;
}

void session_free(struct session *s)
{
	if (!s)
		return;
	session_stop(s);
	track_files_free(s->files);
	engine_close(s->engine);
	free(s);
}
