/* SPDX-License-Identifier: MIT */
/*
 * cmd/symbolize.c - `heaptap symbolize`: adds names and lines to a profile. Wiring only.
 *
 * The recorded host has no debug information, and often not even symbols; the place where builds are made has both.
 * A build id identifies the file.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/sandbox.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "cmd/profile_in.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "record/out_file.h"
#include "symbol/debug_files.h"
#include "symbol/profile_symbols.h"

static const char usage[] =
	"usage: heaptap symbolize [OPTIONS] FILE\n\n"
	"Add names, lines and inlined functions to a profile, from files with the same build "
	"ids: programs,\n"
	"libraries, and separate debug information.\n"
	"FILE is replaced, unless --output names another file. FILE may be - for standard "
	"input.\n\n";

static const char more[] = "\n"
			   "examples:\n"
			   "  ssh HOST heaptap record -o - -d 30s -p PID >x.pb.gz\n"
			   "  heaptap symbolize --debug-dir build/ x.pb.gz\n"
			   "  heaptap symbolize --debuginfod -o named.pb.gz x.pb.gz\n";

struct symbolize_options {
	struct texts debug_dirs;
	char *output;
	bool asks_debuginfod, is_quiet;
};

#define AT(member) offsetof(struct symbolize_options, member)

static const struct option_row rows[] = {
	{ .name = "debug-dir",
	  .type = OPTION_TEXTS,
	  .at = AT(debug_dirs),
	  .arg = "DIR",
	  .help = "look here first: DIR/.build-id/ab/cdef.debug, the files' own paths below DIR, and their "
		  "names in DIR; may be repeated" },
	{ .name = "debuginfod",
	  .type = OPTION_FLAG,
	  .at = AT(asks_debuginfod),
	  .help = "ask the servers of $DEBUGINFOD_URLS for files that are not found here" },
	{ .name = "output",
	  .letter = 'o',
	  .type = OPTION_TEXT,
	  .at = AT(output),
	  .arg = "FILE",
	  .help = "write to FILE (replaced if it exists) instead of the profile that was read; - "
		  "is standard output" },
	{ .name = "quiet",
	  .letter = 'q',
	  .type = OPTION_FLAG,
	  .at = AT(is_quiet),
	  .help = "do not print a summary" },
	COMMAND_HELP_ROW,
	COMMAND_VERSION_ROW,
};

static const struct option_table table = { .rows = rows, .cnt = sizeof(rows) / sizeof(*rows) };

struct job {
	const struct symbolize_options *o;
	struct debuginfod *servers; /* NULL: no server is asked */
	size_t wanted_cnt, named_cnt, missing_cnt;
};

static int fetch(void *ctx, const char *build_id_hex, unsigned nth)
{
	struct job *j = ctx;
	int fd;

	if (nth >= DEBUGINFOD_KIND_CNT)
		return -ERANGE;
	fd = debuginfod_fetch(j->servers, build_id_hex, (enum debuginfod_kind)nth);
	if (fd < 0 && debuginfod_why(j->servers)[0])
		log_warn("symbolize: build id %s: %s", build_id_hex, debuginfod_why(j->servers));
	return fd;
}

static void on_file(void *ctx, const struct profile_symbol_file *file)
{
	struct job *j = ctx;
	char path[256];

	j->wanted_cnt += file->wanted_cnt;
	j->named_cnt += file->named_cnt;
	j->missing_cnt += !file->is_found;
	snprintf(path, sizeof(path), "%s", file->path);
	make_printable(path);
	if (!file->is_found)
		log_info("symbolize: not found: %s, build id %s", path,
			 file->build_id_hex[0] ? file->build_id_hex : "unknown");
	else
		log_info("symbolize: %zu of %zu places: %s", file->named_cnt, file->wanted_cnt,
			 path);
}

/* path "-": stdout_fd, which is taken over. */
static int write_profile(const struct profile *p, const char *path, int stdout_fd)
{
	struct out_file *file = NULL;
	struct err why = { 0 };
	int err;

	if (stdout_fd >= 0)
		err = out_file_open_stdout(stdout_fd, &file);
	else
		err = out_file_open(path, true, " with -o FILE", &file, &why);
	if (!err)
		err = pprof_write(p, out_file_fd(file));
	if (!err)
		err = out_file_commit(file);
	if (err && why.text[0])
		log_error("symbolize: %s", why.text);
	else if (err)
		log_error("symbolize: cannot write '%s': %s", path, strerror(-err));
	out_file_free(file);
	return err;
}

static int name_all(struct job *j, struct profile *p)
{
	const struct symbol_options symbols = { .lines = true, .demangle = true };
	const struct profile_symbol_places places = {
		.dirs = (const char *const *)j->o->debug_dirs.data,
		.dir_cnt = j->o->debug_dirs.cnt,
		.fetch = j->servers ? fetch : NULL,
		.on_file = on_file,
		.ctx = j,
	};
	int err;

	if (!sandbox_is_whole())
		log_warn("symbolize: " SANDBOX_NOT_WHOLE);
	err = profile_symbolize_elsewhere(p, &symbols, &places);

	if (err)
		log_error("symbolize: %s", strerror(-err));
	else if (!j->wanted_cnt)
		log_info("symbolize: nothing is missing");
	else
		log_info(
			"symbolize: %zu of %zu places have better names or lines now; %zu files not found",
			j->named_cnt, j->wanted_cnt, j->missing_cnt);
	return err;
}

static int open_servers(const struct symbolize_options *o, struct debuginfod **ret)
{
	int err = o->asks_debuginfod ? debuginfod_open(ret) : 0;

	if (err == -ENOENT)
		log_error("symbolize: --debuginfod needs DEBUGINFOD_URLS; for all distributions: "
			  "DEBUGINFOD_URLS=https://debuginfod.elfutils.org/");
	else if (err)
		log_error("symbolize: %s", strerror(-err));
	return err;
}

/* Check standard output before anything is done. */
static int take_stdout(const char *output, int *ret_fd)
{
	int err = out_file_is_stdout(output) ? out_file_take_stdout(ret_fd) : 0;

	if (err == -ENOTTY)
		log_error("symbolize: the profile is not text, and standard output is a terminal: "
			  "redirect it, or give a file with -o FILE");
	else if (err)
		log_error("symbolize: cannot write to standard output: %s", strerror(-err));
	return err;
}

static int symbolize_file(const struct symbolize_options *o, const char *path)
{
	const char *output = o->output ? o->output : path;
	struct job j = { .o = o };
	struct profile *p = NULL;
	int stdout_fd = -1, err;

	err = open_servers(o, &j.servers);
	if (!err)
		err = take_stdout(output, &stdout_fd);
	if (!err)
		err = profile_in_read("symbolize", path, NULL, &p);
	if (!err)
		err = name_all(&j, p);
	if (!err) {
		err = write_profile(p, output, stdout_fd);
		stdout_fd = -1;
	}
	if (stdout_fd >= 0)
		close(stdout_fd);
	profile_free(p);
	debuginfod_close(j.servers);
	return err;
}

static int run(int argc, char **argv, const struct option_args *args)
{
	struct symbolize_options o = { 0 };
	int status = 2;

	if (command_settings(&command_symbolize, args, &o))
		goto out;
	log_set_level(o.is_quiet ? LOG_WARN : LOG_INFO);
	if (args->first == (size_t)argc) {
		log_error("symbolize: give a FILE");
		goto out;
	}
	if (args->first + 1 < (size_t)argc) {
		log_error("symbolize: unexpected argument '%s': one FILE at a time",
			  argv[args->first + 1]);
		goto out;
	}
	status = symbolize_file(&o, argv[args->first]) ? 1 : 0;
out:
	option_release(&table, &o);
	return status;
}

const struct command command_symbolize = {
	.name = "symbolize",
	.summary = "add names and lines to a profile that was recorded elsewhere",
	.example = "heaptap symbolize --debug-dir DIR FILE",
	.options = &table,
	.usage = usage,
	.more = more,
	.run = run,
};
