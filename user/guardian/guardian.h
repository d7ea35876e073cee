/* SPDX-License-Identifier: MIT */
/*
 * guardian.h - the process that puts probes into other processes, and takes them out.
 *
 * In a task with a fatal signal pending the kernel cannot take a uprobe out ("failed to unregister, leaking
 * uprobe"): when the attaching task is killed in the middle of an attach or detach, the breakpoint stays in the
 * target for good. So no process that may be killed makes these calls. A small process, the guardian, is
 * started first; it makes them on request and holds every link and event. When main is gone, for whatever
 * reason, it takes everything out in peace and ends.
 *
 * The guardian is a fork of main as it was then (some 100 kB of its own), in its own session. It blocks every
 * signal that can be blocked, is exempt from the OOM killer (where that is allowed), is called heaptap-guard,
 * and has no descriptors but its socket and those it is given. It stays in main's cgroup, because a service
 * manager that ends a unit waits for every process in there. So `kill -9` of the whole cgroup ends it as well;
 * the next heaptap finds what that leaves (track/leftovers.c).
 *
 * When the guardian itself is gone (killed), every request returns -EPIPE, and its probes are out or were left.
 *
 * Call it from one thread only.
 */
#ifndef HT_GUARDIAN_GUARDIAN_H
#define HT_GUARDIAN_GUARDIAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct attach_request;
struct err;
struct guardian;
struct held_links;
struct tap_lost;
struct tap_order;
struct tap_result;

/* Call it before there are threads and much memory. The guardian does not keep descriptors that are open now. */
int guardian_start(struct guardian **ret);
/*
 * From here on nobody waits for it longer than 1.5 s in all (3 s if it was killed before): it goes on by itself then. Called again
 * after other work, it has what is left of that, and 0.3 s at least.
 */
void guardian_begin_end(struct guardian *g);
/* Is there time for another request, which may take long? Not long after SIGTERM or SIGINT. */
bool guardian_has_time(struct guardian *g);
/* Take out everything that is still held; wait until the guardian has ended. NULL is fine. */
void guardian_end(struct guardian *g);
/*
 * While this process waits for the guardian, fn is called ten times a second: the kernel may take seconds for a probe,
 * and somebody may ask meanwhile whether heaptap lives. fn must not use the guardian. NULL: nobody.
 */
void guardian_while_waiting(struct guardian *g, void (*fn)(void *ctx), void *ctx);
/* Has it been killed? */
bool guardian_is_lost(const struct guardian *g);
/* Why a guardian is lost, as a sentence without its end. */
const char *guardian_lost_why(const struct guardian *g);
/* True once after this process was stopped (SIGSTOP, Ctrl-Z) and went on: meanwhile the guardian has taken out all
 * links and taps. */
bool guardian_take_dropped(struct guardian *g);
/* Start a new guardian in its place, which holds nothing. -EBUSY: it lives, and did not answer in time. */
int guardian_restart(struct guardian *g);
pid_t guardian_pid(const struct guardian *g);

/* Readable when there is news. */
int guardian_fd(const struct guardian *g);
/* Handle the news. -EPIPE: the guardian is gone. */
int guardian_work(struct guardian *g);

/*
 * A ticket is a detach in progress that nobody waits for yet. Is it done, and all that began before it? Ticket
 * 0 always is. When the guardian is gone, all tickets are.
 */
bool guardian_is_detached(struct guardian *g, uint64_t ticket);
void guardian_wait_detached(struct guardian *g, uint64_t ticket);
/* Wait for all tickets. */
void guardian_wait_all_detached(struct guardian *g);

/*
 * Attach and detach at once, without waiting: this removes the breakpoints at these sites from every process
 * that has them and is not probed. A forked child has inherited them from a probed process and pays a trap for
 * each; a killed profiler may have left them.
 */
int guardian_clean(struct guardian *g, const struct attach_request *req);
/* Number of these requests under way. */
size_t guardian_cleaning_cnt(struct guardian *g);

/*
 * Probes that processes share (kernel/uprobe_events.h). First open the definitions, see uprobe_events_open().
 * *ret_events: a number, or 0.
 */
int guardian_open_events(struct guardian *g, size_t *ret_removed_cnt, struct err *why);
int guardian_new_events(struct guardian *g, const struct attach_request *reqs, size_t req_cnt,
			uint64_t *ret_events);
/* The links of all their processes must be out. 0 is fine. */
void guardian_free_events(struct guardian *g, uint64_t events);

/*
 * Held links: attached probes, which the guardian holds.
 */

int held_links_new(struct guardian *g, struct held_links **ret);
/* Attach; on failure nothing of this request remains. -EPIPE: the guardian is gone. */
int held_links_add(struct held_links *links, const struct attach_request *req);
/* Add one more process to these events, see shared_probes_add(). */
int held_links_add_to_events(struct held_links *links, uint64_t events, pid_t tid);
/* Put in a tap with its probes (tap/tap.h). why: set on error. */
int held_links_add_tap(struct held_links *links, const struct attach_request *req,
		       const struct tap_order *order, struct tap_result *ret, struct err *why);
/* Set the rate of the taps (0: unchanged), which must be all that is held, and read what they have lost. */
int held_links_set_tap(const struct held_links *links, uint64_t rate_bytes, struct tap_lost *ret);
/* Move all links to `to`, which then has all or none of them. */
int held_links_move(struct held_links *from, struct held_links *to);
/* Detach without waiting: the ticket tells when they are out (guardian_is_detached()). NULL is fine. */
uint64_t held_links_detach(struct held_links *links);
/* Detach and wait until they are out. NULL is fine. */
void held_links_free(struct held_links *links);

#endif
