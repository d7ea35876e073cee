/* SPDX-License-Identifier: MIT */
/*
 * cmd/record.c - `heaptap record`: options in, a recording through its phases, results out.
 *
 * Wiring only: the recording itself is record/recorder.c, the profile record/record_result.c.
 */
#include <sys/wait.h>

#include "base/err.h"
#include "base/log.h"
#include "base/names.h"
#include "base/sandbox.h"
#include "cmd/cmd.h"
#include "cmd/record_settings.h"
#include "proc/select.h"
#include "record/out_file.h"
#include "record/recorder.h"
#include "record/record_result.h"
#include "record/scope_labels.h"

static const char usage[] =
	"usage: heaptap record [OPTIONS] -p PID\n"
	"       heaptap record [OPTIONS] --comm NAME | --cgroup PATH\n"
	"       heaptap record [OPTIONS] -- COMMAND [ARG...]\n\n"
	"Record which code allocates and holds the memory of a process. Ends when the time is "
	"up, when\n"
	"all processes have ended, or with Ctrl-C; then saves a profile (pprof) and prints the "
	"largest\n"
	"holders.\n";

static const char more[] =
	"\n"
	"examples:\n"
	"  heaptap record -d 30s -p $(pidof -s redis-server)\n"
	"  heaptap record -d 1m30s --comm '^nginx$'\n"
	"  heaptap record --rate 1 -o app.pb.gz -- ./app --serve\n"
	"  heaptap report app.pb.gz\n"
	"\n"
	"exit status: 0 recorded, 1 error, 2 wrong usage; with COMMAND its own (128+N: ended by signal N;\n"
	"0 if it still runs), and 125 if heaptap failed\n";

struct record_options {
	struct record_settings with;
	struct result_options result;
	/* Option values that the members above are made of. */
	char *output, *page, *labels;
	uint64_t live_cap, stack_cap;
	int realloc_scope;
	bool is_quiet, is_verbose, is_dry_run;
};

static int parse_labels(const char *text, unsigned *ret)
{
	static const struct {
		const char *name;
		unsigned label;
	} names[] = { { "scope", LABEL_SCOPE },	  { "app", LABEL_APP }, { "task", LABEL_TASK },
		      { "thread", LABEL_THREAD }, { "all", LABEL_ALL }, { "none", 0 } };
	const size_t cnt = sizeof(names) / sizeof(*names);

	*ret = 0;
	for (;;) {
		size_t len = strcspn(text, ","), i = 0;

		while (i < cnt &&
		       (strlen(names[i].name) != len || strncmp(names[i].name, text, len)))
			i++;
		if (i == cnt)
			return -EINVAL;
		*ret |= names[i].label;
		if (!text[len])
			return 0;
		text += len + 1;
	}
}

static int check_labels(const char *text, struct err *why)
{
	unsigned labels;

	return err_set(why, parse_labels(text, &labels),
		       "a list of scope, app, task, thread, all, none");
}

static const char *const label_names[] = { "scope", "app", "task", "thread", "all", "none", NULL };
static const char *const realloc_scopes[] = { "current", "origin", NULL };
/* In the order of enum attach_mode. */
static const char *const attach_modes[] = { "auto", "session", "multi", "perf", NULL };

#define PREVIEW_WALL_S 60

#define AT(member) offsetof(struct record_options, member)

static const struct option_row rows[] = {
	{ .type = OPTION_HEADING, .help = "target" },
	OPTION(TEXTS, 'p', "pid", "PID[,PID...]", AT(with.pids),
	       "these running processes; may be repeated", .check = record_settings_check_pids),
	OPTION(TEXTS, 0, "comm", "NAME", AT(with.whom.comms),
	       "running processes whose name matches this regular expression (POSIX extended) "
	       "anywhere; may be repeated: one has to match",
	       .check = select_check_pattern),
	OPTION(TEXTS, 0, "cgroup", "PATH", AT(with.whom.cgroups),
	       "running processes in this cgroup or below it; may be repeated. With --comm a "
	       "process must match both. Processes that start later: heaptap serve"),
	OPTION(FLAG, 0, "follow", NULL, AT(with.recorder.follow),
	       "record children too, present and future"),

	{ .type = OPTION_HEADING, .help = "duration and output" },
	OPTION(TIME, 'd', "duration", "TIME", AT(with.recorder.duration_ns),
	       "stop after TIME (30, 30s, 5m, 1m30s, 2h; default: until Ctrl-C)", .min = 1,
	       .wanted = "a time such as 30s, 5m or 1m30s"),
	OPTION(TEXT, 'o', "output", "FILE", AT(output),
	       "save the profile here; - is standard output (default: COMM-PID-TIME.pb.gz in the "
	       "current folder, TIME in UTC)"),
	OPTION(TEXT, 0, "html", "FILE", AT(page),
	       "also write a page with a flame graph, to open in a browser"),
	OPTION(FLAG, 0, "open", NULL, AT(result.opens),
	       "open that page in your browser (default: beside the profile, as .html)"),
	OPTION(FLAG, 0, "force", NULL, AT(result.replaces),
	       "replace FILE if it exists; write to any folder"),
	OPTION(COUNT, 'n', "top", "N", AT(result.top_cnt), "rows to print at the end; 0 = none",
	       .value = "10", .max = 1 << 20),
	OPTION(FLAG, 'q', "quiet", NULL, AT(is_quiet), "print errors and losses only"),
	OPTION(FLAG, 'v', "verbose", NULL, AT(is_verbose), "log what heaptap does"),

	{ .type = OPTION_HEADING, .help = "cost and precision" },
	OPTION(SIZE, 'r', "rate", "BYTES", AT(with.recorder.rate_bytes),
	       "one sample per BYTES allocated, on average; 1 = every allocation. The default "
	       "is finer for processes that allocate little, down to 4k",
	       .value = "64k", .min = 1, .max = 1ULL << 40),
	OPTION(LIMIT, 0, "max-overhead", "PCT", AT(with.max_overhead),
	       "maximum overhead of probes, in % of the process's CPU time; never below 1 % of "
	       "one CPU, unless written with ! as in 5! (default 25, or 25 % of one CPU if that "
	       "is more). Above it, heaptap samples more coarsely, then stops tracking frees "
	       "(heap in use becomes unknown), then stops recording. off = no limit, the default "
	       "with --rate 1",
	       .max = 99),
	OPTION(COUNT, 0, "max-live", "N", AT(live_cap), "at most N sampled blocks in use",
	       .value = "1000000", .min = 1, .max = 1 << 28),
	OPTION(COUNT, 0, "max-stacks", "N", AT(stack_cap), "at most N distinct call stacks",
	       .value = "65536", .min = 1, .max = 1 << 24),

	{ .type = OPTION_HEADING, .help = "advanced" },
	OPTION(FLAG, 0, "no-hold", NULL, AT(with.recorder.no_hold),
	       "do not ptrace COMMAND. Allocations right after it executes another program may be "
	       "missed"),
	OPTION(CHOICE, 0, "source", "auto|probes|usdt", AT(with.recorder.source),
	       "source of samples: probes on the allocator, or the USDT probes of a sampler in "
	       "the program (otel_memory, ddheap). auto: probes, until such a sampler "
	       "reports",
	       .choices = probes_source_names),
	OPTION(CHOICE, 0, "tap", "auto|only|no", AT(with.recorder.tap),
	       "for programs that allocate all the time: patch the allocator so that the process "
	       "chooses its samples; other allocations cost some ns. Pauses the threads for "
	       "milliseconds. auto: once probes cost too much (default for COMMAND); only: record "
	       "nothing if the tap is refused; no: probes only (default for running processes)",
	       .flags = OPTION_MAY_HAVE_VALUE, .choices = tap_wish_names),
	OPTION(FLAG, 0, "dry-run", NULL, AT(is_dry_run),
	       "with --tap and -p: print the changes that the tap would make, or why it is refused; "
	       "change nothing"),
	OPTION(FLAG, 0, "probe-throwing-new", NULL, AT(with.recorder.alloc.probe_throwing),
	       "before Linux 6.13: record operator new of jemalloc, tcmalloc and mimalloc, "
	       "too. If it throws, the program is ended"),
	OPTION(FLAG, 0, "keep-allocator-frames", NULL, AT(result.keep_allocator_frames),
	       "keep malloc and the like at the leaf of each stack"),
	OPTION(TEXT, 0, "labels", "LIST", AT(labels),
	       "labels of the profile's rows: scope, app (labels that the program sets), task, "
	       "thread; or all (default), or none",
	       .choices = label_names, .check = check_labels),
	OPTION(FLAG, 0, "group-threads", NULL, AT(result.group_threads),
	       "sum up the threads of a pool: worker-12 -> worker-*"),
	OPTION(CHOICE, 0, "realloc-scope", "current|origin", AT(realloc_scope),
	       "charge a reallocated block to the scope of the call (default), or of the old block, "
	       "if that was sampled",
	       .choices = realloc_scopes),
	OPTION(FLAG, 0, "jvm-perfmap", NULL, AT(with.recorder.jvm_perfmap),
	       "at the end, ask JVMs (17 or later) for the names of compiled functions: each writes "
	       "/tmp/perf-PID.map, as with jcmd PID Compiler.perfmap"),
	OPTION(FLAG, 0, "no-lines", NULL, AT(result.no_lines),
	       "function names only: no files, lines and inlines (faster)"),
	OPTION(CHOICE, 0, "attach-mode", "MODE", AT(with.recorder.mode), "",
	       .choices = attach_modes, .flags = OPTION_HIDDEN),
	OPTION(FLAG, 0, "tap-exactly", NULL, AT(with.tap_exactly), "", .flags = OPTION_HIDDEN),
	OPTION(FLAG, 0, "naive-placement", NULL, AT(with.recorder.alloc.naive), "",
	       .flags = OPTION_HIDDEN),
	COMMAND_HELP_ROW,
	COMMAND_VERSION_ROW,
};

static const struct option_table table = { .rows = rows,
					   .cnt = sizeof(rows) / sizeof(*rows),
					   .ends_at_operand = true };

/* Set what the recording takes in another form. */
static int settle(struct record_options *o, const struct option_args *args)
{
	o->with.recorder.live_cap = (uint32_t)o->live_cap;
	o->with.recorder.stack_cap = (uint32_t)o->stack_cap;
	o->with.recorder.realloc_keeps_scope = o->realloc_scope;
	o->with.recorder.is_quiet = o->result.is_quiet = o->is_quiet;
	o->result.output = o->output;
	o->result.page = o->page;
	o->result.labels = LABEL_ALL;
	if (o->labels)
		parse_labels(o->labels, &o->result.labels);
	return record_settings_settle(&o->with, "record", args);
}

static int take_operands(char **argv, const struct option_args *args, struct record_options *o)
{
	char **operands = argv + args->first;
	int err;

	if (!operands[0] && !record_settings_has_targets(&o->with)) {
		log_error("record: nothing to record: give -p PID, --comm NAME, --cgroup PATH, or "
			  "-- COMMAND");
		return -EINVAL;
	}
	err = record_settings_operands(&o->with, "record", args, operands);
	o->result.program_argv = o->with.recorder.argv;
	return err;
}

static int check_dry_run(const struct record_options *o)
{
	const enum tap_wish tap = o->with.recorder.tap;

	if (!o->is_dry_run || (tap != TAP_STARTED && tap != TAP_NEVER && !o->with.recorder.argv))
		return 0;
	log_error("record: --dry-run needs --tap and -p PID: it shows what the tap would change");
	return -EINVAL;
}

/* A profile whose name says that it is something else would be opened as that. */
static int check_output(const struct record_options *o)
{
	static const char *const others[] = { ".html", ".htm", ".json", ".txt", NULL };

	if (o->output && has_unwritten_ending(o->output)) {
		log_error("record: heaptap does not write the format of '%s': save the profile as "
			  ".pb.gz; heaptap report turns it into .html, .json, .collapsed or .heap",
			  o->output);
		return -EINVAL;
	}
	for (size_t i = 0; o->output && others[i]; i++) {
		int stem_len = (int)(strlen(o->output) - strlen(others[i]));

		if (!has_ending(o->output, others[i]))
			continue;
		log_error("record: '%s' is a format of heaptap report: use -o %.*s.pb.gz here, "
			  "then heaptap report -o %s %.*s.pb.gz%s",
			  o->output, stem_len, o->output, o->output, stem_len, o->output,
			  i < 2 ? "; --html FILE writes both" : "");
		return -EINVAL;
	}
	if (o->page && out_file_is_stdout(o->page)) {
		log_error("record: --html needs a file");
		return -EINVAL;
	}
	return 0;
}

/* Refuse a terminal: a profile on it is of no use. */
static int take_stdout(struct record_options *o)
{
	int err;

	if (!o->result.output || !out_file_is_stdout(o->result.output))
		return 0;
	err = out_file_take_stdout(&o->result.stdout_fd);
	o->with.recorder.stdout_fd = o->result.stdout_fd;
	if (err == -ENOTTY)
		log_error("record: the profile is not text, and standard output is a terminal: "
			  "redirect it, or give a file with -o FILE");
	else if (err)
		log_error("record: cannot write to standard output: %s", strerror(-err));
	return err;
}

static int preview_one(void *pid)
{
	return tap_preview(*(pid_t *)pid, stdout) ? 1 : 0;
}

/* Preview each process; the first error ends it. A child reads them, as a hostile file could take over its reader. */
static int preview(struct record_options *o)
{
	struct whom_found found = { 0 };
	int err = record_settings_find(&o->with, "record", &found);

	for (size_t i = 0; i < found.pids.cnt && !err; i++) {
		err = sandbox_run_reading(preview_one, &found.pids.data[i], PREVIEW_WALL_S);
		if (err < 0)
			log_error("record: cannot read process %d: %s", found.pids.data[i],
				  sandbox_reading_error(err));
	}
	vec_release(&found.pids);
	return err;
}

/* As a shell tells it. */
static int program_status(struct recorder *r)
{
	int status = recorder_program_status(r);

	if (status < 0) /* it still runs */
		return 0;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Returns the exit status. */
static int record(struct record_options *o)
{
	bool starts = o->with.recorder.argv != NULL;
	struct whom_found found = { 0 };
	struct recorder *r = NULL;
	struct result *res = NULL;
	int err = record_settings_find(&o->with, "record", &found), status;

	if (!err)
		err = take_stdout(o);
	if (!err)
		err = recorder_open(&o->with.recorder, &r);
	if (!err) /* reported before anything is attached */
		err = result_open(&o->result, recorder_targets(r), &res);
	if (!err)
		err = recorder_start(r);
	if (!err)
		err = recorder_run(r);
	if (!err)
		err = result_write(res, r);
	if (!err)
		err = recorder_error(r);
	if (!starts)
		status = err ? 1 : 0;
	else
		status = COMMAND_PROGRAM + (err ? COMMAND_FAILED : program_status(r));
	result_close(res);
	recorder_close(r);
	vec_release(&found.pids);
	return status;
}

static int run(int argc, char **argv, const struct option_args *args)
{
	struct record_options o = { .with = { .recorder = { .stdout_fd = -1 } },
				    .result = { .stdout_fd = -1 } };
	int err = command_settings(&command_record, args, &o), status = 2;

	log_set_level(o.is_verbose ? LOG_DEBUG : o.is_quiet ? LOG_WARN : LOG_INFO);
	o.result.command_argv = argv;
	o.result.command_argc = argc;
	if (!err)
		err = settle(&o, args);
	if (!err)
		err = take_operands(argv, args, &o);
	if (!err)
		err = check_dry_run(&o);
	if (!err)
		err = check_output(&o);
	if (!err)
		status = !o.is_dry_run ? record(&o) : preview(&o) ? 1 : 0;
	whom_release(&o.with.whom);
	option_release(&table, &o);
	return status;
}

const struct command command_record = {
	.name = "record",
	.summary = "record a process and show which code holds its memory (as root)",
	.example = "heaptap record -p PID -d 30s",
	.options = &table,
	.usage = usage,
	.more = more,
	.returns_program_status = true,
	.run = run,
};
