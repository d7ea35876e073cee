/* SPDX-License-Identifier: MIT */
/*
 * moment.h - what was in use at another moment of the recording than its end.
 *
 * To move a profile changes the values of inuse_space and inuse_objects and what belongs to them, so that everything that
 * reads a profile shows that moment. What is not kept for it is dropped: ages, and blocks of other moments than the
 * peak. What was allocated is of the whole recording, whatever the moment. A profile is moved once; it is not written
 * afterwards.
 */
#ifndef HT_PROFILE_MOMENT_H
#define HT_PROFILE_MOMENT_H

#include "base/std.h"

struct estimate;
struct profile;

/* All that was in use at the peak. false: it is not known. */
bool profile_peak(const struct profile *p, struct estimate *ret);
/* -ENODATA: it is not known. */
int profile_move_to_peak(struct profile *p);
/* To the kept moment that is nearest to ns since the begin of the recording. -ENODATA: none is kept. */
int profile_move_to_time(struct profile *p, int64_t ns);
/* In use at the peak is not known after all: take it out. */
void profile_drop_peak(struct profile *p);

/*
 * Keep in p only what has been in use for at least bound_ns, which must be the begin of a class of bins.h. Allocated
 * memory is not told apart by age, so these values are removed, and so are moments, bins and notes. -ENODATA: the file
 * has no ages, and p is unchanged.
 */
int profile_keep_older(struct profile *p, uint64_t bound_ns);

#endif
