/* SPDX-License-Identifier: MIT */
/*
 * cmd/check.c - `heaptap check`: compares a recording, or a file, with limits, for automatic tests.
 *
 * Wiring only: the recording is record/recorder.c, the limits are report/limits.c. Exit status 1 is only for a
 * limit that is broken: any other failure is 2.
 */
#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/names.h"
#include "base/printable.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/option.h"
#include "cmd/record_settings.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "record/out_file.h"
#include "record/recorder.h"
#include "report/limits.h"
#include "record/record_result.h"
#include "record/scope_labels.h"

static const char usage[] =
	"usage: heaptap check [OPTIONS] -p PID\n"
	"       heaptap check [OPTIONS] -- COMMAND [ARG...]\n"
	"       heaptap check [OPTIONS] FILE\n"
	"\n"
	"Record a process (or read a profile) and check it against limits: pass, fail or unknown,\n"
	"at the requested confidence. For tests and CI.\n";

static const char more[] =
	"\n"
	"examples:\n"
	"  heaptap check -d 60s -p $(pidof -s my_server)\n"
	"  heaptap check --max-inuse 200m --format junit -o heap.xml -- ./load_test\n"
	"  heaptap check --rate 1 --max-inuse 0 -- ./unit_test\n"
	"  heaptap check --base release.pb.gz --max-increase 5% -d 60s -p PID\n"
	"\n"
	"exit status: 0 pass, 1 fail, 2 unknown (the output says what would settle it), wrong usage, or the\n"
	"command failed\n";

struct check_options {
	struct record_settings with;
	struct limit_options limits;
	/* Option values that the members above are made of. */
	char *max_growth, *max_inuse, *max_increase, *max_exited, *max_unexplained, *max_retained,
		*base;
	double confidence;
	uint64_t top_cnt;
	int format; /* enum limit_format */
	char *output, *profile;
	bool is_quiet, is_verbose;
	/* What is checked, one of: a file, a command, or processes. */
	const char *path;
	char **argv;
	int argc;
	size_t first; /* index in argv of the command; or 0 */
};

#define RUNNING_NS (30 * NS_PER_S) /* for a running process, unless given */
#define GROWTH_LEAST_NS (5 * NS_PER_S) /* with less time, growth is hardly ever known */
/* 700 MiB a day. Less takes minutes to distinguish from chance. */
#define GROWTH_DEFAULT (500 * 1024 / 60.)
#define MORE_DEFAULT 0.1
#define INCREASE_MOST 1e6 /* percent */

static const char *const formats[] = { "text", "json", "junit", NULL };
static const struct ending endings[] = { { ".json", LIMIT_JSON }, { ".xml", LIMIT_JUNIT } };

/* Parse "100k/min" into bytes per second. */
static int parse_growth(const char *text, double *ret)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = { { "/s", 1 },	 { "/sec", 1 },	    { "/m", 60 },    { "/min", 60 },
		      { "/h", 60 * 60 }, { "/hour", 3600 }, { "/d", 86400 }, { "/day", 86400 } };
	const char *slash = strchr(text, '/');
	char size[UNITS_BUF];
	uint64_t bytes;

	if (!slash || (size_t)(slash - text) >= sizeof(size))
		return -EINVAL;
	snprintf(size, sizeof(size), "%.*s", (int)(slash - text), text);
	if (parse_size(size, &bytes))
		return -EINVAL;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (strcmp(slash, units[i].name) != 0)
			continue;
		*ret = (double)bytes / units[i].seconds;
		return 0;
	}
	return -EINVAL;
}

/* Parse "20m", or "10%" as a share. -ERANGE: of more than most_percent. */
static int parse_part(const char *text, double most_percent, double *ret, bool *ret_is_share)
{
	uint64_t bytes = 0;
	double percent;
	int err;

	*ret_is_share = text[0] && text[strlen(text) - 1] == '%';
	if (!*ret_is_share) {
		err = parse_size(text, &bytes);
		*ret = (double)bytes;
		return err;
	}
	err = parse_percent(text, &percent);
	if (err)
		return err;
	*ret = percent / 100;
	return percent > most_percent ? -ERANGE : 0;
}

static int check_growth(const char *text, struct err *why)
{
	double rate;

	return err_set(why, parse_growth(text, &rate),
		       "bytes and a time such as 100k/min: /s, /min, /h or /day");
}

static int check_size(const char *text, struct err *why)
{
	uint64_t bytes;

	return err_set(why, parse_size(text, &bytes), "a size such as 64k, 200m or 0");
}

static int check_part(const char *text, double most_percent, const char *whole, struct err *why)
{
	double limit;
	bool is_share;
	int err = parse_part(text, most_percent, &limit, &is_share);

	err_set(why, err, "a size such as 20m, or a percentage such as 10%%");
	if (err == -ERANGE && is_share)
		err_set(why, err, "a percentage of %s, from 0%% to %.0f%%", whole, most_percent);
	return err;
}

static int check_increase(const char *text, struct err *why)
{
	return check_part(text, INCREASE_MOST, "the heap in use of the baseline", why);
}

static int check_resident_part(const char *text, struct err *why)
{
	return check_part(text, 100, "resident memory", why);
}

#define AT(member) offsetof(struct check_options, member)

static const struct option_row rows[] = {
	{ .type = OPTION_HEADING, .help = "limits" },
	OPTION(TEXT, 0, "max-growth", "RATE", AT(max_growth),
	       "maximum growth of heap in use, such as 100k/min (default 500k/min if no limit is "
	       "given)",
	       .check = check_growth),
	OPTION(TIME, 0, "warm-up", "TIME", AT(limits.warm_up_ns),
	       "measure growth only after TIME (and skip the first sixth of the rest, too)"),
	OPTION(TEXT, 0, "max-inuse", "BYTES", AT(max_inuse), "maximum heap in use at the end",
	       .check = check_size),
	OPTION(TEXT, 0, "base", "FILE", AT(base),
	       "baseline profile; --max-increase sets the allowed growth over it"),
	OPTION(TEXT, 0, "max-increase", "BYTES", AT(max_increase),
	       "maximum growth over the baseline, in bytes or percent (default: 10%)",
	       .check = check_increase),
	OPTION(TEXT, 0, "max-exited-scope", "BYTES", AT(max_exited),
	       "maximum heap in use of ended tasks (HEAPTAP_TASK), all together",
	       .check = check_size),
	OPTION(TEXT, 0, "max-unexplained", "BYTES", AT(max_unexplained),
	       "maximum growth of resident memory outside of malloc heaps, files, stacks and "
	       "the like, in bytes or percent of resident memory",
	       .check = check_resident_part),
	OPTION(TEXT, 0, "max-retained", "BYTES", AT(max_retained),
	       "maximum free memory that malloc keeps resident at the end, in bytes or percent of "
	       "resident memory",
	       .check = check_resident_part),
	OPTION(PERCENT, 0, "confidence", "PCT", AT(confidence),
	       "confidence of pass and of fail, each", .value = "99"),

	{ .type = OPTION_HEADING, .help = "target and recording" },
	OPTION(TEXTS, 'p', "pid", "PID[,PID...]", AT(with.pids),
	       "running processes, summed up; may be repeated",
	       .check = record_settings_check_pids),
	OPTION(FLAG, 0, "follow", NULL, AT(with.recorder.follow),
	       "record children too, present and future"),
	OPTION(TIME, 'd', "duration", "TIME", AT(with.recorder.duration_ns),
	       "record for TIME (default 30s; a command until it ends). A command that still runs gets SIGTERM",
	       .min = 1, .wanted = "a time such as 30s, 5m or 1m30s"),
	OPTION(SIZE, 'r', "rate", "BYTES", AT(with.recorder.rate_bytes),
	       "one sample per BYTES allocated, on average; 1 = every allocation", .value = "4k",
	       .min = 1, .max = 1ULL << 40),
	OPTION(LIMIT, 0, "max-overhead", "PCT", AT(with.max_overhead),
	       "as with heaptap record (default 25; off with --rate 1)", .max = 99),
	OPTION(CHOICE, 0, "tap", "auto|only|no", AT(with.recorder.tap),
	       "as with heaptap record, for programs that allocate all the time",
	       .flags = OPTION_MAY_HAVE_VALUE, .value = "no", .choices = tap_wish_names),

	{ .type = OPTION_HEADING, .help = "output" },
	OPTION(CHOICE, 'f', "format", "WHAT", AT(format),
	       "format: text (default), json or junit (XML of test results)", .choices = formats),
	OPTION(TEXT, 'o', "output", "FILE", AT(output),
	       "write to FILE instead of standard output; an existing file is replaced"),
	OPTION(TEXT, 0, "profile", "FILE", AT(profile),
	       "also save the profile; an existing file is replaced"),
	OPTION(COUNT, 'n', "top", "N", AT(top_cnt),
	       "rows to print for a limit that does not pass; 0 = all", .value = "5"),
	OPTION(FLAG, 'q', "quiet", NULL, AT(is_quiet), "print only the result, errors and losses"),
	OPTION(FLAG, 'v', "verbose", NULL, AT(is_verbose), "log what heaptap does"),
	COMMAND_HELP_ROW,
	COMMAND_VERSION_ROW,
};

static const struct option_table check_table = { .rows = rows,
						 .cnt = sizeof(rows) / sizeof(*rows),
						 .ends_at_operand = true };

static void ask(struct limit_options *l, enum limit_kind kind, double limit)
{
	l->is_asked[kind] = true;
	l->limit[kind] = limit;
}

static void ask_part(struct limit_options *l, enum limit_kind kind, const char *text)
{
	double limit;

	if (text && !parse_part(text, 100, &limit, &l->is_share[kind]))
		ask(l, kind, limit);
}

static void settle_limits(struct check_options *o)
{
	struct limit_options *l = &o->limits;
	uint64_t bytes;
	double limit = MORE_DEFAULT;

	l->tail = 1 - o->confidence / 100;
	l->row_cap = o->top_cnt;
	l->before_name = o->base;
	if (o->max_inuse && !parse_size(o->max_inuse, &bytes))
		ask(l, LIMIT_INUSE, (double)bytes);
	if (o->max_exited && !parse_size(o->max_exited, &bytes))
		ask(l, LIMIT_EXITED, (double)bytes);
	if (o->base) {
		l->is_share[LIMIT_MORE] = true;
		if (o->max_increase)
			parse_part(o->max_increase, INCREASE_MOST, &limit,
				   &l->is_share[LIMIT_MORE]);
		ask(l, LIMIT_MORE, limit);
	}
	ask_part(l, LIMIT_UNEXPLAINED, o->max_unexplained);
	ask_part(l, LIMIT_RETAINED, o->max_retained);
	limit = GROWTH_DEFAULT;
	if (o->max_growth)
		parse_growth(o->max_growth, &limit);
	if (o->max_growth || (!o->max_inuse && !o->max_exited && !o->base && !o->max_unexplained &&
			      !o->max_retained))
		ask(l, LIMIT_GROWTH, limit);
}

/* Refuse files that cannot be what is asked for. */
static int check_paths(const struct check_options *o)
{
	if (o->profile && out_file_is_stdout(o->profile)) {
		log_error("check: --profile needs a file: standard output is for the result");
		return -EINVAL;
	}
	if (o->base && !strcmp(o->base, "-")) {
		log_error("check: --base needs a file: only the later profile can come from "
			  "standard input");
		return -EINVAL;
	}
	return 0;
}

/* Refuse what makes no sense with any limit. */
static int check_limits(const struct check_options *o)
{
	uint64_t duration_ns = o->with.recorder.duration_ns;
	bool has_growth = o->limits.is_asked[LIMIT_GROWTH];

	if (o->max_increase && !o->base) {
		log_error("check: --max-increase needs --base FILE");
		return -EINVAL;
	}
	if (o->limits.warm_up_ns && !has_growth) {
		log_error("check: --warm-up applies to growth only: give --max-growth RATE");
		return -EINVAL;
	}
	if ((o->max_unexplained || o->max_retained) && o->with.recorder.argv) {
		log_error("check: --max-%s needs a running process, or a profile of one: give -p "
			  "PID or a FILE",
			  o->max_unexplained ? "unexplained" : "retained");
		return -EINVAL;
	}
	if (o->confidence < 50 || o->confidence >= 100) {
		log_error("check: --confidence must be at least 50 and below 100 %%, such as 95 or "
			  "99.9");
		return -EINVAL;
	}
	if (has_growth && duration_ns && duration_ns < GROWTH_LEAST_NS + o->limits.warm_up_ns) {
		log_error("check: growth needs a --duration of at least 5 s after --warm-up");
		return -EINVAL;
	}
	return 0;
}

/* With a file, refuse options that are for a recording. */
static int check_file(const struct check_options *o, const struct option_args *args)
{
	static const char *const names[] = { "follow", "duration", "rate", "max-overhead",
					     "tap",    "profile",  NULL };

	for (size_t i = 0; names[i]; i++) {
		if (option_args_find(args, names[i])) {
			log_error(
				"check: '%s' is a recorded profile: --%s needs a process (-p) or a "
				"command (after --)",
				o->path, names[i]);
			return -EINVAL;
		}
	}
	return 0;
}

static int take_operands(struct check_options *o, const struct option_args *args)
{
	char **operands = o->argv + args->first;
	bool has_whom = record_settings_has_targets(&o->with);
	bool is_more_pids = record_settings_has_more_pids(&o->with, operands);

	if (!operands[0] && !has_whom) {
		log_error("check: nothing to check: give -p PID, -- COMMAND, or a FILE");
		return -EINVAL;
	}
	if (!operands[0] || is_more_pids || !strcmp(operands[-1], "--")) {
		o->first = operands[0] && !is_more_pids ? args->first : 0;
		return record_settings_operands(&o->with, "check", args, operands);
	}
	if (has_whom || operands[1]) {
		log_error("check: unexpected argument '%s': %s", operands[has_whom ? 0 : 1],
			  has_whom		? "-p PID and a FILE exclude each other" :
			  operands[1][0] == '-' ? "options go before the FILE" :
						  "one FILE, or -- in front of a command");
		return -EINVAL;
	}
	o->path = operands[0];
	return check_file(o, args);
}

/* Call with argv and argc set and the options applied. 0 or -EINVAL: the reason was logged. */
static int check_options_settle(struct check_options *o, const struct option_args *args)
{
	int err = record_settings_settle(&o->with, "check", args);

	o->with.recorder.live_cap = 1000000;
	o->with.recorder.stack_cap = 65536;
	o->with.recorder.is_quiet = o->is_quiet;
	settle_limits(o);
	if (o->output && !option_args_find(args, "format"))
		o->format = ending_meaning(o->output, endings, sizeof(endings) / sizeof(*endings),
					   LIMIT_TEXT);
	if (!err)
		err = take_operands(o, args);
	if (!err)
		err = check_paths(o);
	if (!err)
		err = check_limits(o);
	if (o->with.whom.pids.cnt && !o->with.recorder.duration_ns)
		o->with.recorder.duration_ns = RUNNING_NS + o->limits.warm_up_ns;
	return err;
}

/* ---- output ---- */

struct outputs {
	struct out_file *result, *profile; /* NULL: none */
	int stdout_fd;
};

/* NULL: standard output. */
static const char *result_path(const struct check_options *o)
{
	return o->output && !out_file_is_stdout(o->output) ? o->output : NULL;
}

static int open_out(const char *path, struct out_file **ret)
{
	struct err why;
	int err = out_file_open(path, true, " with -o FILE", ret, &why);

	if (err)
		log_error("check: %s", why.text);
	return err;
}

static int commit(struct out_file *file)
{
	int err = out_file_commit(file);

	if (err)
		log_error("check: cannot write '%s': %s", out_file_path(file), strerror(-err));
	return err;
}

static int write_result(const struct check_options *o, const struct limits *l,
			const struct outputs *to)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	int err;

	if (!out)
		return -ENOMEM;
	err = limits_write(l, (enum limit_format)o->format, out);
	if (fclose(out) && !err)
		err = -ENOMEM;
	if (!err)
		err = write_all(to->result ? out_file_fd(to->result) : to->stdout_fd, text, bytes);
	if (err)
		log_error("check: cannot write the result: %s", strerror(-err));
	else if (to->result)
		err = commit(to->result);
	free(text);
	return err;
}

static void put_words(char *const *argv, int first, int end, FILE *out)
{
	for (; first < end; first++) {
		fputc(' ', out);
		shell_word_put(argv[first], out);
	}
}

/* When tracking frees was too expensive, print the command line that would know what is in use. */
static void say_way_out(const struct check_options *o, const struct profile *p)
{
	unsigned percent = recording_advised_percent(&p->recording);
	int last = o->first ? (int)o->first - 1 : o->argc; /* in front of -- */
	char *text = NULL, limit[48] = " --max-overhead off";
	size_t bytes;
	FILE *out;

	if (p->recording.inuse != RECORDING_INUSE_UNKNOWN || p->recording.has_no_tap || o->path)
		return;
	out = open_memstream(&text, &bytes);
	if (!out)
		return;
	if (percent)
		snprintf(limit, sizeof(limit), " --max-overhead %u", percent);
	put_words(o->argv, 1, last, out);
	fputs(limit, out);
	put_words(o->argv, last, o->argc, out);
	if (!fclose(out)) {
		make_printable(text);
		log_error("check: to measure heap in use: heaptap check%s", text);
	}
	free(text);
}

static int status_of(const struct limits *l)
{
	return l->verdict == LIMIT_KEPT ? 0 : l->verdict == LIMIT_BROKEN ? 1 : COMMAND_UNDECIDED;
}

/* before: NULL without --base. failure: of the command or the recording, or "". */
static int judge(const struct check_options *o, const struct profile *p,
		 const struct profile *before, const char *failure, const struct outputs *to)
{
	struct limits l;
	int err = limits_judge(p, before, &o->limits, &l);

	if (err == -EINVAL)
		log_error("check: the profile has no values to check");
	else if (err)
		log_error("check: cannot check the profile: %s", strerror(-err));
	if (!err && failure[0])
		limits_fail(&l, failure);
	if (!err)
		err = write_result(o, &l, to);
	if (!err)
		say_way_out(o, p);
	limits_release(&l);
	return err ? COMMAND_UNDECIDED : status_of(&l);
}

/* ---- input ---- */

/* Read a profile, and look up the names if it is a dump. */
static int read_profile(const char *path, struct profile **ret)
{
	int err = profile_in_read("check", path, NULL, ret);

	return err ? err : profile_in_name("check", *ret);
}

/* What a process that was stopped half-way would have held at its end is not known; nor for a command that failed
 * by itself. */
static void find_failure(const struct recorder_facts *f, char *failure, size_t failure_bytes)
{
	int status = f->was_started ? f->exit_status : -1;

	if (f->is_cut_short)
		snprintf(failure, failure_bytes, "the recording ended early: %s", f->end_reason);
	else if (status >= 0 && WIFSIGNALED(status))
		snprintf(failure, failure_bytes, "the command was ended by signal %d (%s)",
			 WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (status >= 0 && WEXITSTATUS(status))
		snprintf(failure, failure_bytes, "the command failed: it exited with status %d",
			 WEXITSTATUS(status));
	if (failure[0])
		log_error("check: %s", failure);
}

/* End a command that still runs: nobody else would. */
static void end_command(const struct recorder_facts *f)
{
	if (f->was_started && f->exit_status < 0)
		kill(f->pid, SIGTERM); /* not reaped: the pid is still its own */
}

/* A file for programs must have nothing else in it: so the output of a command goes to standard error. */
static int take_stdout(const struct check_options *o, int *ret_fd)
{
	int err = 0;

	if (o->format != LIMIT_TEXT && !result_path(o) && o->with.recorder.argv)
		err = out_file_take_stdout(ret_fd);
	if (err && err != -ENOTTY) {
		log_error("check: cannot write to standard output: %s", strerror(-err));
		return err;
	}
	return 0;
}

static int open_outputs(const struct check_options *o, struct outputs *out)
{
	int err = take_stdout(o, &out->stdout_fd);

	if (!err && result_path(o))
		err = open_out(result_path(o), &out->result);
	if (!err && o->profile)
		err = open_out(o->profile, &out->profile);
	return err;
}

static int check_saved(const struct check_options *o, const struct profile *before)
{
	struct outputs out = { .stdout_fd = STDOUT_FILENO };
	struct profile *p = NULL;
	int err = read_profile(o->path, &p), status = COMMAND_UNDECIDED;

	if (!err)
		err = open_outputs(o, &out);
	if (!err)
		status = judge(o, p, before, "", &out);
	out_file_free(out.result);
	profile_free(p);
	return status;
}

static int save_profile(const struct profile *p, struct out_file *file)
{
	int err = pprof_write(p, out_file_fd(file));

	if (!err)
		return commit(file);
	log_error("check: cannot write '%s': %s", out_file_path(file), strerror(-err));
	return err;
}

static int judge_recording(const struct check_options *o, const struct profile *before,
			   const struct recorder *r, const struct outputs *out)
{
	const struct result_options opts = {
		.labels = LABEL_ALL,
		.program_argv = o->with.recorder.argv,
		.command_argv = o->argv,
		.command_argc = o->argc,
	};
	char failure[128] = "";
	struct recorder_facts facts;
	struct profile *p = NULL;
	int err = result_profile(&opts, r, &p), status = COMMAND_UNDECIDED;

	recorder_facts(r, &facts);
	end_command(&facts);
	find_failure(&facts, failure, sizeof(failure));
	if (!err)
		err = result_explain(&opts, r, p);
	if (!err && out->profile)
		err = save_profile(p, out->profile);
	if (!err)
		status = judge(o, p, before, failure, out);
	profile_free(p);
	return status;
}

static int check_recorded(struct check_options *o, const struct profile *before)
{
	struct outputs out = { .stdout_fd = STDOUT_FILENO };
	struct whom_found found = { 0 };
	struct recorder *r = NULL;
	int status = COMMAND_UNDECIDED;
	int err = o->with.recorder.argv ? 0 : record_settings_find(&o->with, "check", &found);

	if (!err)
		err = open_outputs(o, &out);
	if (!err)
		err = recorder_open(&o->with.recorder, &r);
	if (!err)
		err = recorder_start(r);
	if (!err)
		err = recorder_run(r);
	if (!err) /* a part of it proves nothing */
		err = recorder_error(r);
	if (!err)
		status = judge_recording(o, before, r, &out);
	recorder_close(r);
	out_file_free(out.result);
	out_file_free(out.profile);
	vec_release(&found.pids);
	return status;
}

static int run(int argc, char **argv, const struct option_args *args)
{
	struct check_options o = { .argv = argv,
				   .argc = argc,
				   .with = { .recorder = { .stdout_fd = -1,
							   .rate_is_fixed = true } } };
	struct profile *before = NULL;
	int err = command_settings(&command_check, args, &o), status = 2;

	log_set_level(o.is_verbose ? LOG_DEBUG : o.is_quiet ? LOG_WARN : LOG_INFO);
	if (!err)
		err = check_options_settle(&o, args);
	if (!err) /* the command line was right */
		status = COMMAND_UNDECIDED;
	if (!err && o.base) /* first: without it a recording would be useless */
		err = read_profile(o.base, &before);
	if (!err)
		status = o.path ? check_saved(&o, before) : check_recorded(&o, before);
	profile_free(before);
	whom_release(&o.with.whom);
	option_release(&check_table, &o);
	return status;
}

const struct command command_check = {
	.name = "check",
	.summary = "check the memory of a process against limits, for CI",
	.example = "heaptap check -p PID -d 60s",
	.options = &check_table,
	.usage = usage,
	.more = more,
	.run = run,
};
