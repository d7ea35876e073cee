/* SPDX-License-Identifier: MIT */
/* options.h - what a report is asked for. */
#ifndef HT_REPORT_OPTIONS_H
#define HT_REPORT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct match_list;

enum report_by {
	REPORT_BY_STACK,
	REPORT_BY_FUNCTION,
	REPORT_BY_MODULE,
	REPORT_BY_THREAD,
	REPORT_BY_SCOPE, /* a tree: the rows of depth 0 add up, each with all that is below */
	REPORT_BY_INSTANCE, /* a task of a scope */
	REPORT_BY_AGE, /* for how long it has been in use */
	REPORT_BY_LIFETIME, /* of what was allocated: how long it lived */
	REPORT_BY_SIZE, /* likewise: how large it was */
	REPORT_BY_LABEL
};
enum report_format {
	REPORT_TEXT,
	REPORT_JSON,
	REPORT_COLLAPSED,
	REPORT_HEAP,
	REPORT_HTML, /* pictures to look at, in one file */
	REPORT_SVG, /* a still picture */
	/* Of heaptap convert alone. */
	REPORT_SPEEDSCOPE,
	REPORT_HEAP_V2 /* as jemalloc dumps it */
};
/* Of REPORT_HEAP: who names the addresses. */
enum report_heap_form {
	REPORT_HEAP_NAMED, /* the file itself; addresses are made up */
	REPORT_HEAP_ADDRESSES /* somebody else: they are the locations' own, mappings are as they stand */
};
enum report_sort {
	REPORT_SORT_INUSE,
	REPORT_SORT_OBJECTS,
	REPORT_SORT_ALLOC,
	REPORT_SORT_NAME,
	REPORT_SORT_GROWTH, /* what grows first, then what cannot be said, then what is steady */
	REPORT_SORT_TEMPORARY /* who allocates most blocks that live for less than BIN_TEMPORARY_NS */
};

/* Which of the profile's values the rows are of. */
enum report_value {
	REPORT_VALUE_DEFAULT, /* in-use; in text what was allocated where in-use is not known */
	REPORT_VALUE_INUSE,
	REPORT_VALUE_ALLOC
};

/* A terminal of 24 lines, without the one of the prompt. */
#define REPORT_SCREEN_LINES 23
/* What a page may be. */
#define REPORT_COLUMNS_MIN 40
#define REPORT_COLUMNS_MAX 200
/* Of stacks, unless somebody says otherwise. */
#define REPORT_ROWS 10

struct report_options {
	enum report_by by;
	bool by_is_default; /* nobody asked for it: text is by scope where there are scopes */
	enum report_format format;
	enum report_sort sort;
	enum report_value value;
	size_t row_cap; /* 0 = all; the rest becomes one row "(other)" */
	const char *const *module; /* prefixes for REPORT_BY_MODULE; none: the first own module */
	size_t module_cnt;
	const char *const *own; /* prefixes of files or functions that are the user's own */
	size_t own_cnt;
	size_t frame_cap; /* frames shown per stack, 0 = all */
	size_t columns; /* width of the text, 0 = 100 */
	size_t lines; /* of text; fewer rows are shown where it would have more; 0 = any number */
	bool shows_stacks; /* text by stack: each with its frames, else a line or two */
	bool shows_notes; /* text: what the profile says about itself */
	bool has_color; /* text for a terminal */
	const char *path; /* the file that the profile is in; NULL: none */
	bool is_new; /* the file has just been written */
	const char *label_key; /* of REPORT_BY_LABEL */
	const char *
		older_than; /* the profile has only what is in use for at least so long; NULL = all */
	const char *scope; /* only this path and what is below; NULL = all */
	struct match_list *match; /* what it does not want is one row "(not matched)"; NULL = all */
	bool folds_repeated; /* scope A/B/A counts as A/B, everywhere */
	bool groups_threads; /* REPORT_BY_THREAD: by pool */
	const char *thread_globs; /* the pools' names; NULL = by number */
	uint64_t warm_up_ns; /* growth counts from then on: of the recording's time */
	/* Of REPORT_HTML: what stands before viewer.js and viewer.css, which a server has, and who has the page has a
	 * policy that forbids scripts in it; NULL: they are in the page. */
	const char *html_base;
	enum report_heap_form heap_form;
	bool heap_is_growth; /* what was allocated stands for what is in use, too */
};

#endif
