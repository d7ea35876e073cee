/* SPDX-License-Identifier: MIT */
/*
 * thread_pool.h - the thread pool that a thread belongs to, from its name: worker-12 -> worker-*.
 *
 * Each name is looked at alone and nothing is remembered: the recorder and the reports give a thread the same pool
 * whichever other threads there are.
 */
#ifndef HT_PROFILE_THREAD_POOL_H
#define HT_PROFILE_THREAD_POOL_H

#include "base/std.h"

/*
 * Find the pool of the thread `name`: each number at the end of the name, or alone between two separators (anything but
 * letters and digits; the begin of the name counts as one), becomes '*'. rocksdb:low3 -> rocksdb:low*, pool-2-thread-17
 * -> pool-*-thread-*; h2-main and x264enc stay. Never longer than name. 1: a pool; 0: the name itself; -ENOSPC: cap
 * bytes cannot hold it with its 0.
 */
int thread_pool_name(const char *name, char *ret, size_t cap);
/*
 * The same with pools from the user: globs separated by commas. The pool's name is the first glob that matches; a
 * thread that no glob matches is its own pool.
 */
int thread_pool_name_in(const char *globs, const char *name, char *ret, size_t cap);

#endif
