/* SPDX-License-Identifier: MIT */
/*
 * report_rows.h - a profile added up: which of its values are shown, and the rows.
 *
 * Internal to the report_*.c files.
 */
#ifndef HT_REPORT_ROWS_H
#define HT_REPORT_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/hmap.h"
#include "base/strset.h"
#include "base/vec.h"
#include "report/options.h"
#include "profile/bins.h"
#include "profile/estimate.h"
#include "profile/growth.h"
#include "profile/profile.h"
#include "profile/scope_tree.h"

/* By scope: where the row stands in the tree, and its own part without what is below. */
struct report_scope {
	uint32_t depth;
	int64_t path; /* in report.names; 0 = the row is no scope */
	struct scope_sums exclusive;
};

enum report_state { REPORT_STATE_UNKNOWN, REPORT_STATE_LIVE, REPORT_STATE_EXITED };

/* By instance. */
struct report_task {
	bool is_task; /* else the row of all that is no task's */
	bool has_no_alloc; /* what it has allocated is not known: no note says it */
	int64_t id; /* any 64 bits */
	int64_t pid; /* in report.names; "" = not said */
	enum report_state state;
};

/* The most that was in use, by scope or instance. */
struct report_peak {
	bool is_known;
	bool is_minimum; /* of several scopes: their common peak is not known better */
	int64_t bytes, time_ns; /* since the epoch; 0 = not known */
};

struct report_row {
	int64_t name; /* in report.names; for a stack its leaf's */
	int64_t value, objects, alloc, alloc_objects;
	int64_t cumulative; /* by function: with all that it called */
	struct estimate estimate; /* of value and objects */
	struct estimate alloc_estimate; /* a variance that is not known is NAN */
	struct age_sums ages;
	struct bin_sums bins;
	uint32_t class_rank; /* by age, lifetime or size: the order of rows */
	struct growth_sums growth;
	int growth_rank; /* with REPORT_SORT_GROWTH: enum growth_verdict in the order of rows */
	double growth_bytes_per_s; /* likewise */
	double temporary_objects; /* with REPORT_SORT_TEMPORARY */
	uint32_t sample_first, sample_cnt; /* in report.order: the samples of this row */
	uint32_t seen; /* the last sample that was added to cumulative, + 1 */
	size_t row_cnt; /* "(other)": how many rows it stands for, else 0 */
	struct report_scope scope;
	struct report_task task;
	struct report_peak peak;
};

struct report {
	const struct profile *p;
	const struct report_options *opts;
	/* Sample types that are shown; -1 = there is none. */
	int value_type, objects_type, alloc_type, alloc_objects_type;
	bool is_inuse; /* value is inuse_space */
	bool is_alloc; /* value is alloc_space */
	bool is_unknown; /* in-use is not known: its values mean nothing */
	bool has_bins; /* sizes are known */
	bool has_lifetimes; /* so are frees and lifetimes */
	bool is_lossy; /* something is missing: no number is exact */
	uint64_t rate_bytes; /* one sample per this many bytes; 0 = not known */
	bool has_interval;
	bool has_samples; /* how many samples a row stands on was recorded, not inferred */
	/* The same of alloc. */
	bool has_alloc_interval, has_alloc_samples;
	struct growth_plan growth_plan; /* is_known: rows have growth */
	struct strset *names;
	VEC(int64_t) scopes; /* of each sample: its path in names; none when nobody asks */
	VEC(uint32_t) chosen; /* the samples that are reported one by one */
	VEC(uint32_t) order; /* samples */
	VEC(struct report_row) rows;
	VEC(struct report_row) outstanding; /* by instance: exited, but not empty */
	struct report_row outstanding_total;
	bool has_peaks;
	/* The samples that opts->match does not want. They are the last row. */
	bool has_unmatched;
	struct report_row unmatched;
	struct report_row total; /* of all rows */
	struct report_row whole; /* of the profile: more than total with opts->scope */
};

/* One line of a location, or a location without lines. */
struct report_frame {
	const struct profile_location *location;
	const struct profile_line *line; /* or NULL */
	bool is_inlined;
};

int report_open(const struct profile *p, const struct report_options *opts, struct report **ret);
void report_close(struct report *r);

/* Walk the frames of a sample from the leaf: start with two zeros, until false. */
struct report_frame_pos {
	uint32_t location, line;
};
bool report_next_frame(const struct profile *p, const struct profile_sample *s,
		       struct report_frame_pos *pos, struct report_frame *ret);
/* Function, or "module+0xvaddr"; the text is in buf or in the profile. */
const char *report_frame_name(const struct profile *p, const struct report_frame *f, char *buf,
			      size_t buf_bytes);
#define REPORT_NAME_BUF 512
/* Base name of the mapping's file, "" when there is none. */
const char *report_frame_module(const struct profile *p, const struct report_frame *f);
/* The function that it is charged to: the first own one; the text is in buf or in the profile. */
const char *report_sample_function(const struct report *r, const struct profile_sample *s,
				   char *buf);
/* A sample's row in a report by module. */
const char *report_sample_module(const struct report *r, const struct profile_sample *s);
/* Its thread or pool; the text is in buf or in the profile. */
const char *report_sample_thread(const struct report *r, const struct profile_sample *s, char *buf);
/* The value of opts->label_key, SCOPE_NONE without one. */
const char *report_sample_label(const struct report *r, const struct profile_sample *s, char *buf);
const char *report_sample_scope(const struct report *r, const struct profile_sample *s);

bool report_has_scopes(const struct profile *p);

/* Fill scopes, chosen, unmatched, total and whole; name what is not matched. */
int report_select(struct report *r);
int report_rows_by_scope(struct report *r);
int report_rows_by_instance(struct report *r);
int report_rows_by_age(struct report *r);
int report_rows_by_bin(struct report *r); /* by lifetime or size */
/* Rows are classes of age, lifetime or size. */
bool report_is_by_class(const struct report_options *opts);

int64_t report_add_saturating(int64_t a, int64_t b);
void report_add_sample(const struct report *r, const struct profile_sample *s,
		       struct report_row *row);
/* 95 % interval of the row's value; false: it is not known. */
bool report_interval(const struct report *r, const struct report_row *row, double *ret_low,
		     double *ret_high);
/* 95 % interval of what the row allocated; false: it is not known. */
bool report_alloc_interval(const struct report *r, const struct report_row *row, double *ret_low,
			   double *ret_high);
/* Whether the row grows. false: nothing is known, and *ret says how much longer it takes, 0: that is not known either. */
bool report_growth(const struct report *r, const struct report_row *row, size_t row_cnt,
		   struct growth *ret);
/* How much of what the row allocated lived for less than BIN_TEMPORARY_NS. false: it is not known. */
bool report_temporary(const struct report *r, const struct report_row *row, struct bin_share *ret);
/* For REPORT_SORT_GROWTH and REPORT_SORT_TEMPORARY: what the row is compared by. */
void report_rank(const struct report *r, struct report_row *row);
void report_rank_growth(const struct report *r, struct report_row *row);
struct scope_sums report_sums_of_row(const struct report_row *row);
/* Adds to row_cnt too. */
void report_add_row(struct report_row *into, const struct report_row *row);
/* Rows behind opts->row_cap become one, "(other)". */
int report_fold_rows(struct report *r, struct report_row *rows, size_t *cnt);
/* Largest first, by opts->sort; for qsort_r() with the report as context. */
int report_compare_rows(const void *a, const void *b, void *ctx);

/* Text that fits a screen chooses its rows itself, so none are folded for it. */
bool report_is_screen(const struct report_options *opts);
int report_write_text(const struct report *r, FILE *out);
/* By growth; at most row_cap rows, 0 = all. */
int report_write_growth(const struct report *r, size_t row_cap, FILE *out);
/* By what is temporary; likewise. */
int report_write_temporary(const struct report *r, size_t row_cap, FILE *out);
int report_write_json(const struct report *r, FILE *out);
int report_write_collapsed(const struct report *r, FILE *out);
int report_write_heap(const struct report *r, FILE *out); /* by stack, all of them */
int report_write_heap_v2(const struct report *r, FILE *out); /* the same */
int report_write_speedscope(const struct report *r, FILE *out); /* the same */
int report_write_html(const struct report *r, FILE *out); /* the same */
int report_write_svg(const struct report *r, FILE *out); /* the same */

#endif
