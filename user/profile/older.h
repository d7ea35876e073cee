/* SPDX-License-Identifier: MIT */
/* older.h - reduce a profile to memory that has been in use for long. */
#ifndef HT_PROFILE_OLDER_H
#define HT_PROFILE_OLDER_H

#include <stdint.h>

struct profile;

/*
 * Keep in p only what has been in use for at least bound_ns, which must be the begin of a class of bins.h. Allocated
 * memory is not told apart by age, so these values are removed, and so are moments, bins and notes. -ENODATA: the file
 * has no ages, and p is unchanged.
 */
int profile_keep_older(struct profile *p, uint64_t bound_ns);

#endif
