/* SPDX-License-Identifier: MIT */
/*
 * profile_limit.h - reduces a profile to the bounds of a backend that would refuse a larger one whole. Pure.
 *
 * It drops, in this order: the root ends of stacks deeper than a bound (the leaf end says who allocates; "[cut]"
 * stands for the missing frames), then the rows with the fewest bytes in use, which become one row "[other]" for
 * each set of labels. So the sums of each scope and of the profile stay the same.
 */
#ifndef HT_PUSH_PROFILE_LIMIT_H
#define HT_PUSH_PROFILE_LIMIT_H

#include <stddef.h>
#include <stdint.h>

#define LIMIT_OTHER "[other]"
#define LIMIT_CUT "[cut]"

/*
 * Pyroscope's defaults: validation.max-profile-stacktrace-samples, and the least of its limits in bytes. The latter
 * is not validation.max-profile-size-bytes (4 MiB) but distributor.ingestion-burst-size-mb: a request larger than a
 * burst is told to come again later, for ever. Labels count, too.
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

/* Return a copy of p within the limits, without notes. -E2BIG: even the rows "[other]" exceed them. */
int profile_limit(const struct profile *p, const struct profile_limits *limits,
		  struct profile **ret, struct profile_limited *ret_lost);

#endif
