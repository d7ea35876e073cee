/* SPDX-License-Identifier: MIT */
/*
 * ended.h - ended processes (and images, after an exec) that wait for their last profile.
 *
 * Their samples are still in the live map: they are held back from being forgotten
 * (tracker_hold()) from when a job is added until it is let go. Those that cannot be waited for are
 * let go here, and counted.
 */
#ifndef HT_SAVED_ENDED_H
#define HT_SAVED_ENDED_H

#include <stddef.h>
#include <stdint.h>

#include "saved/job.h"

struct saved_credit;
struct saved_ended;
struct tracker;

/* -ENOMEM. */
int saved_ended_new(struct saved_ended **ret);
/* NULL is fine. What is held stays so: the tracker ends as well. */
void saved_ended_free(struct saved_ended *ke);

/* When there are too many, the one that is worth least gives way. */
void saved_ended_add(struct saved_ended *ke, struct tracker *t, const struct saved_job *job);
size_t saved_ended_cnt(const struct saved_ended *ke);
/* Holds until the next change. */
const struct saved_job *saved_ended_at(const struct saved_ended *ke, size_t i);
/* The job of this image, if there is one, waits no longer; it is still held. */
void saved_ended_take(struct saved_ended *ke, const struct saved_job *job);
/* Lets go those that have waited too long for CPU time that is not there, so that their samples do
 * not fill the live map. now_ns: CLOCK_MONOTONIC. */
void saved_ended_skip_late(struct saved_ended *ke, struct tracker *t, struct saved_credit *credit,
			   uint64_t now_ns);

/* Of which no profile will be made. */
uint64_t saved_ended_skipped_cnt(const struct saved_ended *ke);

#endif
