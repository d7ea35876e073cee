/* SPDX-License-Identifier: MIT */
/* older.h - of a profile only what has been in use for long. */
#ifndef HT_PROFILE_OLDER_H
#define HT_PROFILE_OLDER_H

#include <stdint.h>

struct profile;

/*
 * Leaves in p only what is in use since at least bound_ns, which is where a class of age.h begins. What was allocated is
 * not told apart by age: these values are taken away, and so are moments, bins and notes. -ENODATA, and p is as it
 * was: the file tells no ages.
 */
int profile_keep_older(struct profile *p, uint64_t bound_ns);

#endif
