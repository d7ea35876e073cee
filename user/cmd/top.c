/* SPDX-License-Identifier: MIT */
/* cmd/top.c - `heaptap top`: runs a live view in the terminal until the user quits. Wiring only. */

#include "base/log.h"
#include "cmd/cmd.h"
#include "record/top.h"
#include "track/governor.h"

static const char usage[] =
	"usage: heaptap top [OPTIONS] -p PID\n\n"
	"Record a process (as root), and show which code holds its memory, live in the terminal. "
	"The key\n"
	"q ends it, and no probe is left.\n";

static const char more[] = "\n"
			   "keys: ? shows them\n"
			   "\n"
			   "examples:\n"
			   "  heaptap top -p $(pidof -s redis-server)\n"
			   "\n"
			   "exit status: 0 quit by the user, 1 error, 2 wrong usage\n";

struct top_cli {
	uint64_t pid, interval_ns, rate_bytes;
	int by, sort;
	int tap; /* enum tap_wish */
	struct option_limit max_overhead;
};

#define AT(member) offsetof(struct top_cli, member)

static const struct option_row rows[] = {
	{ .type = OPTION_HEADING, .help = "target" },
	OPTION(COUNT, 'p', "pid", "PID", AT(pid), "this running process", .min = 1,
	       .max = INT32_MAX, .wanted = "a process id, as pidof -s NAME prints it"),

	{ .type = OPTION_HEADING, .help = "first view" },
	OPTION(CHOICE, 'b', "by", "WHAT", AT(by),
	       "one row per stack (default), function, scope or thread",
	       .choices = top_what_names + TOP_STACKS),
	OPTION(CHOICE, 's', "sort", "ORDER", AT(sort),
	       "inuse (default): heap in use; growth: its growth per minute; alloc: bytes allocated "
	       "per second",
	       .choices = top_sort_names),
	OPTION(TIME, 'i', "interval", "TIME", AT(interval_ns),
	       "refresh interval; longer if a refresh takes long", .value = "2s", .min = 100000000,
	       .wanted = "a time from 100ms on, such as 5s"),

	{ .type = OPTION_HEADING, .help = "cost and precision" },
	OPTION(SIZE, 'r', "rate", "BYTES", AT(rate_bytes),
	       "one sample per BYTES allocated, on average; 1 = every allocation", .value = "64k",
	       .min = 1, .max = 1ULL << 40),
	OPTION(LIMIT, 0, "max-overhead", "PCT", AT(max_overhead),
	       "maximum overhead of probes, in % of the process's CPU time (default 25, or 25 % of "
	       "one CPU if that is more), as with heaptap record; off = no limit",
	       .max = 99),
	OPTION(CHOICE, 0, "tap", "auto|only|no", AT(tap),
	       "as with heaptap record, for programs that allocate all the time. auto: only "
	       "when probes cost too much",
	       .flags = OPTION_MAY_HAVE_VALUE, .value = "no", .choices = tap_wish_names),
	COMMAND_HELP_ROW,
	COMMAND_VERSION_ROW,
};

static const struct option_table table = { .rows = rows, .cnt = ARRAY_CNT(rows) };

static int check(struct top_cli *o)
{
	if (o->rate_bytes == 1 && o->tap == TAP_AUTO)
		o->tap = TAP_NEVER;
	if (o->rate_bytes == 1 && o->tap != TAP_NEVER) {
		log_error("top: --tap and --rate 1 exclude each other: only probes can record "
			  "every allocation");
		return -EINVAL;
	}
	if (o->pid)
		return 0;
	log_error("top: nothing to show: give -p PID");
	return -EINVAL;
}

static int check_terminal(const struct top_cli *o)
{
	if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
		return 0;
	log_error("top: standard input or output is not a terminal: use heaptap record -p %llu, "
		  "and heaptap report FILE",
		  (unsigned long long)o->pid);
	return -ENOTTY;
}

static int show(const struct top_cli *o, const struct option_args *args, int argc, char **argv)
{
	struct top_record_options opts = {
		.pid = (pid_t)o->pid,
		.what = TOP_STACKS + (enum top_what)o->by,
		.sort = (enum top_sort)o->sort,
		.interval_ns = o->interval_ns,
		.rate_bytes = o->rate_bytes,
		.rate_is_fixed = option_args_find(args, "rate") != NULL,
		.tap = (enum tap_wish)o->tap,
		.max_overhead = GOVERNOR_RECORD_LIMIT,
		.command_argv = argv,
		.command_argc = argc,
	};

	if (option_args_find(args, "max-overhead"))
		opts.max_overhead =
			governor_limit(o->max_overhead.percent, o->max_overhead.is_strict);
	log_set_level(LOG_WARN);
	return top_record(&opts);
}

static int run(int argc, char **argv, const struct option_args *args)
{
	struct top_cli o = { 0 };
	int err = command_settings(&command_top, args, &o), status = 2;

	if (!err && args->first < (size_t)argc) {
		log_error("top: unexpected argument '%s': did you mean -p?", argv[args->first]);
		err = -EINVAL;
	}
	if (!err)
		err = check(&o);
	if (!err)
		status = check_terminal(&o) || show(&o, args, argc, argv) ? 1 : 0;
	option_release(&table, &o);
	return status;
}

const struct command command_top = {
	.name = "top",
	.summary = "show which code holds memory, live in the terminal",
	.example = "heaptap top -p PID",
	.options = &table,
	.usage = usage,
	.more = more,
	.run = run,
};
