/* SPDX-License-Identifier: MIT */
/* cmd/report.c - `heaptap report` and `heaptap diff`: options and a file or two in, a report out. Wiring only. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/terminal.h"
#include "base/vec.h"
#include "base/write_all.h"
#include "cmd/cmd.h"
#include "cmd/profile_in.h"
#include "http/http_get.h"
#include "profile/pprof.h"
#include "report/report.h"
#include "report/report_diff.h"
#include "profile/match_list.h"
#include "profile/older.h"
#include "profile/profile.h"
#include "record/out_file.h"

#define ROWS_DEFAULT 20
#define SCOPES_DEFAULT 40
#define FRAMES_DEFAULT 12

static const char usage[] =
	"usage: heaptap report [OPTIONS] FILE\n"
	"\n"
	"Read a pprof heap profile, heaptap's own or another tool's, or a heap dump of jemalloc or\n"
	"gperftools, and say who holds the memory.\n"
	"FILE may be - for the standard input, or the address of a profile that heaptap serves.\n"
	"\n";

static const char more[] = "\n"
			   "examples:\n"
			   "  heaptap report FILE\n"
			   "  heaptap report --by thread FILE\n"
			   "  heaptap report --sort growth FILE\n"
			   "  heaptap report --sort temporary FILE\n"
			   "  heaptap report --module my_app,libmine FILE\n"
			   "  heaptap report --by scope --match 'Csd*,-Csd_Write' FILE\n"
			   "  heaptap report --by function --scope Top/Query FILE\n"
			   "  heaptap report --format html -o heap.html FILE\n";

static const char diff_usage[] =
	"usage: heaptap diff [OPTIONS] BEFORE AFTER\n"
	"\n"
	"Say what changed from one pprof heap profile to another, with the 95 % interval of each change.\n"
	"Rows whose change may be chance are summed up. The profiles may be of different processes,\n"
	"builds and rates: rows are compared by their names. AFTER may be - for the standard input; both\n"
	"may be addresses of profiles that heaptap serves, moments or kept ones.\n"
	"\n";

static const char diff_more[] =
	"\n"
	"examples:\n"
	"  heaptap diff monday.pb.gz tuesday.pb.gz\n"
	"  heaptap diff --by function --format json BEFORE AFTER\n"
	"  heaptap diff --format html -o diff.html BEFORE AFTER\n"
	"  heaptap diff BEFORE 'http://127.0.0.1:7676/debug/pprof/heap?pid=PID'\n";

struct cli {
	struct report_options report;
	/* What becomes a part of it. */
	char *by, *scope, *match, *thread_globs, *output, *base, *token_file;
	struct texts modules, own;
	int value; /* of value_names */
	int diff_format; /* of diff_formats */
	uint64_t older_than_ns; /* 0: all */
	char older_than[AGE_NAME_BUF];
	const char *path;
	const char *base_path; /* of a difference: what was before; NULL: it is none */
	enum terminal_color color;
	bool has_by, has_top, has_frames, is_verbose, has_no_pager;
};

/* As enum report_by; the last has the KEY behind it. */
static const char *const by_names[] = { "stack", "function", "module", "thread",
					"scope", "instance", "age",    "lifetime",
					"size",	 "label:",   NULL };
/* As enum report_format, report_sort, terminal_color. */
static const char *const formats[] = { "text", "json", "collapsed", "heap", "html", "svg", NULL };
static const char *const diff_formats[] = { "text", "json", "html", "pprof", NULL };
#define DIFF_FORMAT_PPROF 3
static const char *const sorts[] = { "inuse",  "objects",   "alloc", "name",
				     "growth", "temporary", NULL };
static const char *const colors[] = { "auto", "always", "never", NULL };
static const char *const value_names[] = { "inuse", "alloc", NULL };

static int parse_by(const char *text, enum report_by *ret, const char **ret_key)
{
	if (!strncmp(text, "label:", 6) && text[6]) {
		*ret = REPORT_BY_LABEL;
		*ret_key = text + 6;
		return 0;
	}
	for (int i = 0; i < REPORT_BY_LABEL; i++) {
		if (!strcmp(text, by_names[i])) {
			*ret = (enum report_by)i;
			return 0;
		}
	}
	return -EINVAL;
}

static int check_by(const char *text, char *why, size_t why_bytes)
{
	enum report_by by;
	const char *key;

	snprintf(
		why, why_bytes,
		"stack, function, module, thread, scope, instance, age, lifetime, size or label:KEY");
	return parse_by(text, &by, &key);
}

static int check_match(const char *text, char *why, size_t why_bytes)
{
	struct match_list *match = NULL;
	int err = match_list_new(text, &match);

	snprintf(why, why_bytes, "there is an empty pattern");
	match_list_free(match);
	return err;
}

static int check_scope(const char *text, char *why, size_t why_bytes)
{
	snprintf(why, why_bytes, "the path of a scope, such as Top/A");
	return *text ? 0 : -EINVAL;
}

static int check_pools(const char *text, char *why, size_t why_bytes)
{
	snprintf(why, why_bytes, "there is an empty pattern");
	return !*text || *text == ',' || strstr(text, ",,") || text[strlen(text) - 1] == ',' ?
		       -EINVAL :
		       0;
}

#define AT(member) offsetof(struct cli, member)

/* Of both commands. */
#define COMMON_ROWS                                                                                                \
	{ .name = "module",                                                                                        \
	  .letter = 'm',                                                                                           \
	  .type = OPTION_TEXTS,                                                                                    \
	  .flags = OPTION_COMMAS,                                                                                  \
	  .at = AT(modules),                                                                                       \
	  .arg = "LIST",                                                                                           \
	  .help = "prefixes of modules or functions, such as my_app,my_lib: each stack is charged to "             \
		  "the first frame from the leaf that begins with one; implies --by module" },                     \
		{ .name = "scope",                                                                                 \
		  .type = OPTION_TEXT,                                                                             \
		  .at = AT(scope),                                                                                 \
		  .arg = "PATH",                                                                                   \
		  .check = check_scope,                                                                            \
		  .help = "only this scope and what is below it, such as Top/A; with any --by" },                  \
		{ .name = "match",                                                                                 \
		  .type = OPTION_TEXT,                                                                             \
		  .at = AT(match),                                                                                 \
		  .arg = "LIST",                                                                                   \
		  .check = check_match,                                                                            \
		  .help = "only scopes that match, such as 'Csd*,-Csd_Write': names, or paths if there is a "      \
			  "'/'; * any characters, - not these, the last match wins; the rest is one row "          \
			  "'(not matched)'" },                                                                     \
		{ .name = "fold-repeated",                                                                         \
		  .type = OPTION_FLAG,                                                                             \
		  .at = AT(report.folds_repeated),                                                                 \
		  .help = "scope A/B/A counts as A/B" },                                                           \
		{ .name = "group-threads",                                                                         \
		  .type = OPTION_TEXT,                                                                             \
		  .flags = OPTION_MAY_HAVE_VALUE,                                                                  \
		  .at = AT(thread_globs),                                                                          \
		  .arg = "LIST",                                                                                   \
		  .check = check_pools,                                                                            \
		  .help = "threads by pool, such as worker-* for worker-12; LIST: the pools, such as "             \
			  "'rocksdb:*,worker-*'; implies --by thread" },                                           \
		{ .name = "value",                                                                                 \
		  .type = OPTION_CHOICE,                                                                           \
		  .at = AT(value),                                                                                 \
		  .arg = "WHAT",                                                                                   \
		  .choices = value_names,                                                                          \
		  .help = "what rows are of: inuse (default), or alloc: what was allocated, freed or not" },       \
		{ .name = "own",                                                                                   \
		  .type = OPTION_TEXTS,                                                                            \
		  .flags = OPTION_COMMAS,                                                                          \
		  .at = AT(own),                                                                                   \
		  .arg = "LIST",                                                                                   \
		  .help = "prefixes of modules or functions that are your own: stacks are charged to the "         \
			  "first frame that begins with one (default: what is not of an allocator, a standard "    \
			  "library or a runtime)" },                                                               \
		{ .name = "color",                                                                                 \
		  .type = OPTION_CHOICE,                                                                           \
		  .at = AT(color),                                                                                 \
		  .arg = "WHEN",                                                                                   \
		  .choices = colors,                                                                               \
		  .help = "when to use colours: auto (default: on a terminal), always or never" },                 \
		{ .name = "token-file",                                                                            \
		  .type = OPTION_TEXT,                                                                             \
		  .at = AT(token_file),                                                                            \
		  .arg = "FILE",                                                                                   \
		  .help = "the token of the heaptap that serves, for profiles at http:// or https:// addresses" }, \
		{ .name = "no-pager",                                                                              \
		  .type = OPTION_FLAG,                                                                             \
		  .at = AT(has_no_pager),                                                                          \
		  .help = "never show the text in a pager ($PAGER, less)" },                                       \
	{                                                                                                          \
		.name = "output", .letter = 'o', .type = OPTION_TEXT, .at = AT(output),                            \
		.arg = "FILE", .help = "write to FILE instead of the standard output"                              \
	}

static const struct option_row rows[] = {
	{ .name = "by",
	  .letter = 'b',
	  .type = OPTION_TEXT,
	  .at = AT(by),
	  .arg = "WHAT",
	  .choices = by_names,
	  .check = check_by,
	  .help = "what a row is: stack, function, module, thread, scope (a tree), instance (tasks, "
		  "and what exited ones left), age (of what is in use), lifetime or size (of what was allocated) "
		  "or label:KEY; default: scope where there are scopes, "
		  "else stack; stack in all formats but text" },
	COMMON_ROWS,
	{ .name = "format",
	  .letter = 'f',
	  .type = OPTION_CHOICE,
	  .at = AT(report.format),
	  .arg = "WHAT",
	  .choices = formats,
	  .help = "what is written: text (default), html (pictures to look at, one file that needs nothing "
		  "else), svg (a flame graph), json, collapsed (for flame graph programs), or heap (for "
		  "jeprof and google-pprof)" },
	{ .name = "base",
	  .type = OPTION_TEXT,
	  .at = AT(base),
	  .arg = "BEFORE",
	  .help = "what changed since the profile BEFORE: heaptap diff BEFORE FILE" },
	{ .name = "sort",
	  .letter = 's',
	  .type = OPTION_CHOICE,
	  .at = AT(report.sort),
	  .arg = "WHAT",
	  .choices = sorts,
	  .help = "the order of rows: inuse (default), objects, alloc, name, growth: bytes per second, "
		  "and whether that is more than chance, or temporary: who allocates most blocks that "
		  "live for less than 1 ms" },
	{ .name = "older-than",
	  .type = OPTION_TIME,
	  .at = AT(older_than_ns),
	  .arg = "TIME",
	  .min = 1,
	  .wanted = "a time such as 30s, 10m or 2h",
	  .help = "only what is in use for at least TIME: one of the bounds of --by age" },
	{ .name = "top",
	  .letter = 'n',
	  .type = OPTION_COUNT,
	  .at = AT(report.row_cap),
	  .arg = "N",
	  .help = "rows to show, the rest is summed up; 0 = all (default: what fits 24 lines, at most "
		  "10 stacks; all rows of the formats for programs)" },
	{ .name = "verbose",
	  .letter = 'v',
	  .type = OPTION_FLAG,
	  .at = AT(is_verbose),
	  .help = "each stack with its frames" },
	{ .name = "frames",
	  .type = OPTION_COUNT,
	  .flags = OPTION_MAY_HAVE_VALUE,
	  .at = AT(report.frame_cap),
	  .arg = "N",
	  .help = "the same with N frames of a stack, all without N (-v: 12)" },
	{ .name = "notes",
	  .type = OPTION_FLAG,
	  .at = AT(report.shows_notes),
	  .help = "what the profile says about itself: how it was made, what was lost" },
	COMMAND_HELP_ROW,
	COMMAND_VERSION_ROW,
};

static const struct option_row diff_rows[] = {
	{ .name = "by",
	  .letter = 'b',
	  .type = OPTION_TEXT,
	  .at = AT(by),
	  .arg = "WHAT",
	  .choices = by_names,
	  .check = check_by,
	  .help = "what a row is: stack, function, module, thread, scope, age or label:KEY; default: scope where "
		  "both have scopes, else stack: where it is charged, and who calls that" },
	COMMON_ROWS,
	{ .name = "format",
	  .letter = 'f',
	  .type = OPTION_CHOICE,
	  .at = AT(diff_format),
	  .arg = "WHAT",
	  .choices = diff_formats,
	  .help = "what is written: text (default), json, html (a picture of both in two colours, one file) or "
		  "pprof (a profile of the changes, for go tool pprof)" },
	{ .name = "top",
	  .letter = 'n',
	  .type = OPTION_COUNT,
	  .at = AT(report.row_cap),
	  .arg = "N",
	  .help = "rows to show, 0 = all (default: text 10, json all)" },
	COMMAND_HELP_ROW,
	COMMAND_VERSION_ROW,
};

static const struct option_table table = { .rows = rows, .cnt = sizeof(rows) / sizeof(*rows) };
static const struct option_table diff_table = { .rows = diff_rows,
						.cnt = sizeof(diff_rows) / sizeof(*diff_rows) };

/* A profile is of all stacks, as the picture is. */
static const enum report_format diff_format_of[] = { REPORT_TEXT, REPORT_JSON, REPORT_HTML,
						     REPORT_HTML };

/* What the report takes in another form. */
static int settle(struct cli *c, const struct option_args *args)
{
	struct report_options *o = &c->report;

	c->has_by = c->by;
	c->has_top = option_args_find(args, "top");
	c->has_frames = option_args_find(args, "frames");
	o->shows_stacks = c->has_frames;
	o->groups_threads = option_args_find(args, "group-threads");
	o->thread_globs = c->thread_globs;
	o->scope = c->scope;
	c->base_path = c->base;
	if (c->diff_format)
		o->format = diff_format_of[c->diff_format];
	if (option_args_find(args, "value"))
		o->value = c->value ? REPORT_VALUE_ALLOC : REPORT_VALUE_INUSE;
	if (c->by)
		parse_by(c->by, &o->by, &o->label_key);
	return c->match ? match_list_new(c->match, &o->match) : 0;
}

/* Ages are told in classes: what lies inside of one cannot be told apart. */
static int check_older_than(struct cli *c)
{
	uint32_t age_class = age_class_of(c->older_than_ns);
	char below[AGE_NAME_BUF], above[AGE_NAME_BUF];

	if (!c->older_than_ns)
		return 0;
	c->report.older_than = age_bound_name(age_class, c->older_than);
	if (age_bound_ns(age_class) == c->older_than_ns)
		return 0;
	if (age_class + 1 < AGE_CLASS_CNT)
		log_error(
			"report: --older-than: ages are told in classes; the nearest bounds are %s "
			"and %s",
			age_bound_name(age_class, below), age_bound_name(age_class + 1, above));
	else
		log_error("report: --older-than: ages are told in classes; the last bound is %s",
			  age_bound_name(age_class, below));
	return -EINVAL;
}

static int check_options(struct cli *c)
{
	bool is_rows = c->report.format == REPORT_TEXT || c->report.format == REPORT_JSON;
	bool is_ranked =
		c->report.sort == REPORT_SORT_GROWTH || c->report.sort == REPORT_SORT_TEMPORARY;
	bool is_by_bin = c->report.by == REPORT_BY_LIFETIME || c->report.by == REPORT_BY_SIZE;

	if (c->modules.cnt && !c->has_by)
		c->report.by = REPORT_BY_MODULE;
	if (c->modules.cnt && c->report.by != REPORT_BY_MODULE) {
		log_error("report: --module needs --by module");
		return -EINVAL;
	}
	if (c->report.groups_threads && !c->has_by && !c->modules.cnt)
		c->report.by = REPORT_BY_THREAD;
	if (c->report.groups_threads && c->report.by != REPORT_BY_THREAD) {
		log_error("report: --group-threads needs --by thread");
		return -EINVAL;
	}
	if (c->base_path && c->report.format != REPORT_TEXT && c->report.format != REPORT_JSON &&
	    c->report.format != REPORT_HTML) {
		log_error(
			"report: a difference has --format text, json or html; pprof with heaptap diff");
		return -EINVAL;
	}
	if (c->base_path &&
	    (c->report.by == REPORT_BY_INSTANCE || c->report.shows_stacks || c->is_verbose)) {
		log_error(
			"report: a difference has rows of names: not with --by instance, --verbose or --frames");
		return -EINVAL;
	}
	if (c->base_path && !strcmp(c->base_path, "-")) {
		log_error("report: only the later profile may come from the standard input");
		return -EINVAL;
	}
	if (c->report.format == REPORT_HTML && !c->output && isatty(STDOUT_FILENO)) {
		log_error("report: %s is nothing for a terminal: --output FILE",
			  c->diff_format == DIFF_FORMAT_PPROF ? "a profile" : "a page");
		return -EINVAL;
	}
	if ((c->report.format == REPORT_HTML || c->report.format == REPORT_SVG) &&
	    (c->report.by != REPORT_BY_STACK || c->has_top)) {
		log_error("report: a %s is of all stacks: without --by and --top",
			  c->diff_format == DIFF_FORMAT_PPROF ? "profile" : "picture");
		return -EINVAL;
	}
	if (c->report.format == REPORT_HEAP && (c->report.by != REPORT_BY_STACK || c->has_top)) {
		log_error("report: --format heap prints all stacks: only with --by stack, without "
			  "--top");
		return -EINVAL;
	}
	if (c->report.format == REPORT_COLLAPSED && c->report.by == REPORT_BY_FUNCTION) {
		log_error("report: --format collapsed prints stacks: not with --by function");
		return -EINVAL;
	}
	if (c->report.format == REPORT_COLLAPSED && c->report.by != REPORT_BY_STACK && c->has_top) {
		log_error("report: --format collapsed takes --top only with --by stack");
		return -EINVAL;
	}
	if (c->report.by == REPORT_BY_AGE &&
	    ((c->report.format != REPORT_TEXT && c->report.format != REPORT_JSON) ||
	     c->report.value == REPORT_VALUE_ALLOC || c->report.sort == REPORT_SORT_GROWTH)) {
		log_error("report: --by age has --format text or json, of what is in use: not with "
			  "--value alloc or --sort growth");
		return -EINVAL;
	}
	if (is_by_bin && (!is_rows || c->report.value == REPORT_VALUE_INUSE || is_ranked ||
			  c->older_than_ns || c->base_path)) {
		log_error(
			"report: --by lifetime and --by size have --format text or json, of what was "
			"allocated: not with --value inuse, --sort growth or temporary, --older-than or "
			"of a difference");
		return -EINVAL;
	}
	if (c->report.sort == REPORT_SORT_TEMPORARY &&
	    (!is_rows || c->report.by == REPORT_BY_INSTANCE || c->report.by == REPORT_BY_AGE ||
	     c->report.shows_stacks || c->is_verbose || c->base_path || c->older_than_ns)) {
		log_error(
			"report: --sort temporary has --format text or json: not with --by instance, age, "
			"lifetime or size, --verbose, --frames, --older-than or --base");
		return -EINVAL;
	}
	if (c->older_than_ns && (c->base_path || c->report.value == REPORT_VALUE_ALLOC)) {
		log_error(
			"report: --older-than is of what is in use in one file: not with --base or "
			"--value alloc");
		return -EINVAL;
	}
	if (c->report.sort == REPORT_SORT_GROWTH &&
	    ((c->report.format != REPORT_TEXT && c->report.format != REPORT_JSON) ||
	     c->report.by == REPORT_BY_INSTANCE || c->report.value == REPORT_VALUE_ALLOC ||
	     c->report.shows_stacks || c->is_verbose || c->base_path || c->older_than_ns)) {
		log_error(
			"report: --sort growth has --format text or json, of what is in use: not with --by "
			"instance, --value alloc, --verbose, --frames, --older-than or --base");
		return -EINVAL;
	}
	if (c->is_verbose && c->report.by != REPORT_BY_STACK) {
		log_error("report: --verbose shows stacks: only with --by stack");
		return -EINVAL;
	}
	return 0;
}

/* FILE, or BEFORE AFTER. */
static int take_operands(char **argv, const struct option_args *args, bool is_diff, struct cli *c)
{
	char **operands = argv + args->first;

	if (!operands[0] || (is_diff && !operands[1])) {
		log_error(is_diff ? "diff: which two profiles, BEFORE and AFTER?" :
				    "report: which FILE?");
		return -EINVAL;
	}
	if (operands[is_diff ? 2 : 1]) {
		log_error("%s: unexpected argument '%s': %s", is_diff ? "diff" : "report",
			  operands[is_diff ? 2 : 1],
			  is_diff ? "BEFORE and AFTER, no more" : "one FILE at a time");
		return -EINVAL;
	}
	if (is_diff)
		c->base_path = *operands++;
	c->path = operands[0];
	return 0;
}

static void set_defaults(struct cli *c)
{
	struct report_options *o = &c->report;
	bool is_text = o->format == REPORT_TEXT;

	o->by_is_default = !c->has_by && o->by == REPORT_BY_STACK;
	o->shows_stacks |= c->is_verbose;
	if (!c->has_top && is_text)
		o->row_cap = o->by == REPORT_BY_STACK ? REPORT_ROWS :
			     o->by == REPORT_BY_SCOPE ? SCOPES_DEFAULT :
							ROWS_DEFAULT;
	if (!c->has_top && is_text && !o->shows_stacks)
		o->lines = REPORT_SCREEN_LINES;
	if (!c->has_frames && is_text)
		o->frame_cap = FRAMES_DEFAULT;
	o->module = (const char *const *)c->modules.data;
	o->module_cnt = c->modules.cnt;
	o->own = (const char *const *)c->own.data;
	o->own_cnt = c->own.cnt;
	o->columns =
		(size_t)terminal_columns(STDOUT_FILENO, REPORT_COLUMNS_MIN, REPORT_COLUMNS_MAX);
	o->has_color = is_text && terminal_has_color(c->color);
	o->path = strcmp(c->path, "-") && !http_get_is_url(c->path) ? c->path : NULL;
}

static void warn_of_unused_patterns(const struct match_list *match)
{
	const char *pattern;
	size_t pos = 0;

	while (match && (pattern = match_list_unused(match, &pos)))
		log_warn("report: the pattern '%s' of --match matches no scope", pattern);
}

/* The report, or the difference. */
static int write_report(const struct cli *c, const struct profile *before, const struct profile *p,
			FILE *out)
{
	char why[256] = "";
	int err;

	if (!before)
		return report_write(p, &c->report, out);
	err = report_diff(before, c->base_path, p, c->path, &c->report, out, why, sizeof(why));
	if (why[0])
		log_error("diff: %s", why);
	return err;
}

/* To standard output: what is longer than the terminal is shown in a pager. */
static int write_to_stdout(const struct cli *c, const char *text, size_t bytes)
{
	if (c->report.format == REPORT_TEXT)
		return terminal_page(text, !c->has_no_pager);
	return fwrite(text, 1, bytes, stdout) == bytes && !fflush(stdout) ? 0 :
	       errno							  ? -errno :
									    -EIO;
}

/* A file is there whole or not at all; one of that name is replaced. Says what is wrong. */
static int write_to_file(const char *path, const char *text, size_t bytes)
{
	struct out_file *file = NULL;
	char why[512];
	int err = out_file_open(path, true, " with -o FILE", &file, why, sizeof(why));

	if (err) {
		log_error("report: %s", why);
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

static int write_out(const struct cli *c, const struct profile *before, const struct profile *p)
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
	if (err && err != -EINVAL) /* that has been said */
		log_error("report: cannot write the report: %s", strerror(-err));
out:
	free(text);
	return err;
}

/* The changes as a profile: to a file, whole or not at all, or to standard output. */
static int write_changes(const struct cli *c, const struct profile *before, const struct profile *p)
{
	bool is_file = c->output && !out_file_is_stdout(c->output);
	struct out_file *file = NULL;
	struct profile *changes = NULL;
	char why[512] = "";
	int err = report_diff_profile(before, c->base_path, p, c->path, &c->report, &changes, why,
				      sizeof(why));

	if (!err && is_file)
		err = out_file_open(c->output, true, " with -o FILE", &file, why, sizeof(why));
	if (!err)
		err = pprof_write(changes, is_file ? out_file_fd(file) : STDOUT_FILENO);
	if (!err && is_file)
		err = out_file_commit(file);
	if (err)
		log_error("diff: %s", why[0] ? why : strerror(-err));
	out_file_free(file);
	profile_free(changes);
	return err;
}

static int keep_older(const struct cli *c, struct profile *p)
{
	int err = c->older_than_ns ? profile_keep_older(p, c->older_than_ns) : 0;

	if (err == -ENODATA)
		log_error(
			"report: '%s': how old its blocks are is unknown: only a file that heaptap "
			"record wrote says so",
			c->path);
	return err;
}

static int report_file(const struct cli *c)
{
	struct profile *p = NULL, *before = NULL;
	char why[512];
	int err =
		c->base_path ? profile_in_read("report", c->base_path, c->token_file, &before) : 0;

	if (!err)
		err = profile_in_read("report", c->path, c->token_file, &p);
	if (err)
		goto out;
	err = keep_older(c, p);
	if (err)
		goto out;
	err = report_check(p, &c->report, why, sizeof(why));
	if (err == -ENOENT || err == -ENODATA) {
		log_error("report: '%s': %s", c->path, why);
		goto out;
	}
	if (!err && before)
		err = profile_in_name("report", before);
	if (!err)
		err = profile_in_name("report", p);
	if (!err)
		err = c->diff_format == DIFF_FORMAT_PPROF ? write_changes(c, before, p) :
							    write_out(c, before, p);
	if (!err)
		warn_of_unused_patterns(c->report.match);
out:
	profile_free(before);
	profile_free(p);
	return err;
}

static int run_either(char **argv, const struct option_args *args, const struct command *command)
{
	bool is_diff = command == &command_diff;
	struct cli c = { 0 };
	int err = command_settings(command, args, &c), status = 2;

	if (!err)
		err = settle(&c, args);
	if (!err)
		err = take_operands(argv, args, is_diff, &c);
	if (!err)
		err = check_options(&c);
	if (!err)
		err = check_older_than(&c);
	if (!err) {
		set_defaults(&c);
		status = report_file(&c) ? 1 : 0;
	}
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
	.summary = "show a recorded profile again, another way",
	.example = "heaptap report --by thread FILE",
	.options = &table,
	.usage = usage,
	.more = more,
	.run = run_report,
};

const struct command command_diff = {
	.name = "diff",
	.summary = "show what changed from one profile to another",
	.example = "heaptap diff BEFORE AFTER",
	.options = &diff_table,
	.usage = diff_usage,
	.more = diff_more,
	.run = run_diff,
};
