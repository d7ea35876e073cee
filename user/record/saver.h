/* SPDX-License-Identifier: MIT */
/*
 * saver.h - saves profiles of moments that pass: of each followed process at its peak, when its cgroup came near
 * its limit, and before it ended.
 *
 * BPF sums up what each process holds (engine_each_image()), so watching costs one small read in a tick, and no
 * walk of the samples. When there are reasons (saver.c says when), one snapshot is taken for all processes that
 * have one, and a child process makes the files from it, as for serve/profiles.c.
 *
 * The kernel's event reports the end of a process. Its samples are still in the live map then: the saver keeps them
 * there (tracker_pin_image()) until the last profile is made.
 */
#ifndef HT_RECORD_SAVER_H
#define HT_RECORD_SAVER_H

#include "base/std.h"
#include "http/endpoints.h"

struct ht_event;
struct loop;
struct saver;
struct result_source;
struct serve_keep;

struct saver_options {
	char *dir; /* NULL: in memory */
	uint64_t file_max; /* 0: nothing is saved */
	uint64_t bytes_max;
	double limit_percent; /* of a cgroup's limit: from there on it counts as near */
};

/* Refuse all that can be refused: the reason is logged on stderr. */
int saver_open(const struct saver_options *opts, struct saver **ret);
/* Nothing is done before this call. src is copied. The child is watched in the loop. */
void saver_start(struct saver *k, const struct result_source *src, struct loop *loop);
/* Apply other bounds and another limit; the folder, and whether anything is saved, stay. */
void saver_change(struct saver *k, const struct saver_options *opts);
/* NULL is fine here; everywhere below it means that nothing is saved. */
void saver_close(struct saver *k);

/* Call before telling the tracker, which forgets ended processes. */
void saver_on_event(struct saver *k, const struct ht_event *event);
/* Call after a scan: finds out which processes are followed now. */
void saver_sync(struct saver *k);
/* Call a few times a second. */
void saver_tick(struct saver *k);

/* Start what is due. */
int saver_work(struct saver *k);
/* From here on there is no rest between profiles: heaptap ends. */
void saver_hurry(struct saver *k);
/* True while last profiles wait or are being made. */
bool saver_is_busy(const struct saver *k);
/* As profiles_reader_since_ns(). */
uint64_t saver_reader_since_ns(const struct saver *k);

/* Return a descriptor of a saved profile of pid, which the caller closes; -ENOENT: there is none. */
int saver_fetch(const struct saver *k, pid_t pid, enum endpoint_moment at);
/* -ENOMEM; release *ret with saver_view_release(). */
int saver_view(const struct saver *k, struct serve_keep *ret);
void saver_view_release(struct serve_keep *v);

#endif
