/* SPDX-License-Identifier: MIT */
/*
 * timed_close.h - probes that are taken out at a given time, whatever the event loop is doing then.
 *
 * A thread of its own for each: it sleeps, notes what the clocks say, and closes the links, which waits
 * for grace periods. So a window in which a process is probed ends in time although the loop reads a large
 * map, and the loop never waits for probes to go.
 */
#ifndef HT_KERNEL_TIMED_CLOSE_H
#define HT_KERNEL_TIMED_CLOSE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct attach_links;
struct timed_close;

struct timed_close_result {
	uint64_t closed_ns; /* CLOCK_MONOTONIC, when the first probe went */
	uint64_t cpu_ns; /* of the process then; 0: it is gone */
};

/*
 * Owns links from here on, whatever it returns: when no thread can be had they are closed before
 * it returns. when_ns: CLOCK_MONOTONIC, in the past: at once. pid: whose CPU time is noted.
 */
int timed_close_start(struct attach_links *links, uint64_t when_ns, pid_t pid,
		      struct timed_close **ret);
/* Are the probes out? */
bool timed_close_is_done(const struct timed_close *c, struct timed_close_result *ret);
/* Waits until they are: at once, if they wait for their time. */
void timed_close_free(struct timed_close *c);

/* CPU time of all threads of a process; -ESRCH: it is gone. */
int process_cpu_clock_ns(pid_t pid, uint64_t *ret_ns);

#endif
