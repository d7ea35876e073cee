/* SPDX-License-Identifier: MIT */
/* cmd_report.c - `heaptap report`: options and a file in, a report out. Wiring only. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/log.h"
#include "base/vec.h"
#include "cmd.h"
#include "config/read_option.h"
#include "format/pprof.h"
#include "format/report.h"
#include "model/match_list.h"
#include "model/profile.h"
#include "symbol/profile_symbols.h"

#define STACKS_DEFAULT 10
#define ROWS_DEFAULT 20
#define SCOPES_DEFAULT 40
#define FRAMES_DEFAULT 12
#define COLUMNS_MIN 80
#define COLUMNS_MAX 200

enum { OPT_FRAMES = 256, OPT_SCOPE, OPT_MATCH, OPT_FOLD_REPEATED, OPT_GROUP_THREADS };

static const char usage[] =
	"usage: heaptap report [OPTIONS] FILE\n"
	"\n"
	"Read a pprof heap profile, heaptap's own or another tool's, or a heap dump of jemalloc or\n"
	"gperftools, and say who holds the memory.\n"
	"FILE may be - for the standard input.\n"
	"\n"
	"  -b, --by WHAT       stack (default), function, module, thread, scope (a tree), instance\n"
	"                      (tasks, and what exited ones left) or label:KEY\n"
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
	"  -f, --format WHAT   text (default), json, collapsed (for flame graphs), or heap (for\n"
	"                      jeprof and google-pprof)\n"
	"  -s, --sort WHAT     inuse (default), objects, alloc or name\n"
	"  -n, --top N         rows to show, the rest as one row '(other)'; 0 = all (default: 10\n"
	"                      stacks, 40 scopes or 20 rows of text, all of the other formats)\n"
	"      --frames N      frames to show of a stack, 0 = all (default: 12 in text)\n"
	"  -h, --help          show this\n"
	"  -V, --version       show the version\n"
	"\n"
	"examples:\n"
	"  heaptap report heaptap-1234.pb.gz\n"
	"  heaptap report --module my_app,libmine heaptap-1234.pb.gz\n"
	"  heaptap report --by scope --match 'Csd*,-Csd_Write' heaptap-1234.pb.gz\n"
	"  heaptap report --by function --scope Top/Query heaptap-1234.pb.gz\n"
	"  heaptap report --format collapsed heaptap-1234.pb.gz | flamegraph.pl > heap.svg\n";

static const struct option long_options[] = {
	{ "by", required_argument, NULL, 'b' },
	{ "module", required_argument, NULL, 'm' },
	{ "format", required_argument, NULL, 'f' },
	{ "sort", required_argument, NULL, 's' },
	{ "top", required_argument, NULL, 'n' },
	{ "frames", required_argument, NULL, OPT_FRAMES },
	{ "scope", required_argument, NULL, OPT_SCOPE },
	{ "match", required_argument, NULL, OPT_MATCH },
	{ "fold-repeated", no_argument, NULL, OPT_FOLD_REPEATED },
	{ "group-threads", optional_argument, NULL, OPT_GROUP_THREADS },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

struct cli {
	struct report_options report;
	VEC(const char *) modules; /* into argv, which is cut at the commas */
	const char *path;
	bool has_by, has_top, has_frames, wants_help, wants_version;
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

static int parse_modules(struct cli *c, char *list)
{
	char *rest = list, *one;

	while ((one = strsep(&rest, ","))) {
		if (!*one) {
			log_error("report: --module has an empty prefix");
			return -EINVAL;
		}
		if (vec_push(&c->modules, one))
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

static int parse_one(int opt, char *arg, struct cli *c)
{
	static const char *const format[] = { "text", "json", "collapsed", "heap" };
	static const char *const sort[] = { "inuse", "objects", "alloc", "name" };
	int value = 0, err;

	switch (opt) {
	case 'b':
		return parse_by(arg, c);
	case 'f':
		err = parse_name("--format", arg, format, 4, &value);
		c->report.format = value;
		return err;
	case 's':
		err = parse_name("--sort", arg, sort, 4, &value);
		c->report.sort = value;
		return err;
	case 'm':
		return parse_modules(c, arg);
	case 'n':
		c->has_top = true;
		return parse_cnt("--top", arg, &c->report.row_cap);
	case OPT_FRAMES:
		c->has_frames = true;
		return parse_cnt("--frames", arg, &c->report.frame_cap);
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
	return -EINVAL;
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
	return 0;
}

static int parse_options(int argc, char **argv, struct cli *c)
{
	char why[READ_OPTION_WHY_BYTES] = "";
	int opt, err = 0;

	optind = 1;
	while (!err && (opt = read_option(argc, argv, ":b:m:f:s:n:hV", long_options, why)) != -1)
		err = parse_one(opt, optarg, c);
	if (why[0])
		log_error("report: %s", why);
	if (err || c->wants_help || c->wants_version)
		return err;
	if (optind >= argc) {
		log_error("report: which FILE?");
		return -EINVAL;
	}
	if (optind + 1 < argc) {
		log_error("report: unexpected argument '%s': one FILE at a time", argv[optind + 1]);
		return -EINVAL;
	}
	c->path = argv[optind];
	return check_options(c);
}

/* A wide terminal is used; a file or a pipe has the default width. */
static size_t terminal_columns(void)
{
	struct winsize size;

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
		return 0;
	return size.ws_col < COLUMNS_MIN ? COLUMNS_MIN :
	       size.ws_col > COLUMNS_MAX ? COLUMNS_MAX :
					   size.ws_col;
}

static void set_defaults(struct cli *c)
{
	bool is_text = c->report.format == REPORT_TEXT;

	if (!c->has_top && is_text)
		c->report.row_cap = c->report.by == REPORT_BY_STACK ? STACKS_DEFAULT :
				    c->report.by == REPORT_BY_SCOPE ? SCOPES_DEFAULT :
								      ROWS_DEFAULT;
	if (!c->has_frames && is_text)
		c->report.frame_cap = FRAMES_DEFAULT;
	c->report.module = c->modules.data;
	c->report.module_cnt = c->modules.cnt;
	c->report.columns = terminal_columns();
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

static int report_file(const struct cli *c)
{
	struct profile *p = NULL;
	char why[512];
	int err = read_profile(c->path, &p);

	if (err)
		return err;
	err = report_check(p, &c->report, why, sizeof(why));
	if (err == -ENOENT) {
		log_error("report: '%s': %s", c->path, why);
		goto out;
	}
	if (!err)
		err = name_frames(p);
	if (!err)
		err = report_write(p, &c->report, stdout);
	if (err)
		log_error("report: cannot write the report: %s", strerror(-err));
	else
		warn_of_unused_patterns(c->report.match);
out:
	profile_free(p);
	return err;
}

int cmd_report(int argc, char **argv)
{
	struct cli c = { 0 };
	int err = parse_options(argc, argv, &c), status = 2;

	if (err) {
		fputs("Try 'heaptap report --help'.\n", stderr);
		goto out;
	}
	status = 0;
	if (c.wants_help || c.wants_version) {
		fputs(c.wants_help ? usage : VERSION_LINE, stdout);
		goto out;
	}
	set_defaults(&c);
	status = report_file(&c) ? 1 : 0;
out:
	match_list_free(c.report.match);
	vec_release(&c.modules);
	return status;
}
