/* SPDX-License-Identifier: MIT */
/*
 * cmd/serve.c - `heaptap serve`: options in, a daemon until it is told to end.
 *
 * Wiring only: the options are cmd/serve_options.c, the daemon itself is serve/daemon.c.
 */
#include <errno.h>
#include <stdio.h>

#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/serve_options.h"
#include "serve/daemon.h"

static const char usage_head[] =
	"usage: heaptap serve [OPTIONS] -a | [-p PID]... [--comm RE]... [--exe RE]... [--user USER]...\n"
	"                               [--cgroup PATH]... [--container ID]...\n"
	"\n"
	"Follow processes from outside, and serve who holds their memory over HTTP, until SIGTERM.\n";

static const char usage_tail[] =
	"\n"
	"pages:\n"
	"  /                       the processes\n"
	"  /debug/pprof/heap       pprof profile of all; ?pid=N of one; ?seconds=N what is allocated\n"
	"                          within N seconds; also /pid/N/debug/pprof/heap;\n"
	"                          ?pid=N&at=peak, at=limit, at=last: one that was kept\n"
	"  /debug/pprof/allocs     the same, opens on what was allocated\n"
	"  /pid/N/pprof/heap       for jeprof and google-pprof; also growth, symbol, cmdline\n"
	"  /metrics                for Prometheus, as text or OpenMetrics\n"
	"  /healthz\n"
	"\n"
	"examples:\n"
	"  heaptap serve --comm '^(redis|postgres)'\n"
	"  go tool pprof -http=: http://127.0.0.1:7676/debug/pprof/heap?pid=1234\n";

static void on_error(void *ctx, const char *text)
{
	(void)ctx;
	log_error("serve: %s", text);
}

/* -EINVAL: used wrongly. */
static int read_args(int argc, char **argv, struct option_args *ret)
{
	int err = option_read_args(serve_option_table(), argc, argv, on_error, NULL, ret);

	if (!err && ret->first < (size_t)argc) {
		log_error("serve: unexpected argument '%s': --help lists the options",
			  argv[ret->first]);
		err = -EINVAL;
	}
	return err;
}

static void print_help(void)
{
	fputs(usage_head, stdout);
	option_print_help(serve_option_table(), stdout);
	fputs(usage_tail, stdout);
}

static void set_log_level(const struct serve_settings *s)
{
	log_set_level(s->is_verbose ? LOG_DEBUG : s->is_quiet ? LOG_WARN : LOG_INFO);
}

/* SIGHUP. What is wrong is said, and then nothing changes. */
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
		log_error("serve: the configuration stays as it was");
		serve_settings_release(ret);
		return err;
	}
	set_log_level(ret);
	log_info("serve: '%s' was read again", ret->config_file);
	return 0;
}

/* The first settings stay until the end: what cannot change refers to them. */
static int run(const struct serve_settings *first, const struct option_args *args)
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

int cmd_serve(int argc, char **argv)
{
	struct serve_settings settings = { 0 };
	struct option_args args;
	int status = 1, err = read_args(argc, argv, &args);

	if (!err && option_args_find(&args, "help")) {
		print_help();
		status = 0;
		goto out;
	}
	if (!err && option_args_find(&args, "version")) {
		fputs(VERSION_LINE, stdout);
		status = 0;
		goto out;
	}
	if (err) {
		fprintf(stderr, "Try 'heaptap serve --help'.\n");
		status = 2;
		goto out;
	}
	err = serve_settings_make(&args, &settings);
	if (err) { /* the file's fault, or the command line's */
		status = option_args_find(&args, "config") ? 1 : 2;
	} else if (settings.checks_config) {
		option_print_settings(serve_option_table(), &settings, stdout);
		status = 0;
	} else {
		set_log_level(&settings);
		settings.daemon.command_argv = argv;
		settings.daemon.command_argc = argc;
		settings.daemon.can_reload = settings.config_file;
		status = run(&settings, &args) ? 1 : 0;
	}
out:
	serve_settings_release(&settings);
	option_args_release(&args);
	return status;
}
