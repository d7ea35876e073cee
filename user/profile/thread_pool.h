/* SPDX-License-Identifier: MIT */
/*
 * thread_pool.h - the pool that a thread belongs to, from its name: worker-12 -> worker-*.
 *
 * One name at a time, nothing is remembered: the recorder and the reports give a thread the same
 * pool whichever threads there are besides.
 */
#ifndef HT_PROFILE_THREAD_POOL_H
#define HT_PROFILE_THREAD_POOL_H

#include <stddef.h>

/*
 * The pool of the thread `name`: each number at the end of the name, and each that stands alone
 * between two separators (anything but letters and digits; the name's begin counts as one), becomes
 * '*'. rocksdb:low3 -> rocksdb:low*, pool-2-thread-17 -> pool-*-thread-*; h2-main and x264enc stay.
 * Never longer than name. 1 when the result is a pool, 0 when it is the name itself, -ENOSPC when
 * cap bytes do not hold it with its 0.
 */
int thread_pool_name(const char *name, char *ret, size_t cap);
/*
 * The same with pools that were given: globs separated by commas. The pool's name is the first glob
 * that matches; a thread that none matches is its own.
 */
int thread_pool_name_in(const char *globs, const char *name, char *ret, size_t cap);

#endif
