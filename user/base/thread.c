/* SPDX-License-Identifier: MIT */
/* thread.c - see thread.h. */
#include "base/thread.h"

#include <signal.h>

int thread_start(pthread_t *ret, void *(*fn)(void *), void *arg)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(ret, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}
