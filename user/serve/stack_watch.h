/* SPDX-License-Identifier: MIT */
/* stack_watch.h - records now and then what the stacks of each followed process hold: see metrics/stack_past.h. */
#ifndef HT_SERVE_STACK_WATCH_H
#define HT_SERVE_STACK_WATCH_H

#include <stdint.h>
#include <sys/types.h>

struct profile_source;

/* Call a few times a second; when there is something to do, which is seldom, it reads the live map. Return 0 or a
 * negative errno. */
int stack_watch_tick(const struct profile_source *src);
/* The image of a followed process, in the form that the past uses. */
uint64_t stack_watch_image(const struct profile_source *src, pid_t pid);

#endif
