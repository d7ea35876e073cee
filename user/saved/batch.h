/* SPDX-License-Identifier: MIT */
/*
 * batch.h - the jobs that one child process makes profiles for, all of them from one snapshot.
 *
 * A batch is set, its files are opened, it is started; when worker.h tells its end, the results are
 * read, and it is cleared. One at a time.
 */
#ifndef HT_SAVED_BATCH_H
#define HT_SAVED_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "saved/job.h"

struct saved_batch;
struct saved_store;
struct profile_source;
struct profile_request;
struct snapshot;

#define KEEP_BATCH_CAP 16

/* Of one job, from the child. */
struct saved_result {
	uint32_t job_idx;
	int32_t make_err, write_err; /* -errno: of the profile; of its way to the store's folder */
	double inuse_bytes; /* in the profile; < 0: not known */
};

/* The store, which must outlive the batch, is only written to, by the child. -ENOMEM. */
int saved_batch_new(const struct saved_store *store, struct saved_batch **ret);
/* Ends the child. NULL is fine. */
void saved_batch_free(struct saved_batch *b);

/* The first KEEP_BATCH_CAP are taken. */
void saved_batch_set(struct saved_batch *b, const struct saved_job *jobs, size_t cnt);
size_t saved_batch_cnt(const struct saved_batch *b);
/* Whoever takes its fd over sets it to -1. */
struct saved_job *saved_batch_at(struct saved_batch *b, size_t i);
/* For the profiles, in memory; from here on the jobs have the time epoch_ns, give or take some
 * milliseconds, so that no two have the same. -errno: to be cleared. */
int saved_batch_open_files(struct saved_batch *b, int64_t epoch_ns);
/* Forgets the jobs, and closes what nobody took over. */
void saved_batch_clear(struct saved_batch *b);

/* moment: when s was begun, on both clocks. */
int saved_batch_start(struct saved_batch *b, const struct profile_source *src,
		      const struct snapshot *s, const struct profile_request *moment);

/* As worker.h says of the child; while it is at work. */
bool saved_batch_is_at_work(const struct saved_batch *b);
int saved_batch_fd(const struct saved_batch *b);
bool saved_batch_check(struct saved_batch *b);
bool saved_batch_reap(struct saved_batch *b, uint64_t *ret_cpu_ns);
/* At any time. */
uint64_t saved_batch_reader_since_ns(const struct saved_batch *b);

/* After the end, in the order in which they came; false: there are no more, the rest was not made. */
bool saved_batch_result(const struct saved_batch *b, size_t i, struct saved_result *ret);

#endif
