/* SPDX-License-Identifier: MIT */
/*
 * profile_copy.h - a profile of some rows of another, one that is small enough, or one without names. Pure.
 *
 * A copy has only the locations, functions and strings that its rows need, but all mappings (the first one is the
 * program).
 */
#ifndef HT_PROFILE_PROFILE_COPY_H
#define HT_PROFILE_PROFILE_COPY_H

#include "base/std.h"
#include "base/vec.h"

struct profile;
struct profile_label;
struct profile_location;
struct profile_mapping;
struct profile_sample;

struct profile_copy {
	const struct profile *from;
	struct profile *to; /* owned by this struct until profile_copy_take() */
	bool is_onto; /* it is the caller's */
	uint32_t mapping_first; /* of from's mappings, in to */
	uint32_t *functions, *locations; /* from's index -> to's index + 1 */
	VEC(uint32_t) stack;
	VEC(struct profile_label) labels;
	bool names_all; /* a location without lines gets one: "module+0xvaddr" */
};

/* Begin a copy with sample types, period, times and mappings of `from`, which must stay. Its notes are left out,
 * and the types of what is in use when that is unknown. */
int profile_copy_begin(struct profile_copy *c, const struct profile *from, bool names_all);
/* Begin to append rows of `from` to a profile that has types, and stays the caller's. */
int profile_copy_onto(struct profile_copy *c, const struct profile *from, struct profile *to);
/* Return the profile; c is then as after release. */
struct profile *profile_copy_take(struct profile_copy *c);
void profile_copy_release(struct profile_copy *c);

/* Copy a stack into c->stack, as indexes in c->to. */
int profile_copy_stack(struct profile_copy *c, const uint32_t *locs, size_t cnt);
/* Copy the labels of a row of `from` into c->labels. */
int profile_copy_labels(struct profile_copy *c, const struct profile_sample *row);

/*
 * A profile within the bounds of a backend that would refuse a larger one whole.
 *
 * It drops, in this order: the root ends of stacks deeper than a bound (the leaf end says who allocates; "[cut]"
 * stands for the missing frames), then the rows with the fewest bytes in use, which become one row "[other]" for
 * each set of labels. So the sums of each scope and of the profile stay the same.
 */

#define LIMIT_OTHER "[other]"
#define LIMIT_CUT "[cut]"

/*
 * Pyroscope's defaults: validation.max-profile-stacktrace-samples, and the least of its limits in bytes. The latter
 * is not validation.max-profile-size-bytes (4 MiB) but distributor.ingestion-burst-size-mb: a request larger than a
 * burst is told to come again later, for ever. Labels count, too.
 */
#define PYROSCOPE_ROW_MAX 16000
#define PYROSCOPE_BYTES_MAX (((uint64_t)2 << 20) - ((uint64_t)64 << 10))

struct profile_limits {
	size_t row_max;
	uint64_t bytes_max; /* before compression */
};

struct profile_limited {
	size_t folded_rows, cut_stacks;
};

/* Return a copy of p within the limits, without notes. -E2BIG: even the rows "[other]" exceed them. */
int profile_limit(const struct profile *p, const struct profile_limits *limits,
		  struct profile **ret, struct profile_limited *ret_lost);

/*
 * A profile without the names that its receiver finds by itself.
 *
 * A Parca server that has the debug information of a file names addresses of that file on request, but only of
 * locations that come without lines.
 */

/* What was taken out of the profile; all 0: nothing. */
struct profile_strip {
	struct profile_location *locations;
	struct profile_mapping *mappings;
};

/* Take the lines out of locations in mappings whose build id is held, until profile_strip_end(). -ENOMEM: nothing
 * has changed. */
int profile_strip_begin(struct profile *p, bool (*is_held)(const void *ctx, const char *build_id),
			const void *ctx, struct profile_strip *ret);
/* Put the lines back. The profile must not have grown meanwhile. */
void profile_strip_end(struct profile *p, struct profile_strip *b);

#endif
