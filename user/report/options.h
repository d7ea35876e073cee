/* SPDX-License-Identifier: MIT */
/* options.h - the options of a report. */
#ifndef HT_REPORT_OPTIONS_H
#define HT_REPORT_OPTIONS_H

#include "base/std.h"

struct match_list;

enum report_by {
	REPORT_BY_STACK,
	REPORT_BY_FUNCTION,
	REPORT_BY_MODULE,
	REPORT_BY_THREAD,
	REPORT_BY_PROCESS,
	REPORT_BY_SCOPE, /* a tree: rows of depth 0 add up, each including everything below it */
	REPORT_BY_INSTANCE, /* a task of a scope */
	REPORT_BY_AGE, /* time since the allocation, of blocks in use */
	REPORT_BY_LIFETIME, /* of what was allocated: time until the free */
	REPORT_BY_SIZE, /* of what was allocated: block size */
	REPORT_BY_LABEL
};
enum report_format {
	REPORT_TEXT,
	REPORT_JSON,
	REPORT_COLLAPSED,
	REPORT_HEAP,
	REPORT_HTML, /* interactive pictures, in one file */
	REPORT_HEAP_V2 /* jemalloc's dump format; only for heaptap convert */
};
/* For REPORT_HEAP: who names the addresses. */
enum report_heap_form {
	REPORT_HEAP_NAMED, /* the file; addresses are made up */
	REPORT_HEAP_ADDRESSES /* somebody else: the locations' own addresses, unchanged mappings */
};
enum report_sort {
	REPORT_SORT_INUSE,
	REPORT_SORT_OBJECTS,
	REPORT_SORT_ALLOC,
	REPORT_SORT_NAME,
	/* From here on text is a table of its own. */
	REPORT_SORT_GROWTH, /* growing rows first, then unknown ones, then steady ones */
	REPORT_SORT_TEMPORARY, /* by the number of blocks that live less than BIN_TEMPORARY_NS */
	REPORT_SORT_PINNED /* by the free memory that blocks in use keep from being returned */
};

/* The moment that in-use values are of: see report.c. */
enum report_at {
	REPORT_AT_DEFAULT, /* for people, and of a command that has ended: the peak; else the end */
	REPORT_AT_END,
	REPORT_AT_PEAK,
	REPORT_AT_TIME /* the kept moment nearest to at_ns */
};

/* The profile's values that rows show. */
enum report_value {
	REPORT_VALUE_DEFAULT, /* in-use; in text, allocated where in-use is not known */
	REPORT_VALUE_INUSE,
	REPORT_VALUE_ALLOC
};

/* A terminal of 24 lines, minus one for the prompt. */
#define REPORT_SCREEN_LINES 23
/* Bounds of a page's width. */
#define REPORT_COLUMNS_MIN 40
#define REPORT_COLUMNS_MAX 200
/* Default number of stacks. */
#define REPORT_ROWS 10

struct report_options {
	enum report_by by;
	bool by_is_default; /* `by` was not asked for: text is by scope if there are scopes */
	enum report_format format;
	enum report_sort sort;
	enum report_value value;
	enum report_at at; /* for report_move() */
	uint64_t at_ns; /* since the begin of the recording */
	size_t row_cap; /* 0 = all; further rows become one row "(other)" */
	/* Prefixes for REPORT_BY_MODULE; none: use the first own module */
	const char *const *module;
	size_t module_cnt;
	const char *const *own; /* prefixes of the user's own files or functions */
	size_t own_cnt;
	size_t frame_cap; /* frames shown per stack, 0 = all */
	size_t columns; /* width of the text, 0 = 100 */
	size_t lines; /* maximum lines of text; fewer rows are shown to keep it; 0 = any number */
	bool shows_stacks; /* text by stack: all frames of each, else one or two lines */
	bool shows_notes; /* text: with the profile's comments */
	bool has_color; /* colors, for a terminal */
	const char *path; /* the profile's file; NULL: none */
	bool is_new; /* that file has just been written */
	const char *label_key; /* for REPORT_BY_LABEL */
	const char *older_than; /* the profile has only blocks in use at least so long; NULL = all */
	const char *scope; /* only this path and below; NULL = all */
	/* What does not match becomes one row "(not matched)"; NULL = all */
	struct match_list *match;
	bool folds_repeated; /* scope A/B/A counts as A/B, everywhere */
	bool groups_threads; /* REPORT_BY_THREAD: one row per pool */
	const char *thread_globs; /* globs of the pools' names; NULL = by number */
	uint64_t warm_up_ns; /* growth counts from this time of the recording on */
	/* REPORT_HTML: prefix of the URLs of viewer.js and viewer.css on a server whose pages have
	 * a policy that forbids scripts in them; NULL: both are in the page. */
	const char *html_base;
	enum report_heap_form heap_form;
	bool heap_is_growth; /* use the allocated values for in-use, too */
};

#endif
