/* SPDX-License-Identifier: MIT */
/*
 * cmd/serve.c - `heaptap serve`: runs a daemon with the options until it is told to end.
 *
 * Wiring only: the options are cmd/serve_options.c, the daemon itself is serve/daemon.c.
 */
#include <errno.h>
#include <stdio.h>

#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/serve_options.h"
#include "cmd/serve_settings.h"
#include "serve/daemon.h"

static const char usage[] =
	"usage: heaptap serve [OPTIONS] -a | [-p PID]... [--comm RE]... [--exe RE]... [--user "
	"USER]...\n"
	"                               [--cgroup PATH]... [--container ID]...\n\n"
	"Follow processes from outside, and serve profiles of their memory over HTTP, until "
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
	.summary = "follow processes and serve their profiles over HTTP (as root)",
	.example = "heaptap serve --comm '^nginx$'",
	.options = &serve_option_table,
	.usage = usage,
	.more = more,
	.run = run,
};
