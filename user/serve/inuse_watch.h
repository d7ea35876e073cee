/* SPDX-License-Identifier: MIT */
/*
 * inuse_watch.h - keeps what each followed process holds, now and then: see metrics/inuse_past.h. From the sums that
 * BPF keeps of each process, so that it costs one small read.
 */
#ifndef HT_SERVE_INUSE_WATCH_H
#define HT_SERVE_INUSE_WATCH_H

struct inuse_past;
struct profile_source;

/* A few times a second; seldom there is something to do. 0 or a negative errno. */
int inuse_watch_tick(const struct profile_source *src, struct inuse_past *past);

#endif
