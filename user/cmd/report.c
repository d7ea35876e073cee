/* SPDX-License-Identifier: MIT */
/* cmd/report.c - `heaptap report` and `heaptap diff`: make a report of one or two files. Wiring only. */

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/report_priv.h"
#include "profile/match_list.h"
#include "profile/moment.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "record/out_file.h"
#include "report/report_diff.h"

static const char usage[] =
	"usage: heaptap report [OPTIONS] FILE\n\n"
	"Read a pprof heap profile, heaptap's own or another tool's, or a heap dump of jemalloc "
	"or\n"
	"gperftools, and show which code holds the memory.\n"
	"FILE may be - for standard input, or the address of a profile that heaptap serves.\n\n";

static const char more[] = "\n"
			   "examples:\n"
			   "  heaptap report FILE\n"
			   "  heaptap report --by thread FILE\n"
			   "  heaptap report --at peak FILE\n"
			   "  heaptap report --sort growth FILE\n"
			   "  heaptap report --sort temporary FILE\n"
			   "  heaptap report --module my_app,libmine FILE\n"
			   "  heaptap report --by scope --match 'Csd*,-Csd_Write' FILE\n"
			   "  heaptap report --by function --scope Top/Query FILE\n"
			   "  heaptap report --format html -o heap.html FILE\n";

static const char diff_usage[] =
	"usage: heaptap diff [OPTIONS] BEFORE AFTER\n\n"
	"Show the changes from one pprof heap profile to another, with 95 % intervals.\n"
	"Changes within sampling noise are summed up. The profiles may be of different "
	"processes, builds\n"
	"and rates: rows are compared by name. AFTER may be - for standard input; both may be "
	"addresses of\n"
	"profiles that heaptap serves, current or saved.\n\n";

static const char diff_more[] =
	"\n"
	"examples:\n"
	"  heaptap diff monday.pb.gz tuesday.pb.gz\n"
	"  heaptap diff --by function --format json BEFORE AFTER\n"
	"  heaptap diff --format html -o diff.html BEFORE AFTER\n"
	"  heaptap diff BEFORE 'http://127.0.0.1:7676/debug/pprof/heap?pid=PID'\n";
static void warn_of_unused_patterns(const struct match_list *match)
{
	const char *pattern;
	size_t pos = 0;

	while (match && (pattern = match_list_unused(match, &pos)))
		log_warn("report: the pattern '%s' of --match matches no scope", pattern);
}

/* Write the report, or the difference. */
static int write_report(const struct report_cli *c, const struct profile *before,
			const struct profile *p, FILE *out)
{
	struct err why = { 0 };
	int err;

	if (!before)
		return report_write(p, &c->report, out);
	err = report_diff(before, c->base_path, p, c->path, &c->report, out, &why);
	if (why.text[0])
		log_error("diff: %s", why.text);
	return err;
}

/* Write to standard output; text longer than the terminal goes through a pager. */
static int write_to_stdout(const struct report_cli *c, const char *text, size_t bytes)
{
	if (c->report.format == REPORT_TEXT)
		return terminal_page(text, !c->has_no_pager);
	return fwrite(text, 1, bytes, stdout) == bytes && !fflush(stdout) ? 0 :
	       errno							  ? -errno :
									    -EIO;
}

/* Write a file completely or not at all; an existing one is replaced. Errors are logged. */
static int write_to_file(const char *path, const char *text, size_t bytes)
{
	struct out_file *file = NULL;
	struct err why;
	int err = out_file_open(path, true, " with -o FILE", &file, &why);

	if (err) {
		log_error("report: %s", why.text);
		return err;
	}
	err = write_all(out_file_fd(file), text, bytes);
	if (!err)
		err = out_file_commit(file);
	if (err)
		log_error("report: cannot write '%s': %s", path, strerror(-err));
	out_file_free(file);
	return err;
}

static int write_out(const struct report_cli *c, const struct profile *before,
		     const struct profile *p)
{
	bool is_file = c->output && !out_file_is_stdout(c->output);
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	int err;

	if (!out)
		return -ENOMEM;
	err = write_report(c, before, p, out);
	if (fclose(out) && !err)
		err = -ENOMEM;
	if (!err && is_file) {
		err = write_to_file(c->output, text, bytes);
		goto out;
	}
	if (!err)
		err = write_to_stdout(c, text, bytes);
	if (err && err != -EINVAL) /* which was logged */
		log_error("report: cannot write the report: %s", strerror(-err));
out:
	free(text);
	return err;
}

/* Write the changes as a profile: to a file, completely or not at all, or to standard output. */
static int write_changes(const struct report_cli *c, const struct profile *before,
			 const struct profile *p)
{
	bool is_file = c->output && !out_file_is_stdout(c->output);
	struct out_file *file = NULL;
	struct profile *changes = NULL;
	struct err why = { 0 };
	int err = report_diff_profile(before, c->base_path, p, c->path, &c->report, &changes, &why);

	if (!err && is_file)
		err = out_file_open(c->output, true, " with -o FILE", &file, &why);
	if (!err)
		err = pprof_write(changes, is_file ? out_file_fd(file) : STDOUT_FILENO);
	if (!err && is_file)
		err = out_file_commit(file);
	if (err)
		log_error("diff: %s", why.text[0] ? why.text : strerror(-err));
	out_file_free(file);
	profile_free(changes);
	return err;
}

static int keep_older(const struct report_cli *c, struct profile *p)
{
	int err = c->older_than_ns ? profile_keep_older(p, c->older_than_ns) : 0;

	if (err == -ENODATA)
		log_error("report: '%s': the ages of its blocks are unknown: only profiles of "
			  "heaptap record have them",
			  c->path);
	return err;
}

static int report_file(const struct report_cli *c)
{
	struct profile *p = NULL, *before = NULL;
	struct err why;
	int err =
		c->base_path ? profile_in_read("report", c->base_path, c->token_file, &before) : 0;

	if (!err)
		err = profile_in_read("report", c->path, c->token_file, &p);
	if (err)
		goto out;
	err = keep_older(c, p);
	if (err)
		goto out;
	err = before ? 0 : report_move(p, &c->report, &why);
	if (!err)
		err = report_check(p, &c->report, &why);
	if (err == -ENOENT || err == -ENODATA) {
		log_error("report: '%s': %s", c->path, why.text);
		goto out;
	}
	if (!err && before)
		err = profile_in_name("report", before);
	if (!err)
		err = profile_in_name("report", p);
	if (!err)
		err = c->is_pprof ? write_changes(c, before, p) : write_out(c, before, p);
	if (!err)
		warn_of_unused_patterns(c->report.match);
out:
	profile_free(before);
	profile_free(p);
	return err;
}

static int run_either(char **argv, const struct option_args *args, const struct command *command)
{
	struct report_cli c = { 0 };
	int err = command_settings(command, args, &c), status = 2;

	if (!err)
		err = report_options_settle(&c, argv, args, command == &command_diff);
	if (!err)
		status = report_file(&c) ? 1 : 0;
	match_list_free(c.report.match);
	option_release(command->options, &c);
	return status;
}

static int run_report(int argc, char **argv, const struct option_args *args)
{
	(void)argc;
	return run_either(argv, args, &command_report);
}

static int run_diff(int argc, char **argv, const struct option_args *args)
{
	(void)argc;
	return run_either(argv, args, &command_diff);
}

const struct command command_report = {
	.name = "report",
	.summary = "show a recorded profile",
	.example = "heaptap report --by thread FILE",
	.options = &report_table,
	.usage = usage,
	.more = more,
	.run = run_report,
};

const struct command command_diff = {
	.name = "diff",
	.summary = "show the changes from one profile to another",
	.example = "heaptap diff BEFORE AFTER",
	.options = &diff_table,
	.usage = diff_usage,
	.more = diff_more,
	.run = run_diff,
};
