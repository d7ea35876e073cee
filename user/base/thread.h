/* SPDX-License-Identifier: MIT */
/* thread.h - threads that only work. */
#ifndef HT_BASE_THREAD_H
#define HT_BASE_THREAD_H

#include <pthread.h>

/* A thread that no signal of the process is delivered to. 0 or -errno. */
int thread_start(pthread_t *ret, void *(*fn)(void *), void *arg);

#endif
