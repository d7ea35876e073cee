/* SPDX-License-Identifier: MIT */
/*
 * keeper.h - profiles of moments that are over: of each followed process at its peak, when its cgroup
 * came near its limit, and before it ended.
 *
 * BPF sums up what each process holds (engine_each_image()), so watching costs one small read in a
 * tick, and no walk of the samples. When there is a reason (keep_rules.h says when), one snapshot is
 * taken for all who have one, and a child process makes the files from it, as for profiles.h.
 *
 * The end of a process is told by the kernel's event. Its samples are then still in the live map: the
 * keeper holds them back from being forgotten (tracker_hold()) until its last profile is made.
 */
#ifndef HT_SAVED_KEEPER_H
#define HT_SAVED_KEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "http/endpoints.h"

struct ht_event;
struct keeper;
struct profile_source;
struct serve_keep;

struct keeper_options {
	char *dir; /* NULL: in memory */
	uint64_t file_max; /* 0: nothing is kept */
	uint64_t bytes_max;
	double limit_percent; /* of a cgroup's limit, from which on it counts as near */
};

/* What can be refused is: says on stderr why. */
int keeper_open(const struct keeper_options *opts, struct keeper **ret);
/* Before this nothing is done. src is copied. */
void keeper_start(struct keeper *k, const struct profile_source *src);
/* Other bounds and another limit; the folder, and whether anything is kept, stay. */
void keeper_change(struct keeper *k, const struct keeper_options *opts);
/* NULL is fine here and, meaning that nothing is kept, everywhere below. */
void keeper_close(struct keeper *k);

/* Before the tracker is told: it forgets who has ended. */
void keeper_on_event(struct keeper *k, const struct ht_event *event);
/* After a scan: who is followed now? */
void keeper_sync(struct keeper *k);
/* A few times a second. */
void keeper_tick(struct keeper *k);

/* Start what is due; as profiles_work(). */
int keeper_work(struct keeper *k, int *ret_fd);
bool keeper_reap(struct keeper *k);
/* Last profiles wait, or are being made. */
bool keeper_is_busy(const struct keeper *k);
/* As profiles_reader_since_ns(). */
uint64_t keeper_reader_since_ns(const struct keeper *k);

/* A descriptor of a kept profile of pid, for the caller to close; -ENOENT: there is none. */
int keeper_fetch(const struct keeper *k, pid_t pid, enum endpoint_moment at);
/* -ENOMEM; to be released. */
int keeper_view(const struct keeper *k, struct serve_keep *ret);
void keeper_view_release(struct serve_keep *v);

#endif
