/* SPDX-License-Identifier: MIT */
/*
 * cmd/record.c - `heaptap record`: options in, a recording through its phases, results out.
 *
 * Wiring only: the recording itself is record/recorder.c, the profile record/result.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/units.h"
#include "budget/governor.h"
#include "cmd/cmd.h"
#include "config/read_option.h"
#include "record/out_file.h"
#include "record/recorder.h"
#include "record/result.h"
#include "record/whom.h"
#include "snapshot/scope_labels.h"
#include "proc/select.h"

enum {
	OPT_MAX_LIVE = 256,
	OPT_MAX_STACKS,
	OPT_FOLLOW,
	OPT_NO_HOLD,
	OPT_THROWING,
	OPT_KEEP,
	OPT_LINES,
	OPT_LABELS,
	OPT_GROUP,
	OPT_REALLOC,
	OPT_MAX_OVERHEAD,
	OPT_COMM,
	OPT_CGROUP,
	OPT_FORCE,
	OPT_JVM,
	OPT_MODE = READ_OPTION_HIDDEN,
	OPT_NAIVE
};

static const char usage[] =
	"usage: heaptap record [OPTIONS] -p PID\n"
	"       heaptap record [OPTIONS] --comm NAME | --cgroup PATH\n"
	"       heaptap record [OPTIONS] -- COMMAND [ARG...]\n"
	"\n"
	"Record who allocates, and who holds, the memory of a process. Ends when the time is up, all\n"
	"processes have ended, or with Ctrl-C; then saves a profile (pprof) and prints the largest\n"
	"holders.\n"
	"\n"
	"whom:\n"
	"  -p, --pid PID[,PID...]  these running processes; may be repeated\n"
	"      --comm NAME         the running processes whose name matches (a POSIX extended regular\n"
	"                          expression that matches anywhere, as with serve); may be repeated,\n"
	"                          and then one of them has to match\n"
	"      --cgroup PATH       ... that are in this cgroup or below it; may be repeated\n"
	"                          Both together: both have to fit. They are looked up once, at the\n"
	"                          start: --follow has children, and serve those that come later.\n"
	"      --follow            children too, those that run and those to come\n"
	"\n"
	"how long, and where to:\n"
	"  -d, --duration TIME     stop after TIME (30, 30s, 5m, 1m30s, 2h; default: until Ctrl-C)\n"
	"  -o, --output FILE       save the profile here; - is standard output (default:\n"
	"                          COMM-PID-TIME.pb.gz in the current folder, TIME in UTC)\n"
	"      --force             replace FILE if it exists; write to any folder\n"
	"  -n, --top N             rows to print at the end (default: 10, 0 = none)\n"
	"  -q, --quiet             print errors and losses only\n"
	"  -v, --verbose           say what is being done\n"
	"\n"
	"what it may cost, and how exact it is:\n"
	"  -r, --rate BYTES        sample every BYTES allocated on the average (default: 64k);\n"
	"                          1 = record every allocation, exactly\n"
	"      --max-overhead PCT  probes may take this much of the CPU time of the process, or 1 % of\n"
	"                          one CPU where that is more; where that is not enough frees are not\n"
	"                          watched, so in-use is not known, or nothing is (default: 25 % of it,\n"
	"                          or of one CPU; off with --rate 1); 5! = without the 1 %; off = no\n"
	"                          limit\n"
	"      --max-live N        at most N sampled allocations outstanding (default: 1000000)\n"
	"      --max-stacks N      at most N distinct call stacks (default: 65536)\n"
	"\n"
	"less often needed:\n"
	"      --no-hold           do not trace COMMAND to hold it when it executes another program until\n"
	"                          that is probed: for what must not be traced, or traces itself\n"
	"      --probe-throwing-new\n"
	"                          before Linux 6.13: record operator new of jemalloc, tcmalloc and\n"
	"                          mimalloc too, although one that throws then ends the program\n"
	"      --keep-allocator-frames\n"
	"                          keep malloc and the like at the end of each stack\n"
	"      --labels LIST       labels of the profile's rows, of: scope, app (labels that the program\n"
	"                          sets), task, thread; or all (default), or none\n"
	"      --group-threads     threads of a pool are one: worker-12 -> worker-*\n"
	"      --realloc-scope current|origin\n"
	"                          the scope that a reallocated block is charged to: that of the call\n"
	"                          (default), or that of the block before, where it was sampled\n"
	"      --jvm-perfmap       at the end, JVMs (17 or later) are asked for the names of compiled\n"
	"                          Java functions: each writes /tmp/perf-PID.map, as jcmd can ask it to\n"
	"      --no-lines          function names only: no files, lines and inlines (faster)\n"
	"  -h, --help              show this\n"
	"  -V, --version           show the version\n"
	"\n"
	"examples:\n"
	"  heaptap record -d 30s -p $(pidof -s redis-server)\n"
	"  heaptap record -d 1m30s --comm '^nginx$'\n"
	"  heaptap record --rate 1 -o app.pb.gz -- ./app --serve\n"
	"  heaptap report app.pb.gz\n"
	"\n"
	"exit status: 0 recorded, 1 it could not be (the message says why), 2 wrong usage\n";

static const struct option long_options[] = {
	{ "pid", required_argument, NULL, 'p' },
	{ "duration", required_argument, NULL, 'd' },
	{ "comm", required_argument, NULL, OPT_COMM },
	{ "cgroup", required_argument, NULL, OPT_CGROUP },
	{ "output", required_argument, NULL, 'o' },
	{ "force", no_argument, NULL, OPT_FORCE },
	{ "rate", required_argument, NULL, 'r' },
	{ "max-overhead", required_argument, NULL, OPT_MAX_OVERHEAD },
	{ "max-live", required_argument, NULL, OPT_MAX_LIVE },
	{ "max-stacks", required_argument, NULL, OPT_MAX_STACKS },
	{ "follow", no_argument, NULL, OPT_FOLLOW },
	{ "no-hold", no_argument, NULL, OPT_NO_HOLD },
	{ "probe-throwing-new", no_argument, NULL, OPT_THROWING },
	{ "keep-allocator-frames", no_argument, NULL, OPT_KEEP },
	{ "no-lines", no_argument, NULL, OPT_LINES },
	{ "labels", required_argument, NULL, OPT_LABELS },
	{ "group-threads", no_argument, NULL, OPT_GROUP },
	{ "realloc-scope", required_argument, NULL, OPT_REALLOC },
	{ "jvm-perfmap", no_argument, NULL, OPT_JVM },
	{ "top", required_argument, NULL, 'n' },
	{ "quiet", no_argument, NULL, 'q' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	/* for tests and comparisons, not in the usage text */
	{ "attach-mode", required_argument, NULL, OPT_MODE },
	{ "naive-placement", no_argument, NULL, OPT_NAIVE },
	{ NULL, 0, NULL, 0 },
};

struct record_options {
	struct recorder_options recorder;
	struct result_options result;
	struct whom whom;
	bool has_max_overhead;
	bool wants_help, wants_version;
};

static int parse_count(const char *text, uint64_t max, uint64_t *ret)
{
	char *end;
	unsigned long long n;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno || end == text || *end || text[0] == '-' || n > max)
		return -EINVAL;
	*ret = n;
	return 0;
}

static int bad_value(const char *option, const char *text, const char *wanted)
{
	log_error("record: bad value '%s' for %s: %s", text, option, wanted);
	return -EINVAL;
}

static int parse_labels(const char *arg, unsigned *ret)
{
	static const struct {
		const char *name;
		unsigned label;
	} names[] = { { "scope", LABEL_SCOPE },	  { "app", LABEL_APP }, { "task", LABEL_TASK },
		      { "thread", LABEL_THREAD }, { "all", LABEL_ALL }, { "none", 0 } };
	const size_t cnt = sizeof(names) / sizeof(*names);
	const char *at = arg;

	*ret = 0;
	for (;;) {
		size_t len = strcspn(at, ","), i = 0;

		while (i < cnt && (strlen(names[i].name) != len || strncmp(names[i].name, at, len)))
			i++;
		if (i == cnt)
			return bad_value("--labels", arg,
					 "a list of scope, app, task, thread, all, none");
		*ret |= names[i].label;
		if (!at[len])
			return 0;
		at += len + 1;
	}
}

static int parse_one(int c, const char *arg, struct record_options *o)
{
	char why[256];
	uint64_t n;

	switch (c) {
	case 'p':
		if (whom_add_pids(&o->whom, arg))
			return bad_value("--pid", arg, "a process id, or several: 12,34");
		return 0;
	case OPT_COMM:
		if (select_check_pattern(arg, why, sizeof(why)))
			return bad_value("--comm", arg, why);
		return texts_add(&o->whom.comms, arg);
	case OPT_CGROUP:
		return texts_add(&o->whom.cgroups, arg);
	case 'd':
		if (parse_duration(arg, &o->recorder.duration_ns) || !o->recorder.duration_ns)
			return bad_value("--duration", arg, "a time such as 30s, 5m or 1m30s");
		return 0;
	case 'o':
		o->result.output = arg;
		return 0;
	case 'r':
		if (parse_size(arg, &n) || !n || n > 1ULL << 40)
			return bad_value("--rate", arg, "a size from 1 to 1t, such as 64k");
		o->recorder.rate_bytes = n;
		return 0;
	case OPT_MAX_LIVE:
		if (parse_count(arg, 1 << 28, &n) || !n)
			return bad_value("--max-live", arg, "a number from 1 to 268435456");
		o->recorder.live_cap = n;
		return 0;
	case OPT_MAX_STACKS:
		if (parse_count(arg, 1 << 24, &n) || !n)
			return bad_value("--max-stacks", arg, "a number from 1 to 16777216");
		o->recorder.stack_cap = n;
		return 0;
	case OPT_JVM:
		o->recorder.jvm_perfmap = true;
		return 0;
	case OPT_MAX_OVERHEAD:
		if (governor_parse_limit(arg, &o->recorder.max_overhead))
			return bad_value("--max-overhead", arg,
					 "a percentage from 0.01 to 99, such as 25 or 5!, or off");
		o->has_max_overhead = true;
		return 0;
	case OPT_LABELS:
		return parse_labels(arg, &o->result.labels);
	case OPT_REALLOC:
		if (strcmp(arg, "current") && strcmp(arg, "origin"))
			return bad_value("--realloc-scope", arg, "current or origin");
		o->recorder.realloc_keeps_scope = !strcmp(arg, "origin");
		return 0;
	case OPT_MODE:
		if (attach_mode_parse(arg, &o->recorder.mode))
			return bad_value("--attach-mode", arg, "auto, session, multi or perf");
		return 0;
	case 'n':
		if (parse_count(arg, 1 << 20, &n))
			return bad_value("--top", arg, "a number");
		o->result.top_cnt = n;
		return 0;
	}
	return -EINVAL;
}

static int parse_flag(int c, struct record_options *o)
{
	switch (c) {
	case OPT_FOLLOW:
		o->recorder.follow = true;
		return 0;
	case OPT_NO_HOLD:
		o->recorder.no_hold = true;
		return 0;
	case OPT_THROWING:
		o->recorder.probe_throwing = true;
		return 0;
	case OPT_NAIVE:
		o->recorder.naive_placement = true;
		return 0;
	case OPT_KEEP:
		o->result.keep_allocator_frames = true;
		return 0;
	case OPT_GROUP:
		o->result.group_threads = true;
		return 0;
	case OPT_LINES:
		o->result.no_lines = true;
		return 0;
	case OPT_FORCE:
		o->result.replaces = true;
		return 0;
	case 'q':
		o->recorder.is_quiet = true;
		o->result.is_quiet = true;
		log_set_level(LOG_WARN);
		return 0;
	case 'v':
		log_set_level(LOG_DEBUG);
		return 0;
	case 'h':
		o->wants_help = true;
		return 0;
	case 'V':
		o->wants_version = true;
		return 0;
	}
	return -ENOENT;
}

static int take_operands(int argc, char **argv, struct record_options *o)
{
	bool has_whom = o->whom.pids.cnt || whom_has_rules(&o->whom);
	char **operands = argv + optind;
	char why[256];

	if (optind >= argc) {
		if (has_whom)
			return 0;
		log_error("record: nothing to record: give -p PID, --comm NAME, --cgroup PATH, or "
			  "-- COMMAND");
		return -EINVAL;
	}
	if (strcmp(argv[optind - 1], "--") != 0 && whom_is_mistaken(operands, why, sizeof(why))) {
		log_error("record: %s", why);
		return -EINVAL;
	}
	if (has_whom) {
		log_error("record: running processes (-p, --comm, --cgroup) and a command ('%s') "
			  "exclude each other",
			  operands[0]);
		return -EINVAL;
	}
	o->recorder.argv = o->result.program_argv = operands;
	return 0;
}

static int parse_options(int argc, char **argv, struct record_options *o)
{
	char why[READ_OPTION_WHY_BYTES];
	int c, err = 0;

	optind = 1;
	while (!err && (c = read_option(argc, argv, "+:p:d:o:r:n:qvhV", long_options, why)) != -1) {
		if (c == '?') {
			log_error("record: %s", why);
			return -EINVAL;
		}
		err = parse_flag(c, o);
		if (err == -ENOENT)
			err = parse_one(c, optarg, o);
	}
	if (err || o->wants_help || o->wants_version)
		return err;
	if (!o->has_max_overhead && o->recorder.rate_bytes == 1) {
		o->recorder.max_overhead = BUDGET_NO_LIMIT;
		log_info("record: --rate 1 is to be exact: the overhead is not limited; "
			 "--max-overhead PCT limits it");
	}
	return take_operands(argc, argv, o);
}

/* A profile on a terminal is no use to anybody. */
static int take_stdout(struct record_options *o)
{
	int err;

	if (!o->result.output || !out_file_is_stdout(o->result.output))
		return 0;
	err = out_file_take_stdout(&o->result.stdout_fd);
	if (err == -ENOTTY)
		log_error("record: the profile is not text, and standard output is a terminal: "
			  "redirect it, or give a file with -o FILE");
	else if (err)
		log_error("record: cannot write to standard output: %s", strerror(-err));
	return err;
}

static int find_whom(struct record_options *o, struct whom_found *found)
{
	char why[512];
	int err = whom_find(&o->whom, found, why, sizeof(why));

	if (err) {
		log_error("record: %s", why);
		return err;
	}
	o->recorder.pids = found->pids.data;
	o->recorder.pid_cnt = found->pids.cnt;
	o->recorder.named_cnt = found->named_cnt;
	return 0;
}

static int record(struct record_options *o)
{
	struct whom_found found = { 0 };
	struct recorder *r = NULL;
	struct result *res = NULL;
	int err = find_whom(o, &found);

	if (!err)
		err = take_stdout(o);
	if (!err)
		err = recorder_open(&o->recorder, &r);
	if (!err) /* told before anything is attached */
		err = result_open(&o->result, recorder_targets(r), &res);
	if (!err)
		err = recorder_start(r);
	if (!err)
		err = recorder_run(r);
	if (!err)
		err = result_write(res, r);
	result_close(res);
	recorder_close(r);
	vec_release(&found.pids);
	return err;
}

int cmd_record(int argc, char **argv)
{
	struct record_options o = {
		.recorder = { .rate_bytes = 64 << 10,
			      .live_cap = 1000000,
			      .stack_cap = 65536,
			      .max_overhead = GOVERNOR_RECORD_LIMIT },
		.result = { .top_cnt = 10, .labels = LABEL_ALL, .stdout_fd = -1 },
	};
	int err = parse_options(argc, argv, &o), status;

	o.result.command_argv = argv;
	o.result.command_argc = argc;
	if (err) {
		fprintf(stderr, "Try 'heaptap record --help'.\n");
		status = 2;
	} else if (o.wants_help || o.wants_version) {
		fputs(o.wants_help ? usage : VERSION_LINE, stdout);
		status = 0;
	} else {
		status = record(&o) ? 1 : 0;
	}
	whom_release(&o.whom);
	return status;
}
