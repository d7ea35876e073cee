/* SPDX-License-Identifier: MIT */
/* cmd/report_options.c - see report_priv.h. */
#include "cmd/report_priv.h"

#include "base/err.h"
#include "base/log.h"
#include "base/names.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "profile/match_list.h"

#define ROWS_DEFAULT 20
#define SCOPES_DEFAULT 40
#define FRAMES_DEFAULT 12

/* In the order of enum report_by; the last is followed by KEY. */
static const char *const by_names[] = { "stack",    "function", "module",   "thread",
					"process",  "scope",	"instance", "age",
					"lifetime", "size",	"label:",   NULL };
/* In the order of enum report_format, report_sort, terminal_color. */
static const char *const formats[] = { "text", "json", "collapsed", "heap", "html", NULL };
static const char *const diff_formats[] = { "text", "json", "html", "pprof", NULL };
enum { DIFF_FORMAT_TEXT, DIFF_FORMAT_JSON, DIFF_FORMAT_HTML, DIFF_FORMAT_PPROF };
static const char *const sorts[] = { "inuse",  "objects",   "alloc",  "name",
				     "growth", "temporary", "pinned", NULL };
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

static int check_by(const char *text, struct err *why)
{
	enum report_by by;
	const char *key;

	return err_set(
		why, parse_by(text, &by, &key),
		"stack, function, module, thread, process, scope, instance, age, lifetime, size or "
		"label:KEY");
}

static const char *const at_names[] = { "peak", "end", NULL };

static int parse_at(const char *text, enum report_at *ret, uint64_t *ret_ns)
{
	*ret = !strcmp(text, "peak") ? REPORT_AT_PEAK :
	       !strcmp(text, "end")  ? REPORT_AT_END :
				       REPORT_AT_TIME;
	return *ret == REPORT_AT_TIME ? parse_duration(text, ret_ns) : 0;
}

static int check_at(const char *text, struct err *why)
{
	enum report_at at;
	uint64_t ns;

	return err_set(why, parse_at(text, &at, &ns),
		       "peak, end, or a time since the beginning, such as 2.5s");
}

static int check_match(const char *text, struct err *why)
{
	struct match_list *match = NULL;
	int err = match_list_new(text, &match);

	match_list_free(match);
	return err_set(why, err, "there is an empty pattern");
}

static int check_scope(const char *text, struct err *why)
{
	return err_set(why, *text ? 0 : -EINVAL, "the path of a scope, such as Top/A");
}

static int check_pools(const char *text, struct err *why)
{
	if (*text && *text != ',' && !strstr(text, ",,") && text[strlen(text) - 1] != ',')
		return 0;
	return err_set(why, -EINVAL, "there is an empty pattern");
}

#define AT(member) offsetof(struct report_cli, member)

/* Rows of both commands. */
#define COMMON_ROWS                                                                                      \
	OPTION(TEXTS, 'm', "module", "LIST", AT(modules),                                                \
	       "prefixes of modules or functions, such as my_app,my_lib: from the leaf on, the first "   \
	       "frame that begins with one is charged with the stack; implies --by module",              \
	       .flags = OPTION_COMMAS),                                                                  \
		OPTION(TEXT, 0, "scope", "PATH", AT(scope),                                              \
		       "show only this scope and the scopes below it, such as Top/A; with any --by",     \
		       .check = check_scope),                                                            \
		OPTION(TEXT, 0, "match", "LIST", AT(match),                                              \
		       "show only matching scopes: comma-separated globs; - in front excludes, and the " \
		       "last match wins; a glob with / matches the path. The rest is one row "           \
		       "'(not matched)'",                                                                \
		       .check = check_match),                                                            \
		OPTION(FLAG, 0, "fold-repeated", NULL, AT(report.folds_repeated),                        \
		       "count scope A/B/A as A/B"),                                                      \
		OPTION(TEXT, 0, "group-threads", "LIST", AT(thread_globs),                               \
		       "group threads by pool, such as worker-* for worker-12; LIST: the pools, such "   \
		       "as 'rocksdb:*,worker-*'; implies --by thread",                                   \
		       .flags = OPTION_MAY_HAVE_VALUE, .check = check_pools),                            \
		OPTION(CHOICE, 0, "value", "WHAT", AT(value),                                            \
		       "values of the rows: inuse (default), or alloc: all allocations, freed or not",   \
		       .choices = value_names),                                                          \
		OPTION(TEXTS, 0, "own", "LIST", AT(own),                                                 \
		       "prefixes of your own modules or functions: stacks are charged to the first "     \
		       "frame that begins with one (default: the first frame outside of "                \
		       "allocators, standard libraries and runtimes)",                                   \
		       .flags = OPTION_COMMAS),                                                          \
		OPTION(CHOICE, 0, "color", "WHEN", AT(color),                                            \
		       "when to use colours: auto (default: on a terminal), always or never",            \
		       .choices = colors),                                                               \
		OPTION(TEXT, 0, "token-file", "FILE", AT(token_file),                                    \
		       "token of heaptap serve, for profiles at http:// or https:// addresses"),         \
		OPTION(FLAG, 0, "no-pager", NULL, AT(has_no_pager),                                      \
		       "never show the text in a pager ($PAGER, less)"),                                 \
		OPTION(TEXT, 'o', "output", "FILE", AT(output),                                          \
		       "write to FILE instead of standard output")

static const struct option_row rows[] = {
	OPTION(TEXT, 'b', "by", "WHAT", AT(by),
	       "group rows by stack, function, module, thread, process, scope (a tree), instance "
	       "(tasks, running and ended), age (of heap in use), lifetime or size (of blocks "
	       "allocated) or label:KEY. Default: scope if the profile has scopes, else stack; "
	       "in formats other than text: stack",
	       .choices = by_names, .check = check_by),
	COMMON_ROWS,
	OPTION(CHOICE, 'f', "format", "WHAT", AT(report.format),
	       "text (default), html (flame graph and table in one self-contained file), json, "
	       "collapsed (for flame graph programs), or heap (for jeprof and google-pprof)",
	       .choices = formats),
	OPTION(TEXT, 0, "base", "BEFORE", AT(base),
	       "show the changes since the profile BEFORE, as heaptap diff BEFORE FILE"),
	OPTION(CHOICE, 's', "sort", "WHAT", AT(report.sort),
	       "sort rows by inuse (default), objects (blocks in use), alloc, name, growth "
	       "(bytes per second, with a verdict), temporary (blocks that lived for less "
	       "than 1 ms) or pinned (free memory that their blocks keep from being returned)",
	       .choices = sorts),
	OPTION(TEXT, 0, "at", "peak|end|TIME", AT(at),
	       "show the heap in use at the peak, at the end, or at the recorded moment "
	       "nearest to TIME since the beginning. Default: end; in text and html, the peak "
	       "of a command that heaptap record started and that has ended",
	       .choices = at_names, .check = check_at),
	OPTION(TIME, 0, "older-than", "TIME", AT(older_than_ns),
	       "show only blocks that have been in use for at least TIME (a bound of --by "
	       "age)",
	       .min = 1, .wanted = "a time such as 30s, 10m or 2h"),
	OPTION(COUNT, 'n', "top", "N", AT(report.row_cap),
	       "rows to show; the rest is summed up; 0 = all (default: as many as fit 24 "
	       "lines, at most 10 stacks; all in formats other than text)"),
	OPTION(FLAG, 'v', "verbose", NULL, AT(is_verbose),
	       "show each stack with its frames, at most 12"),
	OPTION(COUNT, 0, "frames", "N", AT(report.frame_cap),
	       "the same with at most N frames; without N: all", .flags = OPTION_MAY_HAVE_VALUE),
	OPTION(FLAG, 0, "notes", NULL, AT(report.shows_notes),
	       "show how the profile was recorded, and all losses"),
	COMMAND_HELP_ROW,
	COMMAND_VERSION_ROW,
};

static const struct option_row diff_rows[] = {
	OPTION(TEXT, 'b', "by", "WHAT", AT(by),
	       "group rows by stack, function, module, thread, process, scope, age or label:KEY. "
	       "Default: scope if both profiles have scopes, else stack",
	       .choices = by_names, .check = check_by),
	COMMON_ROWS,
	OPTION(CHOICE, 'f', "format", "WHAT", AT(diff_format),
	       "text (default), json, html (flame graph of both, changes in two colours, one "
	       "file) or pprof (a profile of the changes, for go tool pprof)",
	       .choices = diff_formats),
	OPTION(COUNT, 'n', "top", "N", AT(report.row_cap),
	       "rows to show, 0 = all (default: text 10, json all)"),
	COMMAND_HELP_ROW,
	COMMAND_VERSION_ROW,
};

const struct option_table report_table = { .rows = rows, .cnt = sizeof(rows) / sizeof(*rows) };
const struct option_table diff_table = { .rows = diff_rows,
					 .cnt = sizeof(diff_rows) / sizeof(*diff_rows) };

/* A profile has all stacks, like the picture, so they share a format. */
static const enum report_format diff_format_of[] = { REPORT_TEXT, REPORT_JSON, REPORT_HTML,
						     REPORT_HTML };

/* The ending of --output chooses a format that is not given. */
static const struct ending report_endings[] = {
	{ ".html", REPORT_HTML },	 { ".htm", REPORT_HTML },
	{ ".json", REPORT_JSON },	 { ".collapsed", REPORT_COLLAPSED },
	{ ".folded", REPORT_COLLAPSED }, { ".heap", REPORT_HEAP },
};
static const struct ending diff_endings[] = {
	{ ".html", DIFF_FORMAT_HTML },	 { ".htm", DIFF_FORMAT_HTML },
	{ ".json", DIFF_FORMAT_JSON },	 { ".pb.gz", DIFF_FORMAT_PPROF },
	{ ".pprof", DIFF_FORMAT_PPROF },
};

static int choose_format(struct report_cli *c, bool is_diff)
{
	const size_t report_cnt = sizeof(report_endings) / sizeof(*report_endings);
	const size_t diff_cnt = sizeof(diff_endings) / sizeof(*diff_endings);

	if (has_unwritten_ending(c->output)) {
		log_error("%s: heaptap does not write the format of '%s': use the ending %s, or "
			  "--format",
			  is_diff ? "diff" : "report", c->output,
			  is_diff ? ".html, .json, .pb.gz or .pprof" :
				    ".html, .json, .collapsed, .folded or .heap");
		return -EINVAL;
	}
	if (is_diff) {
		c->diff_format = ending_meaning(c->output, diff_endings, diff_cnt, 0);
		return 0;
	}
	if (has_ending(c->output, ".pb.gz") || has_ending(c->output, ".pprof")) {
		log_error("report: '%s' has the ending of a profile: use heaptap convert, or "
			  "--format",
			  c->output);
		return -EINVAL;
	}
	c->report.format = (enum report_format)ending_meaning(c->output, report_endings, report_cnt,
							      REPORT_TEXT);
	return 0;
}

/* Set what the report takes in another form. */
static int settle(struct report_cli *c, const struct option_args *args)
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
	c->is_pprof = c->diff_format == DIFF_FORMAT_PPROF;
	if (option_args_find(args, "value"))
		o->value = c->value ? REPORT_VALUE_ALLOC : REPORT_VALUE_INUSE;
	if (c->by)
		parse_by(c->by, &o->by, &o->label_key);
	if (c->at)
		parse_at(c->at, &o->at, &o->at_ns);
	return c->match ? match_list_new(c->match, &o->match) : 0;
}

/* Ages are known in classes: ages within one cannot be told apart. */
static int check_older_than(struct report_cli *c)
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
			"report: --older-than: ages are kept in classes; the nearest bounds are %s "
			"and %s",
			age_bound_name(age_class, below), age_bound_name(age_class + 1, above));
	else
		log_error("report: --older-than: ages are kept in classes; the last bound is %s",
			  age_bound_name(age_class, below));
	return -EINVAL;
}

/* Return why the options about rows do not go together; NULL: they do. */
static const char *refuse_rows(const struct report_cli *c)
{
	const struct report_options *o = &c->report;
	bool is_rows = o->format == REPORT_TEXT || o->format == REPORT_JSON;
	bool is_ranked = o->sort >= REPORT_SORT_GROWTH;
	bool is_of_inuse = is_ranked && o->sort != REPORT_SORT_TEMPORARY;
	bool has_stacks = o->shows_stacks || c->is_verbose;

	if (o->by == REPORT_BY_AGE && (!is_rows || o->value == REPORT_VALUE_ALLOC || is_of_inuse))
		return "--by age shows heap in use as text or json: not with --value alloc, "
		       "--sort growth or pinned";
	if ((o->by == REPORT_BY_LIFETIME || o->by == REPORT_BY_SIZE) &&
	    (!is_rows || o->value == REPORT_VALUE_INUSE || is_ranked || c->older_than_ns ||
	     c->base_path))
		return "--by lifetime and --by size show allocations as text or json: not with "
		       "--value inuse, --sort growth, temporary or pinned, --older-than or --base";
	if (o->sort == REPORT_SORT_TEMPORARY &&
	    (!is_rows || o->by == REPORT_BY_INSTANCE || o->by == REPORT_BY_AGE || has_stacks ||
	     c->base_path || c->older_than_ns))
		return "--sort temporary needs --format text or json: not with --by instance, age, "
		       "lifetime or size, --verbose, --frames, --older-than or --base";
	if (o->at > REPORT_AT_END &&
	    (o->by == REPORT_BY_INSTANCE || o->by == REPORT_BY_AGE || o->by == REPORT_BY_LIFETIME ||
	     o->by == REPORT_BY_SIZE || o->value == REPORT_VALUE_ALLOC || is_ranked ||
	     c->older_than_ns || c->base_path))
		return "--at shows heap in use of one profile: not with --by instance, age, "
		       "lifetime or size, --value alloc, --sort growth, temporary or pinned, "
		       "--older-than or --base";
	if (o->at == REPORT_AT_TIME && (o->sort == REPORT_SORT_OBJECTS || o->format == REPORT_HEAP))
		return "--at TIME has bytes, but no numbers of blocks: not with --sort objects "
		       "or --format heap";
	if (c->older_than_ns && (c->base_path || o->value == REPORT_VALUE_ALLOC))
		return "--older-than shows heap in use of one profile: not with --base or --value "
		       "alloc";
	if (is_of_inuse &&
	    (!is_rows || o->by == REPORT_BY_INSTANCE || o->value == REPORT_VALUE_ALLOC ||
	     has_stacks || c->base_path || c->older_than_ns))
		return "--sort growth and pinned need --format text or json: not with --by "
		       "instance, --value alloc, --verbose, --frames, --older-than or --base";
	if (c->is_verbose && o->by != REPORT_BY_STACK)
		return "--verbose shows stacks: only with --by stack";
	return NULL;
}

/* The same for the format. */
static const char *refuse_format(const struct report_cli *c)
{
	const struct report_options *o = &c->report;
	bool is_all = o->by == REPORT_BY_STACK && !c->has_top;

	if (o->format == REPORT_HTML && !c->output && isatty(STDOUT_FILENO))
		return c->is_pprof ? "pprof is not text, and standard output is a terminal: give "
				     "--output FILE" :
				     "html is for a browser, and standard output is a terminal: "
				     "give --output FILE";
	if (o->format == REPORT_HTML && !is_all)
		return c->is_pprof ? "--format pprof has all stacks: not with --by or --top" :
				     "--format html has all stacks: not with --by or --top";
	if (o->format == REPORT_HEAP && !is_all)
		return "--format heap prints all stacks: only with --by stack, without --top";
	if (o->format == REPORT_COLLAPSED && o->by == REPORT_BY_FUNCTION)
		return "--format collapsed prints stacks: not with --by function";
	if (o->format == REPORT_COLLAPSED && o->by != REPORT_BY_STACK && c->has_top)
		return "--format collapsed takes --top only with --by stack";
	return NULL;
}

/* The same for a difference. */
static const char *refuse_diff(const struct report_cli *c)
{
	const struct report_options *o = &c->report;

	if (!c->base_path)
		return NULL;
	if (o->format != REPORT_TEXT && o->format != REPORT_JSON && o->format != REPORT_HTML)
		return "--base needs --format text, json or html; heaptap diff also writes pprof";
	if (o->by == REPORT_BY_INSTANCE || o->shows_stacks || c->is_verbose)
		return "a difference compares rows by name: not with --by instance, --verbose or "
		       "--frames";
	if (!strcmp(c->base_path, "-"))
		return "only AFTER can be standard input";
	return NULL;
}

/* Derive --by from other options. */
static const char *settle_by(struct report_cli *c)
{
	struct report_options *o = &c->report;

	if (c->modules.cnt && !c->has_by)
		o->by = REPORT_BY_MODULE;
	if (c->modules.cnt && o->by != REPORT_BY_MODULE)
		return "--module needs --by module";
	if (o->groups_threads && !c->has_by && !c->modules.cnt)
		o->by = REPORT_BY_THREAD;
	if (o->groups_threads && o->by != REPORT_BY_THREAD)
		return "--group-threads needs --by thread";
	return NULL;
}

static int check_together(struct report_cli *c)
{
	const char *why = settle_by(c);

	if (!why)
		why = refuse_diff(c);
	if (!why)
		why = refuse_format(c);
	if (!why)
		why = refuse_rows(c);
	if (!why)
		return 0;
	log_error("report: %s", why);
	return -EINVAL;
}

/* Take the operands: FILE, or BEFORE AFTER. */
static int take_operands(char **argv, const struct option_args *args, bool is_diff,
			 struct report_cli *c)
{
	char **operands = argv + args->first;

	if (!operands[0] || (is_diff && !operands[1])) {
		log_error(is_diff ? "diff: give two profiles, BEFORE and AFTER" :
				    "report: give a FILE");
		return -EINVAL;
	}
	if (operands[is_diff ? 2 : 1]) {
		log_error("%s: unexpected argument '%s': %s", is_diff ? "diff" : "report",
			  operands[is_diff ? 2 : 1],
			  is_diff ? "give only BEFORE and AFTER" : "one FILE at a time");
		return -EINVAL;
	}
	if (is_diff)
		c->base_path = *operands++;
	c->path = operands[0];
	return 0;
}

static void set_defaults(struct report_cli *c)
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
	o->has_color = is_text && terminal_has_color(STDOUT_FILENO, c->color);
	o->path = strcmp(c->path, "-") && !http_get_is_url(c->path) ? c->path : NULL;
}

int report_options_settle(struct report_cli *c, char **argv, const struct option_args *args,
			  bool is_diff)
{
	int err = 0;

	if (c->output && !option_args_find(args, "format"))
		err = choose_format(c, is_diff);
	if (!err)
		err = settle(c, args);
	if (!err)
		err = take_operands(argv, args, is_diff, c);
	if (!err)
		err = check_together(c);
	if (!err)
		err = check_older_than(c);
	if (!err)
		set_defaults(c);
	return err;
}
