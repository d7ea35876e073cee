/* SPDX-License-Identifier: MIT */
/*
 * loop.h - one thread that waits for many things: descriptors, signals, a clock. Each has a function that is called
 * when it is ready; no function is called while another one runs.
 */
#ifndef HT_BASE_LOOP_H
#define HT_BASE_LOOP_H

#include "base/std.h"

struct loop;

typedef void (*loop_fn)(void *ctx);
typedef void (*loop_fd_fn)(void *ctx, int fd);
typedef void (*loop_signal_fn)(void *ctx, int signal);

int loop_new(struct loop **ret);
/* Close what the loop opened, and restore the signal mask. NULL is fine. */
void loop_free(struct loop *l);

/* Call fn while fd can be read. fd stays the caller's: unwatch it before closing it. -EPERM: fd is a file. */
int loop_watch(struct loop *l, int fd, loop_fd_fn fn, void *ctx);
/* The same once: fd is unwatched before fn is called, which may watch it again. For a pidfd: if another process has
 * a copy, closing it here would not unwatch it. */
int loop_watch_once(struct loop *l, int fd, loop_fd_fn fn, void *ctx);
/* Call fn when the other end of fd is closed, but not when there is something to read. */
int loop_watch_end(struct loop *l, int fd, loop_fd_fn fn, void *ctx);
/* Does nothing if fd is not watched. */
void loop_unwatch(struct loop *l, int fd);

/* Block these signals (the list ends with 0) and call fn for each. Call it before threads are made and probes are
 * attached, so that no signal ends the process; once for a loop. SIGPIPE is ignored from here on. */
int loop_watch_signals(struct loop *l, const int *signals, loop_signal_fn fn, void *ctx);
/* Call fn at this interval. */
int loop_every(struct loop *l, uint64_t interval_ns, loop_fn fn, void *ctx);

/* Is SIGTERM or SIGINT pending, which the next turn reads? Who waits for something else ends that early. */
bool loop_is_told_to_end(void);

/* Wait until something is ready, at most ms (-1: for ever), and call the function of each. 0 or a negative errno. */
int loop_turn(struct loop *l, int ms);

#endif
