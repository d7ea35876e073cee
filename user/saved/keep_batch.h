/* SPDX-License-Identifier: MIT */
/*
 * keep_batch.h - the jobs that one child process makes profiles for, all of them from one snapshot.
 *
 * A batch is set, its files are opened, it is started; when worker.h tells its end, the results are
 * read, and it is cleared. One at a time.
 */
#ifndef HT_SAVED_KEEP_BATCH_H
#define HT_SAVED_KEEP_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "saved/keep_job.h"

struct keep_batch;
struct keep_store;
struct profile_source;
struct profile_wish;
struct snapshot;

#define KEEP_BATCH_CAP 16

/* Of one job, from the child. */
struct keep_result {
	uint32_t job_idx;
	int32_t make_err, write_err; /* -errno: of the profile; of its way to the store's folder */
	double inuse_bytes; /* in the profile; < 0: not known */
};

/* The store, which must outlive the batch, is only written to, by the child. -ENOMEM. */
int keep_batch_new(const struct keep_store *store, struct keep_batch **ret);
/* Ends the child. NULL is fine. */
void keep_batch_free(struct keep_batch *b);

/* The first KEEP_BATCH_CAP are taken. */
void keep_batch_set(struct keep_batch *b, const struct keep_job *jobs, size_t cnt);
size_t keep_batch_cnt(const struct keep_batch *b);
/* Whoever takes its fd over sets it to -1. */
struct keep_job *keep_batch_at(struct keep_batch *b, size_t i);
/* For the profiles, in memory; from here on the jobs have the time epoch_ns, give or take some
 * milliseconds, so that no two have the same. -errno: to be cleared. */
int keep_batch_open_files(struct keep_batch *b, int64_t epoch_ns);
/* Forgets the jobs, and closes what nobody took over. */
void keep_batch_clear(struct keep_batch *b);

/* moment: when s was begun, on both clocks. */
int keep_batch_start(struct keep_batch *b, const struct profile_source *src,
		     const struct snapshot *s, const struct profile_wish *moment);

/* As worker.h says of the child; while it is at work. */
bool keep_batch_is_at_work(const struct keep_batch *b);
int keep_batch_fd(const struct keep_batch *b);
bool keep_batch_check(struct keep_batch *b);
bool keep_batch_reap(struct keep_batch *b, uint64_t *ret_cpu_ns);
/* At any time. */
uint64_t keep_batch_reader_since_ns(const struct keep_batch *b);

/* After the end, in the order in which they came; false: there are no more, the rest was not made. */
bool keep_batch_result(const struct keep_batch *b, size_t i, struct keep_result *ret);

#endif
