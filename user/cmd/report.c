/* SPDX-License-Identifier: MIT */
/* cmd/report.c - `heaptap report` and `heaptap diff`: options and a file or two in, a report out. Wiring only. */
#include <errno.h>
#include <fcntl.h>
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
#include "config/read_option.h"
#include "profile/pprof.h"
#include "report/report.h"
#include "report/report_diff.h"
#include "profile/match_list.h"
#include "profile/profile.h"
#include "record/out_file.h"
#include "symbol/profile_symbols.h"

#define ROWS_DEFAULT 20
#define SCOPES_DEFAULT 40
#define FRAMES_DEFAULT 12

enum {
	OPT_FRAMES = 256,
	OPT_SCOPE,
	OPT_MATCH,
	OPT_FOLD_REPEATED,
	OPT_GROUP_THREADS,
	OPT_VALUE,
	OPT_OWN,
	OPT_NOTES,
	OPT_COLOR,
	OPT_NO_PAGER,
	OPT_BASE,
};

static const char usage[] =
	"usage: heaptap report [OPTIONS] FILE\n"
	"\n"
	"Read a pprof heap profile, heaptap's own or another tool's, or a heap dump of jemalloc or\n"
	"gperftools, and say who holds the memory.\n"
	"FILE may be - for the standard input.\n"
	"\n"
	"  -b, --by WHAT       stack, function, module, thread, scope (a tree), instance (tasks, and\n"
	"                      what exited ones left) or label:KEY; default: scope where there are\n"
	"                      scopes, else stack; stack in all formats but text\n"
	"  -m, --module LIST   prefixes of modules or functions, such as my_app,my_lib: each stack\n"
	"                      is charged to the first frame from the leaf that begins with one;\n"
	"                      implies --by module\n"
	"      --scope PATH    only this scope and what is below it, such as Top/A; with any --by\n"
	"      --match LIST    only scopes that match, such as 'Csd*,-Csd_Write': names, or paths if\n"
	"                      there is a '/'; * any characters, - not these, the last match wins;\n"
	"                      the rest is one row '(not matched)'\n"
	"      --fold-repeated scope A/B/A counts as A/B\n"
	"      --group-threads[=LIST]\n"
	"                      threads by pool, such as worker-* for worker-12; LIST: the pools, such\n"
	"                      as 'rocksdb:*,worker-*'; implies --by thread\n"
	"  -f, --format WHAT   text (default), html (pictures to look at, one file that needs nothing\n"
	"                      else), svg (a flame graph), json, collapsed (for flame graph\n"
	"                      programs), or heap (for jeprof and google-pprof)\n"
	"  -o, --output FILE   write to FILE instead of the standard output\n"
	"      --base BEFORE   what changed since the profile BEFORE: heaptap diff BEFORE FILE\n"
	"  -s, --sort WHAT     inuse (default), objects, alloc or name\n"
	"      --value WHAT    inuse (default) or alloc: rows of what was allocated, freed or not\n"
	"  -n, --top N         rows to show, the rest is summed up; 0 = all (default: what fits 24\n"
	"                      lines, at most 10 stacks; all rows of the formats for programs)\n"
	"      --own LIST      prefixes of modules or functions that are your own: stacks are charged\n"
	"                      to the first frame that begins with one (default: what is not of an\n"
	"                      allocator, a standard library or a runtime)\n"
	"  -v, --verbose       each stack with its frames\n"
	"      --frames[=N]    the same with N frames of a stack, all without N (-v: 12)\n"
	"      --notes         what the profile says about itself: how it was made, what was lost\n"
	"      --color WHEN    auto (default: on a terminal), always or never\n"
	"      --no-pager      never show the text in a pager ($PAGER, less)\n"
	"  -h, --help          show this\n"
	"  -V, --version       show the version\n"
	"\n"
	"examples:\n"
	"  heaptap report FILE\n"
	"  heaptap report --by thread FILE\n"
	"  heaptap report --module my_app,libmine FILE\n"
	"  heaptap report --by scope --match 'Csd*,-Csd_Write' FILE\n"
	"  heaptap report --by function --scope Top/Query FILE\n"
	"  heaptap report --format html -o heap.html FILE\n";

static const char diff_usage[] =
	"usage: heaptap diff [OPTIONS] BEFORE AFTER\n"
	"\n"
	"Say what changed from one pprof heap profile to another, with the 95 % interval of each change.\n"
	"Rows whose change may be chance are summed up. The profiles may be of different processes,\n"
	"builds and rates: rows are compared by their names. AFTER may be - for the standard input.\n"
	"\n"
	"  -b, --by WHAT       stack, function, module, thread, scope or label:KEY; default: scope\n"
	"                      where both have scopes, else stack: where it is charged and who calls that\n"
	"  -f, --format WHAT   text (default) or json\n"
	"  -o, --output FILE   write to FILE instead of the standard output\n"
	"  -n, --top N         rows to show, 0 = all (default: text 10, json all)\n"
	"      --value WHAT    inuse (default) or alloc: rows of what was allocated, freed or not\n"
	"  -m, --module, --scope, --match, --fold-repeated, --group-threads, --own, --color, --no-pager\n"
	"                      as of heaptap report\n"
	"  -h, --help          show this\n"
	"  -V, --version       show the version\n"
	"\n"
	"examples:\n"
	"  heaptap diff monday.pb.gz tuesday.pb.gz\n"
	"  heaptap diff --by function --format json BEFORE AFTER\n";

static const struct option long_options[] = {
	{ "by", required_argument, NULL, 'b' },
	{ "module", required_argument, NULL, 'm' },
	{ "format", required_argument, NULL, 'f' },
	{ "sort", required_argument, NULL, 's' },
	{ "top", required_argument, NULL, 'n' },
	{ "value", required_argument, NULL, OPT_VALUE },
	{ "own", required_argument, NULL, OPT_OWN },
	{ "verbose", no_argument, NULL, 'v' },
	{ "frames", optional_argument, NULL, OPT_FRAMES },
	{ "notes", no_argument, NULL, OPT_NOTES },
	{ "color", required_argument, NULL, OPT_COLOR },
	{ "output", required_argument, NULL, 'o' },
	{ "base", required_argument, NULL, OPT_BASE },
	{ "no-pager", no_argument, NULL, OPT_NO_PAGER },
	{ "scope", required_argument, NULL, OPT_SCOPE },
	{ "match", required_argument, NULL, OPT_MATCH },
	{ "fold-repeated", no_argument, NULL, OPT_FOLD_REPEATED },
	{ "group-threads", optional_argument, NULL, OPT_GROUP_THREADS },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

/* Into argv, which is cut at the commas. As VEC(). */
struct prefixes {
	const char **data;
	size_t cnt, cap;
};

struct cli {
	struct report_options report;
	struct prefixes modules, own;
	const char *path;
	const char *base_path; /* of a difference: what was before; NULL: it is none */
	const char *output_path; /* NULL: standard output */
	enum terminal_color color;
	bool is_diff; /* `heaptap diff`: two operands */
	bool has_by, has_top, has_frames, is_verbose, has_no_pager, wants_help, wants_version;
};

/* Index of text in the n names, or an error that lists them. */
static int parse_name(const char *option, const char *text, const char *const *names, size_t n,
		      int *ret)
{
	char all[128] = "";
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		if (!strcmp(text, names[i])) {
			*ret = i;
			return 0;
		}
		used += snprintf(all + used, sizeof(all) - used, "%s%s",
				 !i	   ? "" :
				 i + 1 < n ? ", " :
					     " or ",
				 names[i]);
	}
	log_error("report: bad value '%s' for %s: %s", text, option, all);
	return -EINVAL;
}

static int parse_cnt(const char *option, const char *text, size_t *ret)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno || end == text || *end || strchr(text, '-')) {
		log_error("report: bad value '%s' for %s: a number, 0 = all", text, option);
		return -EINVAL;
	}
	*ret = n;
	return 0;
}

static int parse_prefixes(const char *option, char *list, struct prefixes *ret)
{
	char *rest = list, *one;

	while ((one = strsep(&rest, ","))) {
		if (!*one) {
			log_error("report: %s has an empty prefix", option);
			return -EINVAL;
		}
		if (vec_push(ret, one))
			return -ENOMEM;
	}
	return 0;
}

static int parse_by(const char *arg, struct cli *c)
{
	static const char *const by[] = { "stack", "function", "module",   "thread",
					  "scope", "instance", "label:KEY" };
	int value = 0, err;

	c->has_by = true;
	if (!strncmp(arg, "label:", 6) && arg[6]) {
		c->report.by = REPORT_BY_LABEL;
		c->report.label_key = arg + 6;
		return 0;
	}
	err = parse_name("--by", arg, by, 7, &value);
	c->report.by = value;
	return err;
}

static int parse_match(const char *arg, struct cli *c)
{
	struct match_list *match;
	int err = match_list_new(arg, &match);

	if (err == -EINVAL)
		log_error("report: bad value '%s' for --match: there is an empty pattern", arg);
	if (err)
		return err;
	match_list_free(c->report.match);
	c->report.match = match;
	return 0;
}

static int parse_scope(const char *arg, struct cli *c)
{
	if (!*arg) {
		log_error("report: --scope needs the path of a scope, such as Top/A");
		return -EINVAL;
	}
	c->report.scope = arg;
	return 0;
}

static int parse_group_threads(const char *arg, struct cli *c)
{
	c->report.groups_threads = true;
	c->report.thread_globs = arg;
	if (arg && (!*arg || *arg == ',' || strstr(arg, ",,") || arg[strlen(arg) - 1] == ',')) {
		log_error("report: bad value '%s' for --group-threads: there is an empty pattern",
			  arg);
		return -EINVAL;
	}
	return 0;
}

static int parse_frames(const char *arg, struct cli *c)
{
	c->has_frames = true;
	c->report.shows_stacks = true;
	c->report.frame_cap = 0;
	return arg ? parse_cnt("--frames", arg, &c->report.frame_cap) : 0;
}

static int parse_value(const char *arg, struct cli *c)
{
	static const char *const values[] = { "inuse", "alloc" };
	int value = 0, err = parse_name("--value", arg, values, 2, &value);

	c->report.value = value ? REPORT_VALUE_ALLOC : REPORT_VALUE_INUSE;
	return err;
}

static int parse_color(const char *arg, struct cli *c)
{
	static const char *const when[] = { "auto", "always", "never" };
	int value = 0, err = parse_name("--color", arg, when, 3, &value);

	c->color = (enum terminal_color)value;
	return err;
}

/* How the text looks. */
static int parse_look(int opt, const char *arg, struct cli *c)
{
	switch (opt) {
	case 'v':
		c->is_verbose = true;
		return 0;
	case OPT_FRAMES:
		return parse_frames(arg, c);
	case OPT_NOTES:
		c->report.shows_notes = true;
		return 0;
	case OPT_COLOR:
		return parse_color(arg, c);
	case OPT_NO_PAGER:
		c->has_no_pager = true;
		return 0;
	}
	return -EINVAL;
}

static int parse_one(int opt, char *arg, struct cli *c)
{
	static const char *const format[] = { "text", "json", "collapsed", "heap", "html", "svg" };
	static const char *const sort[] = { "inuse", "objects", "alloc", "name" };
	int value = 0, err;

	switch (opt) {
	case 'b':
		return parse_by(arg, c);
	case 'f':
		err = parse_name("--format", arg, format, 6, &value);
		c->report.format = value;
		return err;
	case 's':
		err = parse_name("--sort", arg, sort, 4, &value);
		c->report.sort = value;
		return err;
	case 'm':
		return parse_prefixes("--module", arg, &c->modules);
	case OPT_OWN:
		return parse_prefixes("--own", arg, &c->own);
	case OPT_VALUE:
		return parse_value(arg, c);
	case 'n':
		c->has_top = true;
		return parse_cnt("--top", arg, &c->report.row_cap);
	case 'o':
		c->output_path = arg;
		return 0;
	case OPT_BASE:
		c->base_path = arg;
		return 0;
	case OPT_SCOPE:
		return parse_scope(arg, c);
	case OPT_MATCH:
		return parse_match(arg, c);
	case OPT_FOLD_REPEATED:
		c->report.folds_repeated = true;
		return 0;
	case OPT_GROUP_THREADS:
		return parse_group_threads(arg, c);
	case 'h':
		c->wants_help = true;
		return 0;
	case 'V':
		c->wants_version = true;
		return 0;
	}
	return parse_look(opt, arg, c);
}

static int check_options(struct cli *c)
{
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
	if (c->base_path && c->report.format != REPORT_TEXT && c->report.format != REPORT_JSON) {
		log_error("report: a difference has --format text or json");
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
	if ((c->report.format == REPORT_HTML || c->report.format == REPORT_SVG) &&
	    (c->report.by != REPORT_BY_STACK || c->has_top)) {
		log_error("report: a picture is of all stacks: without --by and --top");
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
	if (c->is_verbose && c->report.by != REPORT_BY_STACK) {
		log_error("report: --verbose shows stacks: only with --by stack");
		return -EINVAL;
	}
	return 0;
}

/* "--frames 3" and "--frames=3" are both understood; a file named 3 is a file. */
static bool is_frame_cnt(const char *text)
{
	return text[0] && !text[strspn(text, "0123456789")] && access(text, F_OK);
}

/* FILE, or BEFORE AFTER. */
static int parse_operands(int argc, char **argv, struct cli *c)
{
	int cnt = c->is_diff && !c->base_path ? 2 : 1;

	if (optind + cnt > argc) {
		log_error(cnt == 1 ? "report: which FILE?" :
				     "diff: which two profiles, BEFORE and AFTER?");
		return -EINVAL;
	}
	if (optind + cnt < argc) {
		log_error("report: unexpected argument '%s': %s", argv[optind + cnt],
			  cnt == 1 ? "one FILE at a time" : "BEFORE and AFTER, no more");
		return -EINVAL;
	}
	if (cnt == 2)
		c->base_path = argv[optind++];
	c->path = argv[optind];
	return 0;
}

static int parse_options(int argc, char **argv, struct cli *c)
{
	char why[READ_OPTION_WHY_BYTES] = "";
	int opt, err = 0;

	optind = 1;
	while (!err &&
	       (opt = read_option(argc, argv, ":b:m:f:s:n:o:vhV", long_options, why)) != -1) {
		char *arg = optarg;

		if (opt == OPT_FRAMES && !arg && optind < argc && is_frame_cnt(argv[optind]))
			arg = argv[optind++];
		err = parse_one(opt, arg, c);
	}
	if (why[0])
		log_error("report: %s", why);
	if (err || c->wants_help || c->wants_version)
		return err;
	err = parse_operands(argc, argv, c);
	return err ? err : check_options(c);
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
	o->module = c->modules.data;
	o->module_cnt = c->modules.cnt;
	o->own = c->own.data;
	o->own_cnt = c->own.cnt;
	o->columns =
		(size_t)terminal_columns(STDOUT_FILENO, REPORT_COLUMNS_MIN, REPORT_COLUMNS_MAX);
	o->has_color = is_text && terminal_has_color(c->color);
	o->path = strcmp(c->path, "-") ? c->path : NULL;
}

static int read_profile(const char *path, struct profile **ret)
{
	bool is_stdin = !strcmp(path, "-");
	int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC), err;
	struct format_error why;

	if (fd < 0) {
		err = -errno;
		log_error("report: cannot read '%s': %s", path, strerror(-err));
		return err;
	}
	err = pprof_read(fd, ret, &why);
	if (err == -EBADMSG)
		log_error("report: '%s' is not a readable profile: at %s %llu: %s", path,
			  why.line ? "line" : "byte",
			  (unsigned long long)(why.line ? why.line : why.offset), why.text);
	else if (err)
		log_error("report: cannot read '%s': %s", path, strerror(-err));
	if (!is_stdin)
		close(fd);
	return err;
}

/* Other allocators' dumps come without names. */
static int name_frames(struct profile *p)
{
	const struct symbol_options opts = { .lines = true, .demangle = true };
	size_t missing_cnt = 0;
	int err = profile_symbolize(p, &opts, &missing_cnt);

	if (missing_cnt)
		log_warn("report: %zu of the profile's files not here, or not the same: their "
			 "functions have no names",
			 missing_cnt);
	return err;
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
	int err = out_file_open(path, true, &file, why, sizeof(why));

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
	bool is_file = c->output_path && !out_file_is_stdout(c->output_path);
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
		err = write_to_file(c->output_path, text, bytes);
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

static int report_file(const struct cli *c)
{
	struct profile *p = NULL, *before = NULL;
	char why[512];
	int err = c->base_path ? read_profile(c->base_path, &before) : 0;

	if (!err)
		err = read_profile(c->path, &p);
	if (err)
		goto out;
	err = report_check(p, &c->report, why, sizeof(why));
	if (err == -ENOENT || err == -ENODATA) {
		log_error("report: '%s': %s", c->path, why);
		goto out;
	}
	if (!err && before)
		err = name_frames(before);
	if (!err)
		err = name_frames(p);
	if (!err)
		err = write_out(c, before, p);
	if (!err)
		warn_of_unused_patterns(c->report.match);
out:
	profile_free(before);
	profile_free(p);
	return err;
}

static int run(int argc, char **argv, bool is_diff)
{
	struct cli c = { .is_diff = is_diff };
	int err = parse_options(argc, argv, &c), status = 2;

	if (err) {
		fprintf(stderr, "Try 'heaptap %s --help'.\n", is_diff ? "diff" : "report");
		goto out;
	}
	status = 0;
	if (c.wants_help || c.wants_version) {
		fputs(!c.wants_help ? VERSION_LINE : is_diff ? diff_usage : usage, stdout);
		goto out;
	}
	set_defaults(&c);
	status = report_file(&c) ? 1 : 0;
out:
	match_list_free(c.report.match);
	vec_release(&c.modules);
	vec_release(&c.own);
	return status;
}

int cmd_report(int argc, char **argv)
{
	return run(argc, argv, false);
}

int cmd_diff(int argc, char **argv)
{
	return run(argc, argv, true);
}
