/* SPDX-License-Identifier: MIT */
/*
 * report_rows.h - a profile added up: which of its values are shown, and the rows.
 *
 * Internal to the report_*.c files.
 */
#ifndef HT_FORMAT_REPORT_ROWS_H
#define HT_FORMAT_REPORT_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hmap.h"
#include "base/strset.h"
#include "base/vec.h"
#include "format/report.h"
#include "model/estimate.h"
#include "model/profile.h"

struct report_row {
	int64_t name; /* in report.names; for a stack its leaf's */
	int64_t value, objects, alloc, alloc_objects;
	int64_t cumulative; /* by function: with all that it called */
	struct estimate estimate; /* of value and objects */
	uint32_t sample_first, sample_cnt; /* in report.order: the samples of this row */
	uint32_t seen; /* the last sample that was added to cumulative, + 1 */
	size_t row_cnt; /* "(other)": how many rows it stands for, else 0 */
};

struct report {
	const struct profile *p;
	const struct report_options *opts;
	/* Sample types that are shown; -1 = there is none. */
	int value_type, objects_type, alloc_type, alloc_objects_type;
	bool is_inuse; /* value is inuse_space */
	uint64_t rate_bytes; /* one sample per this many bytes; 0 = not known */
	bool has_interval;
	bool has_samples; /* how many samples a row stands on was recorded, not inferred */
	struct strset *names;
	VEC(uint32_t) order; /* samples */
	VEC(struct report_row) rows;
	struct report_row total;
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
/* A sample's row in a report by module. */
const char *report_sample_module(const struct report *r, const struct profile_sample *s);
const char *report_sample_thread(const struct report *r, const struct profile_sample *s);

int report_write_text(const struct report *r, FILE *out);
int report_write_json(const struct report *r, FILE *out);
int report_write_collapsed(const struct report *r, FILE *out);

#endif
