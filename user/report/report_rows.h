/* SPDX-License-Identifier: MIT */
/*
 * report_rows.h - adds up a profile: which values are shown, and the rows.
 *
 * Internal to the report_*.c files.
 */
#ifndef HT_REPORT_ROWS_H
#define HT_REPORT_ROWS_H

#include "base/std.h"
#include "base/hmap.h"
#include "base/strset.h"
#include "base/vec.h"
#include "profile/bins.h"
#include "profile/estimate.h"
#include "profile/growth.h"
#include "profile/profile.h"
#include "report/options.h"

/* By scope: a row's place in the tree, and its part without scopes below. */
struct report_scope {
	uint32_t depth;
	int64_t path; /* in report.names; 0 = not a scope */
	struct report_exclusive {
		int64_t bytes, objects, alloc_bytes, alloc_objects;
	} exclusive;
};

enum report_state { REPORT_STATE_UNKNOWN, REPORT_STATE_LIVE, REPORT_STATE_EXITED };

/* By instance. */
struct report_task {
	bool is_task; /* else: the row of everything outside tasks */
	bool has_no_alloc; /* its allocated bytes are not known: no note has them */
	int64_t id; /* any 64-bit value */
	int64_t pid; /* in report.names; "" = not known */
	enum report_state state;
};

/* The maximum in use, by scope or instance. */
struct report_peak {
	bool is_known;
	bool is_minimum; /* several scopes, whose common peak is at least this */
	int64_t bytes, time_ns; /* since the epoch; 0 = not known */
};

struct report_row {
	int64_t name; /* in report.names; for a stack the leaf's */
	int64_t value, objects, alloc, alloc_objects;
	int64_t cumulative; /* by function: including what it called */
	struct estimate estimate; /* of value and objects */
	struct estimate alloc_estimate; /* variance NAN: not known */
	struct estimate pinned; /* only its bytes; with pinned_type */
	struct age_sums ages;
	struct bin_sums bins;
	uint32_t class_rank; /* by age, lifetime or size: sort position */
	struct growth_sums growth;
	int growth_rank; /* REPORT_SORT_GROWTH: enum growth_verdict in sort order */
	double growth_bytes_per_s; /* likewise */
	double temporary_objects; /* with REPORT_SORT_TEMPORARY */
	uint32_t sample_first, sample_cnt; /* the row's samples in report.order */
	uint32_t seen; /* last sample that was added to cumulative, + 1 */
	size_t row_cnt; /* "(other)": number of rows summed up; else 0 */
	struct report_scope scope;
	struct report_task task;
	struct report_peak peak;
};

struct report {
	const struct profile *p;
	const struct report_options *opts;
	/* Indexes of the shown sample types; -1 = none. */
	int value_type, objects_type, alloc_type, alloc_objects_type;
	int pinned_type; /* -1: not known of these rows */
	bool is_inuse; /* value is inuse_space */
	bool is_alloc; /* value is alloc_space */
	bool is_unknown; /* in-use is not known: its values mean nothing */
	bool has_bins; /* sizes are known */
	bool has_lifetimes; /* ... and frees and lifetimes, too */
	bool is_lossy; /* something is missing: no number is exact */
	bool lacks_stacks; /* rows are of stacks, and some samples have none: no row is exact */
	uint64_t rate_bytes; /* bytes per sample on average; 0 = not known */
	bool has_interval;
	bool has_samples; /* numbers of samples behind rows were recorded, not inferred */
	/* The same for alloc. */
	bool has_alloc_interval, has_alloc_samples;
	struct growth_plan growth_plan; /* is_known: rows have growth */
	struct strset *names;
	VEC(int64_t) scopes; /* path of each sample, in names; empty if not needed */
	VEC(uint32_t) chosen; /* samples that are reported one by one */
	VEC(uint32_t) order; /* samples, row by row */
	VEC(struct report_row) rows;
	VEC(struct report_row) outstanding; /* by instance: exited tasks that still hold memory */
	struct report_row outstanding_total;
	bool has_peaks;
	/* Sum of the samples that opts->match excludes. The last row. */
	bool has_unmatched;
	struct report_row unmatched;
	struct report_row total; /* of all rows */
	struct report_row
		end; /* of the whole profile at its end, if the report is of another moment */
	struct report_row at_peak; /* of the whole profile; no value: it is not known */
	struct report_row whole; /* of the profile; with opts->scope more than total */
};

/* One line of a location, or a location without lines. */
struct report_frame {
	const struct profile_location *location;
	const struct profile_line *line; /* or NULL */
	bool is_inlined;
};

int report_open(const struct profile *p, const struct report_options *opts, struct report **ret);
void report_close(struct report *r);

/* Position of a walk over a sample's frames from the leaf. Start with zeros; report_next_frame()
 * returns false at the end. */
struct report_frame_pos {
	uint32_t location, line;
};
bool report_next_frame(const struct profile *p, const struct profile_sample *s,
		       struct report_frame_pos *pos, struct report_frame *ret);
/* Function, or "module+0xvaddr". The text is in buf or in the profile. */
const char *report_frame_name(const struct profile *p, const struct report_frame *f, char *buf,
			      size_t buf_bytes);
#define REPORT_NAME_BUF 512
/* Base name of the mapping's file; "": none. */
const char *report_frame_module(const struct profile *p, const struct report_frame *f);
/* The function that a sample is charged to: its first own one. The text is in buf or in the profile. */
const char *report_sample_function(const struct report *r, const struct profile_sample *s,
				   char *buf);
/* "server (PID 14)" of a sample. The text is in buf. */
const char *report_sample_process(const struct report *r, const struct profile_sample *s,
				  char *buf);
/* Row name of a sample in a report by module. */
const char *report_sample_module(const struct report *r, const struct profile_sample *s);
/* Thread or pool of a sample. The text is in buf or in the profile. */
const char *report_sample_thread(const struct report *r, const struct profile_sample *s, char *buf);
/* Value of opts->label_key; SCOPE_NONE: the sample has none. */
const char *report_sample_label(const struct report *r, const struct profile_sample *s, char *buf);
const char *report_sample_scope(const struct report *r, const struct profile_sample *s);

bool report_has_scopes(const struct profile *p);

/* Is the report of the end of the recording? */
static inline bool report_is_at_end(const struct report *r)
{
	return r->p->moment.at == PROFILE_AT_END;
}
/* The total of the end in any case: what is resident, and what the process holds, is of the end. */
static inline const struct report_row *report_end_total(const struct report *r)
{
	return report_is_at_end(r) ? &r->total : &r->end;
}

int report_rows_by_scope(struct report *r);
int report_rows_by_instance(struct report *r);
/* Are rows classes of age, lifetime or size? */
bool report_is_by_class(const struct report_options *opts);

/* report_sums.c */

int64_t report_add_saturating(int64_t a, int64_t b);
/* A value of a sample; 0 of a type that there is not. */
static inline int64_t report_sample_value(const struct report *r, const struct profile_sample *s,
					  int type)
{
	return type < 0 ? 0 : r->p->values.data[s->value_first + (uint32_t)type];
}
/* The value, and what was allocated, to be shown: also where they are beyond what the row's members can hold. */
double report_value(const struct report_row *row);
double report_alloc(const struct report_row *row);
void report_add_sample(const struct report *r, const struct profile_sample *s,
		       struct report_row *row);
/* What a sample held at the end, whatever the moment of the report. */
struct estimate report_end_of(const struct report *r, uint32_t sample);
/* 95 % interval of the row's value; false: not known. */
bool report_interval(const struct report *r, const struct report_row *row, double *ret_low,
		     double *ret_high);
/* 95 % interval of what the row allocated; false: not known. */
bool report_alloc_interval(const struct report *r, const struct report_row *row, double *ret_low,
			   double *ret_high);
/* Does the row grow? false: not known; *ret says how much longer it takes, 0: not known either. */
bool report_growth(const struct report *r, const struct report_row *row, size_t row_cnt,
		   struct growth *ret);
/* Share of what the row allocated that lived less than BIN_TEMPORARY_NS. false: not known. */
bool report_temporary(const struct report *r, const struct report_row *row, struct bin_share *ret);
/* Fill in what rows are compared by with REPORT_SORT_GROWTH and REPORT_SORT_TEMPORARY. */
void report_rank(const struct report *r, struct report_row *row);
void report_rank_growth(const struct report *r, struct report_row *row);
/* Its exclusive part is what it has now. */
void report_set_exclusive(struct report_row *row);
/* Also adds to row_cnt. */
void report_add_row(struct report_row *into, const struct report_row *row);
/* Sum up rows beyond opts->row_cap into one, "(other)". */
int report_fold_rows(struct report *r, struct report_row *rows, size_t *cnt);
/* Largest first, by opts->sort; for qsort_r() with the report as context. */
int report_compare_rows(const void *a, const void *b, void *ctx);

/*
 * Losses are the nonzero counters of the ledger (comments "ledger: NAME N (meaning)"), except those
 * that another line of the report tells. An unknown counter counts as a loss.
 */
#define REPORT_LEDGER "ledger: " /* prefix of such comments */

struct report_loss {
	unsigned long long cnt;
	const char *text; /* in the profile: "cut_no_row 3 (stacks cut: no unwind row)" */
	const char *meaning; /* its end: "stacks cut: no unwind row)" */
};

/* Return the number of kinds of losses; *ret_largest: the largest one. */
size_t report_find_losses(const struct profile *p, struct report_loss *ret_largest);
bool report_has_losses(const struct profile *p);

enum report_lack {
	REPORT_LACKS_STACKS, /* of samples: sums are right, and no row of stacks is */
	REPORT_LACKS_BLOCKS, /* there was no room for them: what is in use is a lower bound */
	REPORT_LACKS_LIVING, /* processes are not in it from their beginning: sums are lower bounds */
	REPORT_LACKS_PROCESSES, /* ... or not at all, for they ended before they were tapped */
};
bool report_lacks(const struct profile *p, enum report_lack what);

/* Is it text that fits a screen? Such text chooses its rows itself, so report_fold_rows() leaves them. */
static inline bool report_is_screen(const struct report_options *o)
{
	return o->format == REPORT_TEXT && o->by != REPORT_BY_SCOPE &&
	       o->by != REPORT_BY_INSTANCE && !(o->by == REPORT_BY_STACK && o->shows_stacks);
}

int report_write_text(const struct report *r, FILE *out);
/* By growth, temporary blocks or pinned memory; at most row_cap rows, 0 = all. */
int report_write_ranked(const struct report *r, size_t row_cap, FILE *out);
int report_write_json(const struct report *r, FILE *out);
int report_write_heap(const struct report *r, FILE *out); /* of both formats; by stack, all rows */
int report_write_html(const struct report *r, FILE *out); /* the same */

#endif
