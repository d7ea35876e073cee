/* SPDX-License-Identifier: MIT */
/*
 * profile_limit.h - a profile within the bounds of a backend that refuses larger ones whole. Pure.
 *
 * What goes, in this order: the root ends of stacks deeper than a bound (the leaf end says who
 * allocates; "[cut]" stands for what is gone), then the rows with the fewest bytes in use, which
 * become one row "[other]" for each set of labels. So the sums over a scope, and all of it, stay.
 */
#ifndef HT_PUSH_PROFILE_LIMIT_H
#define HT_PUSH_PROFILE_LIMIT_H

#include <stddef.h>
#include <stdint.h>

#define LIMIT_OTHER "[other]"
#define LIMIT_CUT "[cut]"

/*
 * Pyroscope's defaults: validation.max-profile-stacktrace-samples, and the least of those for bytes. That is
 * not validation.max-profile-size-bytes (4 MiB) but distributor.ingestion-burst-size-mb: what is larger
 * than a burst is told to come again later, for ever. Labels count, too.
 */
#define PYROSCOPE_ROW_MAX 16000
#define PYROSCOPE_BYTES_MAX (((uint64_t)2 << 20) - ((uint64_t)64 << 10))

struct profile;

struct profile_limits {
	size_t row_max;
	uint64_t bytes_max; /* before compression */
};

struct profile_limited {
	size_t folded_rows, cut_stacks;
};

/* A copy of p within the limits, without comments. -E2BIG: not even the rows "[other]" are. */
int profile_limit(const struct profile *p, const struct profile_limits *limits,
		  struct profile **ret, struct profile_limited *ret_lost);

#endif
