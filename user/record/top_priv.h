/* SPDX-License-Identifier: MIT */
/* top_priv.h - the parts of top.c, file by file. All but the messages are pure. */
#ifndef HT_RECORD_TOP_PRIV_H
#define HT_RECORD_TOP_PRIV_H

#include "base/std.h"
#include "base/hmap.h"
#include "base/vec.h"
#include "record/top.h"
#include "report/options.h"
#include "report/report_places.h"

struct profile;
struct strset;

/* top_table.c: the data of heaptap top at one moment: the process as one row, or its stacks, functions, scopes or threads. */

/* NAN: not known, or a table without such a column. */
struct top_row {
	const char *key; /* tells rows apart, and finds a row in the next table */
	const char *name;
	const char *tail; /* callers, or the executable */
	const char *error; /* of held_bytes: "+-8%" */
	size_t parent; /* index, less than that of the row; SIZE_MAX: none */
	uint32_t depth;
	pid_t pid; /* of a process */
	bool is_weak; /* too few samples */
	double held_bytes, held_variance, blocks, alloc_bytes;
	double cost_share, resident_bytes;
	/* Filled by top_rates.c from here on. */
	double growth_per_min, alloc_per_s;
	bool growth_is_weak; /* it may be chance */
};

/* Id that also differs from those of rows in other views. */
uint64_t top_row_id(enum top_what what, const char *key);

#define TOP_ROW_NONE                              \
	((struct top_row){ .key = "",             \
			   .name = "",            \
			   .tail = "",            \
			   .error = "",           \
			   .parent = SIZE_MAX,    \
			   .held_bytes = NAN,     \
			   .held_variance = NAN,  \
			   .blocks = NAN,         \
			   .alloc_bytes = NAN,    \
			   .cost_share = NAN,     \
			   .resident_bytes = NAN, \
			   .growth_per_min = NAN, \
			   .alloc_per_s = NAN })

#define TOP_TEXT_BUF 512
#define TOP_SPARK_BUF 64 /* a mark of three bytes for each point that top_rates.c has */
struct top_table {
	enum top_what what;
	VEC(struct top_row) rows;
	struct top_row total;
	char title[TOP_TEXT_BUF]; /* "server (PID 12)" */
	char about[TOP_TEXT_BUF]; /* ", 1m 20s, one sample per 64.0 KiB" */
	char cost[TOP_TEXT_BUF]; /* the cost, and what is given up for it */
	char losses[TOP_TEXT_BUF];
	char resident[TOP_TEXT_BUF]; /* resident memory by row; "": not known */
	char spark[TOP_SPARK_BUF]; /* in use in the last minute, by top_rates.c; "": not known yet */
	struct strset *texts;
	/* The report that the rows are of. */
	struct report_options opts;
	struct report *report;
	struct report_places places;
	VEC(size_t) source; /* of each row: index in places */
};

/*
 * Rows of p, which must outlive the table, with the names and error bars that a report prints. TOP_PROCESSES: one row,
 * the process of p. Stacks of one place are one row. 0, -ENOMEM or -EINVAL (a profile without values).
 */
int top_table_of_profile(const struct profile *p, enum top_what what, struct top_table **ret);
void top_table_free(struct top_table *t);
/* Of a table of stacks: write the n-th frame from the leaf of the row's largest stack to buf; NULL: no more frames. */
#define TOP_FRAME_BUF 640
const char *top_table_frame(const struct top_table *t, size_t i, size_t n, char buf[TOP_FRAME_BUF]);

/*
 * top_rates.c: computes from tables of several moments how fast rows grow and allocate. Pure.
 *
 * Growth is what a row holds now minus what it held at the oldest moment of the last minute, or at the last one
 * before if moments are further apart. It may be chance when it is within the error bars of both moments together.
 * This is too careful, since part of what is held is the same at both moments: heaptap record, which knows every
 * sample's age, can be surer.
 */

/* Time until the first rate: the second refresh by default. */
#define TOP_RATES_FIRST_NS 1500000000ULL
/* Points are this far apart, and later rates are of this time at least. */
#define TOP_RATES_STEP_NS 5000000000ULL
#define TOP_RATES_SPAN_NS 60000000000ULL

#define TOP_RATES_POINT_CNT (TOP_RATES_SPAN_NS / TOP_RATES_STEP_NS + 2)

struct top_past {
	uint64_t id; /* of the row */
	uint32_t update; /* the last one with this row */
	enum top_what what;
	size_t cnt;
	struct top_point {
		uint64_t time_ns;
		double held_bytes, variance, alloc_bytes;
	} points[TOP_RATES_POINT_CNT]; /* the oldest first */
};

struct top_rates {
	VEC(struct top_past) all;
	struct hmap by_id; /* uint64_t -> index in all */
	uint32_t update;
};

void top_rates_init(struct top_rates *r);
void top_rates_release(struct top_rates *r);
/* Fills the last fields of all rows. 0 or -ENOMEM. */
int top_rates_update(struct top_rates *r, uint64_t time_ns, struct top_table *t);

/* top_view.c: which rows of a table are shown, and in which order: the state that keys change. Pure. */

/* Keys that are not characters. */
enum top_key {
	TOP_KEY_UP = 0x110000, /* beyond all characters */
	TOP_KEY_DOWN,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_HOME,
	TOP_KEY_END,
	TOP_KEY_ENTER,
	TOP_KEY_BACK, /* Escape, left */
	TOP_KEY_ERASE, /* backspace */
	TOP_KEY_RESIZE,
	TOP_KEY_GONE, /* the terminal is gone */
};

enum top_wish {
	TOP_NOTHING,
	TOP_DRAW, /* the same table, shown differently */
	TOP_LOAD, /* another table: what has changed */
	TOP_SAVE, /* the profile that is shown, in a file */
	TOP_QUIT,
};

#define TOP_SEARCH_BUF 128
struct top_view {
	enum top_what what;
	enum top_what of_process; /* the view chosen last; used when the process is opened */
	pid_t pid; /* of the process shown, else 0 */
	enum top_sort sort;
	bool is_paused, shows_help, is_typing;
	char search[TOP_SEARCH_BUF]; /* rows without it are hidden; "": none are */
	char *selected; /* the key of a row; NULL: the first */
	struct hmap turned; /* keys of rows that are not folded as by default */
	size_t first_line; /* first line on the screen, of all lines */
	size_t body_lines; /* lines for rows, when last drawn */
	VEC(size_t) order; /* rows that are shown: see top_view_arrange() */
};

void top_view_init(struct top_view *v);
void top_view_release(struct top_view *v);
/* Fill order: sorted, each row before those in it; without rows that are folded or do not match search. 0 or
 * -ENOMEM. */
int top_view_arrange(struct top_view *v, const struct top_table *t);
/* The index of the selected row in order. */
size_t top_view_selected(const struct top_view *v, const struct top_table *t);
/* True if the rows in it are hidden; by stack: its frames. */
bool top_view_is_folded(const struct top_view *v, const struct top_row *row);
/* key: a character, a byte of a non-ASCII one, or enum top_key. t: NULL when there is none yet. */
enum top_wish top_view_key(struct top_view *v, const struct top_table *t, int key);

/*
 * top_page.c: a table as lines of text for a screen of any size. Pure.
 *
 * No line is wider than the screen, and numbers are never cut: columns without room are left out, the least needed
 * first. The text is UTF-8 without control characters.
 */

#define TOP_COLUMNS_MAX 400
#define TOP_LINE_BUF (4 * TOP_COLUMNS_MAX + 1) /* bytes of UTF-8 */

enum top_paint { TOP_PLAIN, TOP_HEAD, TOP_TITLES, TOP_SELECTED, TOP_DIM, TOP_WARN };
struct top_line {
	char text[TOP_LINE_BUF];
	enum top_paint paint;
};

struct top_page {
	struct top_line *lines;
	size_t line_cnt, columns;
};

/* Messages beside the table. */
struct top_news {
	const char *message; /* the last message, or why there is no table; "": none */
	bool is_over; /* the process has ended: the table does not change any more */
	bool has_utf8; /* the terminal can show bars */
};

/* t: NULL when there is none yet. Arranges v anew and scrolls it. 0 or -ENOMEM. */
int top_page_draw(struct top_view *v, const struct top_table *t, const struct top_news *news,
		  size_t columns, size_t lines, struct top_page *ret);
void top_page_release(struct top_page *p);

/*
 * top.c: messages to standard error while the screen is drawn on: kept, shown in a line, and written when the screen is
 * gone. Of this process and of those that it starts meanwhile.
 */

struct top_messages;

int top_messages_begin(struct top_messages **ret);
/* Write the kept messages; later ones are written at once. Of more than 64 KiB: the end, and how much is missing. */
void top_messages_end(struct top_messages *m);
/* The last line, without the name of its sender; "": none. Returns buf. */
char *top_messages_last(struct top_messages *m, char *buf, size_t buf_bytes);

#endif
