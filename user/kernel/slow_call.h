/* SPDX-License-Identifier: MIT */
/*
 * slow_call.h - a call into the kernel that may take seconds, while the caller does something else ten times a second.
 *
 * Entering a map in a map of maps waits for a grace period of the whole machine: tens of milliseconds, and seconds while
 * another process takes many probes out. A thread makes the call; the caller is not stopped, and is told to work meanwhile.
 * The thread begins with the first call. Without one the caller makes the call itself.
 *
 * A forked child has no such thread: it must make no calls, and must not free this. The thread takes no lock and no memory,
 * so a child may be forked during a call.
 *
 * Call it from one thread only.
 */
#ifndef HT_KERNEL_SLOW_CALL_H
#define HT_KERNEL_SLOW_CALL_H

#include <stddef.h>

struct slow_caller;

#define SLOW_CALL_ARGS_BYTES 192

/* 0 or -errno. args is a copy, which outlives a call that the caller does not wait for any more. */
typedef int (*slow_call_fn)(void *args);

int slow_caller_new(struct slow_caller **ret);
/* NULL is fine. What a call still needs stays if it was given up. */
void slow_caller_free(struct slow_caller *s);
/* During each call fn is called ten times a second, and must not make such a call. NULL: nobody. */
void slow_caller_while_waiting(struct slow_caller *s, void (*fn)(void *ctx), void *ctx);
/*
 * Returns what fn returns. -ECANCELED: this process is told to end (SIGTERM or SIGINT is blocked and pending), and the call
 * takes long: it goes on by itself, and no other can be made while it does.
 */
int slow_call(struct slow_caller *s, slow_call_fn fn, const void *args, size_t args_bytes);

#endif
