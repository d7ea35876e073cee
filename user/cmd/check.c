/* SPDX-License-Identifier: MIT */
/*
 * cmd/check.c - `heaptap check`: compares a recording, or a file, with limits, for automatic tests.
 *
 * Wiring only: the recording is record/recorder.c, the limits are report/limits.c. Exit status 1 is only for a
 * limit that is broken: any other failure is 2.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/printable.h"
#include "cmd/check_priv.h"
#include "cmd/cmd.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "record/out_file.h"
#include "record/recorder.h"
#include "result/record_result.h"
#include "result/scope_labels.h"

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

	if (p->recording.inuse != RECORDING_INUSE_UNKNOWN || o->path)
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
