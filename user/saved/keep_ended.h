/* SPDX-License-Identifier: MIT */
/*
 * keep_ended.h - ended processes (and images, after an exec) that wait for their last profile.
 *
 * Their samples are still in the live map: they are held back from being forgotten
 * (tracker_hold()) from when a job is added until it is let go. Those that cannot be waited for are
 * let go here, and counted.
 */
#ifndef HT_SAVED_KEEP_ENDED_H
#define HT_SAVED_KEEP_ENDED_H

#include <stddef.h>
#include <stdint.h>

#include "saved/keep_job.h"

struct keep_credit;
struct keep_ended;
struct tracker;

/* -ENOMEM. */
int keep_ended_new(struct keep_ended **ret);
/* NULL is fine. What is held stays so: the tracker ends as well. */
void keep_ended_free(struct keep_ended *ke);

/* When there are too many, the one that is worth least gives way. */
void keep_ended_add(struct keep_ended *ke, struct tracker *t, const struct keep_job *job);
size_t keep_ended_cnt(const struct keep_ended *ke);
/* Holds until the next change. */
const struct keep_job *keep_ended_at(const struct keep_ended *ke, size_t i);
/* The job of this image, if there is one, waits no longer; it is still held. */
void keep_ended_take(struct keep_ended *ke, const struct keep_job *job);
/* Lets go those that have waited too long for CPU time that is not there, so that their samples do
 * not fill the live map. now_ns: CLOCK_MONOTONIC. */
void keep_ended_skip_late(struct keep_ended *ke, struct tracker *t, struct keep_credit *credit,
			  uint64_t now_ns);

/* Of which no profile will be made. */
uint64_t keep_ended_skipped_cnt(const struct keep_ended *ke);

#endif
