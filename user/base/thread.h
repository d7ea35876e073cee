/* SPDX-License-Identifier: MIT */
/* thread.h - threads that only work, and one that is to be quick. */
#ifndef HT_BASE_THREAD_H
#define HT_BASE_THREAD_H

#include <pthread.h>

/* A thread that no signal of the process is delivered to. 0 or -errno. */
int thread_start(pthread_t *ret, void *(*fn)(void *), void *arg);

/*
 * Lets the calling thread take the CPU as soon as it wakes up, for moments: it asks for short slices,
 * which Linux 6.12 and later give at once (sched_setattr(2), sched_runtime of SCHED_OTHER). Children and
 * threads do not inherit it. Elsewhere nothing changes.
 */
void thread_be_prompt(void);

#endif
