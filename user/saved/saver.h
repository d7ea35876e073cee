/* SPDX-License-Identifier: MIT */
/*
 * saver.h - profiles of moments that are over: of each followed process at its peak, when its cgroup
 * came near its limit, and before it ended.
 *
 * BPF sums up what each process holds (engine_each_image()), so watching costs one small read in a
 * tick, and no walk of the samples. When there is a reason (rules.h says when), one snapshot is
 * taken for all who have one, and a child process makes the files from it, as for profiles.h.
 *
 * The end of a process is told by the kernel's event. Its samples are then still in the live map: the
 * saver holds them back from being forgotten (tracker_hold()) until its last profile is made.
 */
#ifndef HT_SAVED_SAVER_H
#define HT_SAVED_SAVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "http/endpoints.h"

struct ht_event;
struct saver;
struct profile_source;
struct serve_keep;

struct saver_options {
	char *dir; /* NULL: in memory */
	uint64_t file_max; /* 0: nothing is saved */
	uint64_t bytes_max;
	double limit_percent; /* of a cgroup's limit, from which on it counts as near */
};

/* What can be refused is: says on stderr why. */
int saver_open(const struct saver_options *opts, struct saver **ret);
/* Before this nothing is done. src is copied. */
void saver_start(struct saver *k, const struct profile_source *src);
/* Other bounds and another limit; the folder, and whether anything is kept, stay. */
void saver_change(struct saver *k, const struct saver_options *opts);
/* NULL is fine here and, meaning that nothing is kept, everywhere below. */
void saver_close(struct saver *k);

/* Before the tracker is told: it forgets who has ended. */
void saver_on_event(struct saver *k, const struct ht_event *event);
/* After a scan: who is followed now? */
void saver_sync(struct saver *k);
/* A few times a second. */
void saver_tick(struct saver *k);

/* Start what is due; as profiles_work(). */
int saver_work(struct saver *k, int *ret_fd);
bool saver_reap(struct saver *k);
/* Last profiles wait, or are being made. */
bool saver_is_busy(const struct saver *k);
/* As profiles_reader_since_ns(). */
uint64_t saver_reader_since_ns(const struct saver *k);

/* A descriptor of a saved profile of pid, for the caller to close; -ENOENT: there is none. */
int saver_fetch(const struct saver *k, pid_t pid, enum endpoint_moment at);
/* -ENOMEM; to be released. */
int saver_view(const struct saver *k, struct serve_keep *ret);
void saver_view_release(struct serve_keep *v);

#endif
