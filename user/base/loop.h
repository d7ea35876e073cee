/* SPDX-License-Identifier: MIT */
/*
 * loop.h - one thread that waits for many things: descriptors, signals, a clock. Each has a function that is called when it
 * is ready; none is called while another one runs.
 */
#ifndef HT_BASE_LOOP_H
#define HT_BASE_LOOP_H

#include <stdint.h>

struct loop;

typedef void (*loop_fn)(void *ctx);
typedef void (*loop_fd_fn)(void *ctx, int fd);
typedef void (*loop_signal_fn)(void *ctx, int signal);

int loop_new(struct loop **ret);
/* Closes what it made; signals are as they were. NULL is fine. */
void loop_free(struct loop *l);

/* While fd can be read. It stays the caller's, who takes it out before it is closed. -EPERM: a file. */
int loop_watch(struct loop *l, int fd, loop_fd_fn fn, void *ctx);
/* Once: it is out before fn is called, which may put it in again. For a pidfd, of which another process may have a copy
 * that would keep it in when it is closed here. */
int loop_watch_once(struct loop *l, int fd, loop_fd_fn fn, void *ctx);
/* When the other end of fd is closed; not when there is something to read. */
int loop_watch_end(struct loop *l, int fd, loop_fd_fn fn, void *ctx);
/* Nothing happens when it is not in. */
void loop_unwatch(struct loop *l, int fd);

/* Blocks these signals (up to 0) and calls fn for each. Before threads are made and probes are in, so that none of
 * them ends the process. Once for a loop. SIGPIPE is ignored from here on. */
int loop_watch_signals(struct loop *l, const int *signals, loop_signal_fn fn, void *ctx);
/* Every so often. */
int loop_every(struct loop *l, uint64_t interval_ns, loop_fn fn, void *ctx);

/* Waits until something is ready, at most ms (-1: for ever), and calls for all that is. 0 or a negative errno. */
int loop_turn(struct loop *l, int ms);

#endif
