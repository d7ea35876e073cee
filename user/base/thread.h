/* SPDX-License-Identifier: MIT */
/* thread.h - worker threads, and a thread that must react quickly. */
#ifndef HT_BASE_THREAD_H
#define HT_BASE_THREAD_H

#include <pthread.h>

/* Start a thread that receives no signals of the process. 0 or -errno. */
int thread_start(pthread_t *ret, void *(*fn)(void *), void *arg);

/*
 * Let the calling thread take the CPU for moments as soon as it wakes up: it asks for short slices, which Linux 6.12
 * and later give at once (sched_setattr(2), sched_runtime of SCHED_OTHER). Children and threads do not inherit it. On
 * older kernels nothing changes.
 */
void thread_use_short_slices(void);

/*
 * Let the calling process go before all others (nice -20), if it is allowed. Where each session is a scheduling group
 * (autogroup), nice counts among its processes only, and the group has a nice of its own: so again after setsid(). A
 * child inherits it, unless its parent uses short slices.
 */
void thread_take_precedence(void);

#endif
