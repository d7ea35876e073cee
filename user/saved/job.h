/* SPDX-License-Identifier: MIT */
/*
 * job.h - a profile that is to be saved: of which image of which process, why, and what was known
 * of its memory when the reason arose.
 */
#ifndef HT_SAVED_JOB_H
#define HT_SAVED_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "budget/governor.h"
#include "saved/name.h"
#include "saved/rules.h"
#include "proc/cgroup_free.h"

struct ht_image;

/* What is known of a process's memory, for the comments of its profiles. */
struct saved_usage {
	double inuse_bytes, peak_bytes;
	uint64_t peak_ns; /* CLOCK_MONOTONIC */
	struct cgroup_free_reading cgroup;
};

/* From BPF's sums of an image; `cgroup` stays as it is. */
void saved_usage_set_sums(struct saved_usage *u, const struct ht_image *image);

struct saved_job {
	struct saved_name name;
	uint32_t generation;
	struct saved_usage usage;
	struct governor_record budget; /* of that time as well */
	uint64_t queued_ns; /* CLOCK_MONOTONIC: of those that wait in ended.c */
	int fd; /* in memory, while a child makes it; -1: none */
};

/* Evidence may run into debt: a death by a signal, and, less so, a limit that is near. */
enum saved_need saved_job_need(const struct saved_job *j);
/* It is known what it has in use: frees are watched, or nothing says that they are not. */
bool saved_job_has_inuse(const struct saved_job *j);
/* Of a process, or an image of one, that is over: nothing else knows of it any more. */
bool saved_job_is_last(const struct saved_job *j);
/* For qsort(): evidence, then the dead, then who has grown most. Who is dead by a signal has nobody else
 * to tell of it; a limit that is near will be so in a moment still. */
int saved_job_by_worth(const void *a, const void *b);

#endif
