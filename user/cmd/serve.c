/* SPDX-License-Identifier: MIT */
/*
 * cmd/serve.c - `heaptap serve`: runs a daemon with the options until it is told to end.
 *
 * Here settings are made of the options (cmd/serve_options.c) and their file; the daemon itself is serve/daemon.c.
 */

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/serve_options.h"
#include "http/http.h"
#include "serve/daemon.h"
#include "track/governor.h"

/* Log a conflict of an option with others, with the place where it is given. */
__attribute__((format(printf, 3, 4))) static int complain(const struct serve_settings *s,
							  const char *key, const char *fmt, ...)
{
	struct err what;
	unsigned line = 0;
	va_list args;

	va_start(args, fmt);
	err_set_args(&what, -EINVAL, fmt, args);
	va_end(args);
	if (s->lines && key)
		line = s->lines[option_find(&serve_option_table, key) - serve_option_table.rows];
	if (line)
		log_error("serve: %s:%u: %s: %s", s->config_path, line, key, what.text);
	else if (s->config_path)
		log_error("serve: %s: %s", s->config_path, what.text);
	else
		log_error("serve: %s", what.text);
	return -EINVAL;
}

static int add_destination(struct serve_settings *s, const char *url)
{
	struct push_target target;
	const struct push_target *t;
	struct err why = { 0 };

	if (push_target_parse(url, &target, &why))
		return complain(s, "push", "%s", why.text);
	vec_each(&s->targets, t)
		if (!strcmp(t->url, target.url))
			return complain(s, "push", "destination '%s' is given twice", target.name);
	return vec_push(&s->targets, target);
}

static int add_label(struct serve_settings *s, char *text)
{
	char *equals = strchr(text, '=');
	struct push_label label = { .value = equals + 1 };
	int err;

	label.name = strndup(text, (size_t)(equals - text));
	if (!label.name)
		return -ENOMEM;
	err = vec_push(&s->label_list, label);
	if (err)
		free((void *)label.name);
	return err;
}

static bool has_parca(const struct serve_settings *s)
{
	const struct push_target *t;

	vec_each(&s->targets, t)
		if (t->kind == PUSH_PARCA)
			return true;
	return false;
}

/* Without a destination, options for destinations have no effect. */
static int check_no_pushes(const struct serve_settings *s)
{
	const struct pushes_options *p = &s->daemon.pushes;
	const struct {
		bool is_given;
		const char *key;
	} all[] = {
		{ p->identity.token_file, "push-token-file" },
		{ p->identity.basic_file, "push-basic-file" },
		{ p->identity.tenant, "push-tenant" },
		{ p->identity.ca_file, "push-ca-file" },
		{ p->spool_dir, "push-spool" },
		{ p->interval_ns != 10 * NS_PER_S, "push-interval" },
		{ s->labels.cnt, "label" },
		{ p->sends_debuginfo, "push-debuginfo" },
	};
	int err = 0;

	for (size_t i = 0; i < ARRAY_CNT(all); i++)
		if (all[i].is_given)
			err = complain(s, all[i].key, "--%s needs --push URL", all[i].key);
	return err;
}

static int finish_pushes(struct serve_settings *s)
{
	struct pushes_options *p = &s->daemon.pushes;
	int err = 0;

	for (size_t i = 0; i < s->push_urls.cnt && !err; i++)
		err = add_destination(s, s->push_urls.data[i]);
	for (size_t i = 0; i < s->labels.cnt && !err; i++)
		err = add_label(s, s->labels.data[i]);
	if (!err && !s->targets.cnt)
		err = check_no_pushes(s);
	if (!err && p->sends_debuginfo && !has_parca(s))
		err = complain(s, "push-debuginfo", "--push-debuginfo needs --push parca+...");
	if (!err && p->identity.token_file && p->identity.basic_file)
		err = complain(s, "push-basic-file",
			       "--push-token-file and --push-basic-file exclude each other");
	p->targets = s->targets.data;
	p->target_cnt = s->targets.cnt;
	p->labels = s->label_list.data;
	p->label_cnt = s->label_list.cnt;
	return err;
}

static int find_cgroups(struct serve_settings *s)
{
	int err = vec_reserve(&s->places, s->cgroups.cnt);
	struct err why;

	for (size_t i = 0; i < s->cgroups.cnt && !err; i++) {
		err = cgroup_find(s->cgroups.data[i], &s->places.data[i], &why);
		s->places.cnt += !err || err == -ENOENT;
		/* Services come and go, and a daemon that starts before them has a file. */
		if (err == -ENOENT && s->config_path) {
			log_warn("serve: %s: %s. It is tracked as soon as it exists",
				 s->config_path, why.text);
			err = 0;
		}
		if (err)
			complain(s, "cgroup", "%s", why.text);
	}
	s->daemon.select.cgroups = s->places.data;
	s->daemon.select.cgroup_cnt = s->places.cnt;
	return err;
}

/* There is no budget when every allocation is recorded, unless one is given. */
static void settle_budget(struct serve_settings *s)
{
	bool is_exact = s->daemon.rate_bytes == 1;

	if (!s->has_max_overhead)
		s->max_overhead.percent = is_exact ? 0 : GOVERNOR_SERVE_DEFAULT_PERCENT;
	if (!s->has_max_overhead_host)
		s->max_overhead_host = is_exact ? 0 : GOVERNOR_HOST_DEFAULT_PERCENT;
	s->daemon.max_overhead = governor_limit(s->max_overhead.percent, s->max_overhead.is_strict);
	s->daemon.max_overhead_host = s->max_overhead_host / 100;
}

/* Set what depends on several options, and what the daemon takes in another form. */
static int finish(struct serve_settings *s)
{
	struct select_rules *rules = NULL;
	struct err why;
	int err = 0;

	for (size_t i = 0; i < s->pids.cnt && !err; i++)
		err = vec_push(&s->pid_list, (pid_t)s->pids.data[i]);
	s->daemon.pids = s->pid_list.data;
	s->daemon.pid_cnt = s->pid_list.cnt;
	s->daemon.select.has_pids = s->pid_list.cnt;
	s->has_max_overhead = s->max_overhead.percent >= 0;
	s->has_max_overhead_host = s->max_overhead_host >= 0;
	settle_budget(s);
	if (!err)
		err = find_cgroups(s);
	if (!err)
		err = finish_pushes(s);
	if (err)
		return err;
	if (s->daemon.rows_interval_ns && s->daemon.rows_interval_ns < ROWS_INTERVAL_MIN_NS)
		return complain(s, "rows-interval",
				"--rows-interval is at least 1m, or 0: never; reading costs time");
	err = listen_check(s->daemon.listen, !s->daemon.token_file, &why);
	if (err)
		return complain(s, "listen", "%s", why.text);
	err = select_rules_new(&s->daemon.select, &rules, &why);
	if (err)
		complain(s, s->daemon.select.is_all ? "all" : NULL, "%s", why.text);
	select_rules_free(rules);
	return err;
}

static int apply_config(struct serve_settings *s, const char *path)
{
	char *text;
	struct err why;
	size_t bytes;
	int err = option_read_file(path, &text, &bytes, &why);

	if (err) {
		log_error("serve: %s", why.text);
		return err;
	}
	s->config_path = path;
	s->lines = calloc(serve_option_table.cnt, sizeof(*s->lines));
	err = s->lines ? option_apply_file(&serve_option_table, s, path, text, bytes, command_error,
					   "serve", s->lines) :
			 -ENOMEM;
	free(text);
	return err;
}

int serve_settings_make(const struct option_args *args, struct serve_settings *ret)
{
	const char *path = option_args_find(args, "config");
	int err, args_err;

	*ret = (struct serve_settings){ 0 };
	err = option_apply_defaults(&serve_option_table, ret);
	ret->max_overhead.percent = ret->max_overhead_host =
		-1; /* depend on the rate: see finish() */
	if (!err && path)
		err = apply_config(ret, path);
	/* Report these errors together with those of the file. */
	args_err = option_apply_args(ret, args, command_error, "serve");
	err = err ? err : args_err;
	if (!err)
		err = finish(ret);
	return err;
}

/* What saves profiles is created at the start, or never. */
static bool is_fixed(const struct option_row *row, const struct serve_settings *fresh,
		     const struct serve_settings *old)
{
	if (row->flags & OPTION_AT_START)
		return true;
	return row->at == offsetof(struct serve_settings, daemon.keep.file_max) &&
	       !fresh->daemon.keep.file_max != !old->daemon.keep.file_max;
}

int serve_settings_keep_fixed(struct serve_settings *fresh, const struct serve_settings *old)
{
	int err = 0;

	for (size_t i = 0; i < serve_option_table.cnt && !err; i++) {
		const struct option_row *row = &serve_option_table.rows[i];

		if (!is_fixed(row, fresh, old) || option_is_equal(row, fresh, old))
			continue;
		log_warn("serve: %s: %s has changed: this takes effect after a restart",
			 old->config_file, row->name);
		err = option_copy(row, fresh, old);
	}
	settle_budget(fresh); /* with the old rate */
	return err;
}

void serve_settings_release(struct serve_settings *s)
{
	struct cgroup_place *place;
	struct push_label *label;

	vec_each(&s->places, place)
		cgroup_release(place);
	vec_release(&s->places);
	vec_each(&s->label_list, label)
		free((void *)label->name);
	vec_release(&s->label_list);
	vec_release(&s->targets);
	vec_release(&s->pid_list);
	free(s->lines);
	s->lines = NULL;
	option_release(&serve_option_table, s);
}

static const char usage[] =
	"usage: heaptap serve [OPTIONS] -a | [-p PID]... [--comm RE]... [--exe RE]... [--user "
	"USER]...\n"
	"                               [--cgroup PATH]... [--container ID]...\n\n"
	"Track processes from outside, and serve profiles of their memory over HTTP, until "
	"SIGTERM.\n";

static const char more[] =
	"\n"
	"pages:\n"
	"  /                       the processes; /pid/N/ one of them\n"
	"  /viewer, /pid/N/viewer  flame graph of heap in use; ?seconds=N, at=peak\n"
	"  /pid/N/diff?at=peak     changes since a saved profile; between two moments of a day:\n"
	"                          ?from=2026-11-26T14:05:00Z&to=2026-11-26T14:40:00Z\n"
	"  /pid/N/growth           which stacks grow, as JSON\n"
	"  /debug/pprof/heap       pprof profile of all; ?pid=N of one; ?seconds=N allocations\n"
	"                          within N seconds; also /pid/N/debug/pprof/heap;\n"
	"                          ?pid=N&at=peak, at=limit, at=last: a saved one\n"
	"  /debug/pprof/allocs     the same, opens on allocations\n"
	"  /pid/N/pprof/heap       for jeprof and google-pprof; also growth, symbol, cmdline\n"
	"  /metrics                for Prometheus, as text or OpenMetrics\n"
	"  /healthz\n"
	"\n"
	"examples:\n"
	"  heaptap serve --comm '^(redis|postgres)'\n"
	"  go tool pprof -http=: http://127.0.0.1:7676/debug/pprof/heap?pid=1234\n";

static void set_log_level(const struct serve_settings *s)
{
	log_set_level(s->is_verbose ? LOG_DEBUG : s->is_quiet ? LOG_WARN : LOG_INFO);
}

/* Handle SIGHUP. Errors are logged, and then nothing changes. */
static int reload(struct daemon *d, const struct option_args *args,
		  const struct serve_settings *old, struct serve_settings *ret)
{
	int err = serve_settings_make(args, ret);

	if (!err)
		err = serve_settings_keep_fixed(ret, old);
	if (!err) {
		ret->daemon.command_argv = old->daemon.command_argv;
		ret->daemon.command_argc = old->daemon.command_argc;
		ret->daemon.can_reload = true;
		err = daemon_reconfigure(d, &ret->daemon);
	}
	if (err) {
		log_error("serve: the configuration has not changed");
		serve_settings_release(ret);
		return err;
	}
	set_log_level(ret);
	log_info("serve: '%s' was read again", ret->config_file);
	return 0;
}

/* The first settings stay until the end: values that cannot change point into them. */
static int serve(const struct serve_settings *first, const struct option_args *args)
{
	struct serve_settings current = { 0 }, fresh;
	enum daemon_wish wish = DAEMON_RELOAD;
	struct daemon *d = NULL;
	bool is_first = true;
	int err = daemon_open(&first->daemon, &d);

	while (!err && wish == DAEMON_RELOAD) {
		err = daemon_run(d, &wish);
		if (err || wish != DAEMON_RELOAD ||
		    reload(d, args, is_first ? first : &current, &fresh))
			continue;
		serve_settings_release(&current);
		current = fresh;
		is_first = false;
	}
	daemon_close(d);
	serve_settings_release(&current);
	return err;
}

static int run(int argc, char **argv, const struct option_args *args)
{
	struct serve_settings settings = { 0 };
	int status = 1;

	if (args->first < (size_t)argc) {
		log_error("serve: unexpected argument '%s': --help lists the options",
			  argv[args->first]);
		return 2;
	}
	if (serve_settings_make(args, &settings)) { /* the file's fault, or the command line's */
		status = option_args_find(args, "config") ? 1 : 2;
	} else if (settings.checks_config) {
		option_print_settings(&serve_option_table, &settings, stdout);
		status = 0;
	} else {
		set_log_level(&settings);
		settings.daemon.command_argv = argv;
		settings.daemon.command_argc = argc;
		settings.daemon.can_reload = settings.config_file;
		status = serve(&settings, args) ? 1 : 0;
	}
	serve_settings_release(&settings);
	return status;
}

const struct command command_serve = {
	.name = "serve",
	.summary = "track processes and serve their profiles over HTTP (as root)",
	.example = "heaptap serve --comm '^nginx$'",
	.options = &serve_option_table,
	.usage = usage,
	.more = more,
	.run = run,
};
