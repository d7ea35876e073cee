/* SPDX-License-Identifier: MIT */
/* stack_watch.h - keeps what the stacks of each followed process hold, now and then: see metrics/stack_past.h. */
#ifndef HT_SERVE_STACK_WATCH_H
#define HT_SERVE_STACK_WATCH_H

#include <stdint.h>
#include <sys/types.h>

struct profile_source;

/* A few times a second; seldom there is something to do: then the live map is read. 0 or a negative errno. */
int stack_watch_tick(const struct profile_source *src);
/* The image of a followed process, as the past knows it. */
uint64_t stack_watch_image(const struct profile_source *src, pid_t pid);

#endif
