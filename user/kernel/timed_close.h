/* SPDX-License-Identifier: MIT */
/*
 * timed_close.h - probes that are taken out at a given time, whatever the event loop is doing then.
 *
 * A thread of its own for each: it sleeps, and closes the links, which waits for grace periods. So a
 * window in which a process is probed ends in time although the loop reads a large map, and the loop never
 * waits for probes to go. What is to happen at the edges of the time in between is called from that thread,
 * which waits for nobody else to let it run.
 */
#ifndef HT_KERNEL_TIMED_CLOSE_H
#define HT_KERNEL_TIMED_CLOSE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct attach_links;
struct timed_close;

struct timed_close_edges {
	void (*begin)(void *arg); /* all links are in */
	void (*end)(void *arg); /* they still are */
	void *arg; /* valid until timed_close_free() */
};

/*
 * Owns links from here on, whatever it returns: when no thread can be had they are closed before
 * it returns. They stay for stay_ns from when the thread begins. edges: NULL: none.
 */
int timed_close_start(struct attach_links *links, uint64_t stay_ns,
		      const struct timed_close_edges *edges, struct timed_close **ret);
/* Are the probes out? */
bool timed_close_is_done(const struct timed_close *c);
/* Waits until they are: at once, if they wait for their time. */
void timed_close_free(struct timed_close *c);

/* CPU time of all threads of a process; -ESRCH: it is gone. */
int process_cpu_clock_ns(pid_t pid, uint64_t *ret_ns);

#endif
