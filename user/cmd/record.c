/* SPDX-License-Identifier: MIT */
/*
 * cmd/record.c - `heaptap record`: options in, a recording through its phases, results out.
 *
 * Wiring, and the preview of a tap: the recording itself is record/recorder.c, the profile record/record_result.c.
 */
#include <linux/capability.h>
#include <sys/wait.h>

#include "alloc/allocators.h"
#include "base/err.h"
#include "base/log.h"
#include "base/names.h"
#include "base/printable.h"
#include "base/sandbox.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/record_settings.h"
#include "kernel/privileges.h"
#include "proc/proc_text.h"
#include "proc/process.h"
#include "proc/select.h"
#include "proc/survey.h"
#include "record/out_file.h"
#include "record/recorder.h"
#include "record/record_result.h"
#include "record/scope_labels.h"
#include "tap/tap.h"
#include "track/tap_orders.h"

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
	const size_t cnt = ARRAY_CNT(names);

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
					   .cnt = ARRAY_CNT(rows),
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

static int take_stdout(struct record_options *o)
{
	int err;

	if (!o->result.output || !out_file_is_stdout(o->result.output))
		return 0;
	err = command_take_stdout("record", &o->result.stdout_fd);
	o->with.recorder.stdout_fd = o->result.stdout_fd;
	return err;
}

/*
 * --dry-run: what a tap would change in a process. It does not know what shows only when threads are stopped: a thread that
 * sleeps in the kernel for too long, or a seccomp filter that the kernel does not suspend.
 */

#define NAME_BYTES 32 /* of a process */
#define PREVIEW_WALL_S 60

struct preview {
	struct process_info info;
	FILE *out;
	int err; /* error of the first objection */
	struct err why; /* its sentence */
};

/* Only the first refusal is reported. */
__attribute__((format(printf, 3, 4))) static void refuse(struct preview *v, int err,
							 const char *fmt, ...)
{
	va_list args;

	if (v->err)
		return;
	va_start(args, fmt);
	v->err = err_set_args(&v->why, err, fmt, args);
	va_end(args);
}

/* "redis-server" */
static const char *name_of(pid_t pid, char buf[NAME_BYTES])
{
	struct process_info info;

	snprintf(buf, NAME_BYTES, "%s", process_glance(NULL, pid, &info) ? "?" : info.comm);
	make_printable(buf);
	return buf;
}

static void check_process(struct preview *v)
{
	pid_t tracer = (pid_t)proc_status_number(v->info.tgid, "TracerPid", 0);
	struct privileges p;
	char name[NAME_BYTES];

	if (tracer)
		refuse(v, -EPERM, "%s (PID %d) is debugging or tracing it: end that first",
		       name_of(tracer, name), tracer);
	if (!privileges_read(&p) && !privileges_have(&p, CAP_SYS_PTRACE))
		refuse(v, -EPERM, "heaptap needs CAP_SYS_PTRACE to stop it: run heaptap as root");
}

static const struct alloc_site *site_at(const struct alloc_file *alloc, uint64_t vaddr)
{
	const struct alloc_site *s;

	vec_each(&alloc->sites, s)
		if (s->tap.vaddr && (s->tap.vaddr == vaddr || s->tap.branch_vaddr == vaddr))
			return s;
	return NULL;
}

static void put_bytes(FILE *out, const uint8_t *bytes, unsigned int cnt)
{
	for (unsigned int i = 0; i < cnt; i++)
		fprintf(out, "%s%02x", i ? " " : "", bytes[i]);
}

static void show_patch(struct preview *v, const struct survey_file *file,
		       const struct tap_patch *patch)
{
	const struct alloc_site *site = site_at(file->alloc, patch->site_addr - file->bias);
	uint8_t there[TAP_PATCH_CAP];
	char name[NAME_BYTES + 64] = "";
	int err = process_memory_read(NULL, v->info.live_tid, patch->addr, there, patch->byte_cnt);

	if (site && patch->is_gap)
		snprintf(name, sizeof(name), "  a gap, to");
	else if (site)
		snprintf(name, sizeof(name), "%.22s%+lld", site->symbol,
			 (long long)(patch->addr - file->bias - site->fn_vaddr));
	fprintf(v->out, "    %-28s 0x%-14llx ", name, (unsigned long long)patch->addr);
	put_bytes(v->out, patch->original, patch->byte_cnt);
	fputs(" -> ", v->out);
	put_bytes(v->out, patch->patched, patch->byte_cnt);
	fputs(!site || patch->is_gap ? "" :
	      site->tap.uses_scratch ? ", saves r10 r11" :
				       ", r10 r11",
	      v->out);
	fputc('\n', v->out);
	if (err)
		refuse(v, err, "its memory cannot be read: %s", strerror(-err));
	else if (memcmp(there, patch->original, patch->byte_cnt) != 0)
		refuse(v, -EBUSY,
		       "its code at 0x%llx differs from its file: another heaptap, or another "
		       "tool's probe or breakpoint",
		       (unsigned long long)patch->addr);
}

static void show_order(struct preview *v, const struct survey_file *file,
		       const struct tap_order *order)
{
	const struct tap_header *h = tap_code_header(&order->code);
	const size_t data_bytes = TAP_DATA_BYTES; /* in pages: divided as whole numbers */
	char code[UNITS_BUF], data[UNITS_BUF], missed[160], path[4096];
	unsigned int byte_cnt = 0;

	snprintf(path, sizeof(path), "%s", file->path);
	make_printable(path);
	for (uint32_t i = 0; i < h->patch_cnt; i++)
		byte_cnt += h->patch[i].byte_cnt;
	if (order->is_mapped)
		fprintf(v->out, "  uses the memory of an earlier tap at 0x%llx\n",
			(unsigned long long)order->code_addr);
	else
		fprintf(v->out, "  maps %s of code and %s of data at 0x%llx; they stay mapped\n",
			format_bytes(TAP_CODE_BYTES, code, sizeof(code)),
			format_bytes((double)data_bytes, data, sizeof(data)),
			(unsigned long long)order->code_addr);
	fprintf(v->out, "  changes %u bytes of %s (%s), in this process only, until the end:\n",
		byte_cnt, path, file->alloc->family);
	for (uint32_t i = 0; i < h->patch_cnt; i++)
		show_patch(v, file, &h->patch[i]);
	tap_code_missed(file->alloc, missed, sizeof(missed));
	if (missed[0])
		fprintf(v->out, "  does not sample calls to: %s\n", missed);
}

static void show_files(struct preview *v, const struct survey *s)
{
	struct tap_order *order = malloc(sizeof(*order));
	const struct survey_file *file;
	struct err why;
	size_t cnt = 0;

	if (!order) {
		refuse(v, -ENOMEM, "out of memory");
		return;
	}
	vec_each(&s->files, file) {
		const struct tap_order_file of = { file->alloc, file->ino, file->bias, file->dev };
		int err;

		if (!file->alloc)
			continue;
		cnt++;
		err = tap_order_preview(NULL, &of, v->info.tgid, v->info.live_tid, order, &why);
		if (err)
			refuse(v, err, "%s", why.text);
		else
			show_order(v, file, order);
	}
	if (!cnt)
		refuse(v, -ENOENT, "it maps no known allocator");
	free(order);
}

/* 0: nothing visible from outside forbids the tap. Else it also printed why the tap would be refused. */
static int tap_preview(pid_t pid, FILE *out)
{
	struct preview v = { .out = out };
	struct survey *s = NULL;
	char name[NAME_BYTES];
	int err = process_info_read(NULL, pid, &v.info);

	if (err)
		err_set(&v.why, err, "there is no such process (ps -e lists them)");
	else
		err = process_check_probing(&v.info, &v.why);
	if (!err) {
		err = survey_process(&v.info, &s);
		if (err)
			err_set_os(&v.why, err, "it cannot be read");
	}
	v.err = err;
	fprintf(out, "A tap of PID %d (%s)\n", pid, name_of(pid, name));
	if (!err) {
		fprintf(out, "  stops its %u thread%s for milliseconds, now and at the end\n",
			v.info.thread_cnt, v.info.thread_cnt == 1 ? "" : "s");
		check_process(&v);
		show_files(&v, s);
		if (v.info.seccomp)
			fputs("  suspends its seccomp filter for that moment\n", out);
	}
	if (v.err)
		fprintf(out, "It would be refused: %s.\nNothing was changed.\n", v.why.text);
	else
		fprintf(out,
			"The tap is possible. Nothing was changed. To record with it: heaptap "
			"record --tap -p %d\n",
			pid);
	survey_free(s);
	return v.err;
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
