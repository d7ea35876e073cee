/* SPDX-License-Identifier: MIT */
/*
 * job.h - a profile that is to be saved: which image of which process, why, and what was known of its memory when
 * the reason arose.
 */
#ifndef HT_SAVED_JOB_H
#define HT_SAVED_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "budget/governor.h"
#include "saved/name.h"
#include "saved/rules.h"
#include "proc/cgroup_memory.h"

struct ht_image;

/* What is known of a process's memory, for the notes of its profiles. */
struct saved_usage {
	double inuse_bytes, peak_bytes;
	uint64_t peak_ns; /* CLOCK_MONOTONIC */
	struct cgroup_free_reading cgroup;
};

/* Fill in BPF's sums of an image; `cgroup` stays as it is. */
void saved_usage_set_sums(struct saved_usage *u, const struct ht_image *image);

struct saved_job {
	struct saved_name name;
	uint32_t generation;
	struct saved_usage usage;
	struct governor_record budget; /* as of that time, too */
	uint64_t queued_ns; /* CLOCK_MONOTONIC: only for jobs that wait in ended.c */
	int fd; /* in memory, while a child makes it; -1: none */
};

/* Evidence may run into debt: a death by a signal and, less so, a nearly reached limit. */
enum saved_need saved_job_need(const struct saved_job *j);
/* True if in use is known: frees are watched, or nothing says that they are not. */
bool saved_job_has_inuse(const struct saved_job *j);
/* True for a process or an image that has ended: this is the last chance to save a profile of it. */
bool saved_job_is_last(const struct saved_job *j);
/* For qsort(): evidence (a death by a signal before a near limit, as nothing else tells of the former, and the
 * latter will still be so in a moment), then other ended processes, then peaks; in each the largest in use
 * first. */
int saved_job_by_worth(const void *a, const void *b);

#endif
