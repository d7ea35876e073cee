/* SPDX-License-Identifier: MIT */
/* clock.h - clocks in nanoseconds. */
#ifndef HT_BASE_CLOCK_H
#define HT_BASE_CLOCK_H

#include <sys/time.h>

#include "base/std.h"

#define NS_PER_S 1000000000ULL
#define NS_PER_MS 1000000ULL

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* Monotonic, like bpf_ktime_get_ns(): stands still while the machine sleeps. */
static inline uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static inline uint64_t timeval_ns(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * NS_PER_S + (uint64_t)t->tv_usec * 1000;
}

/* CPU time of all threads of a process, including ended threads; -ESRCH: the process is gone. */
static inline int process_cpu_ns(pid_t pid, uint64_t *ret_ns)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &ts))
		return -ESRCH;
	*ret_ns = (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
	return 0;
}

#endif
