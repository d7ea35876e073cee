/* SPDX-License-Identifier: MIT */
/*
 * guardian.h - the process that puts probes into other processes, and takes them out.
 *
 * In a task with a fatal signal pending the kernel cannot take a uprobe out ("failed to unregister,
 * leaking uprobe"): the breakpoint stays in the target for good, when the one who attaches is killed in
 * the middle of an attach or detach. So nobody who may be killed makes these calls. A small process
 * is started first, does them on request, and holds every link and event; when main is gone, however it
 * ended, it takes everything out in peace and ends.
 *
 * It is a fork of main as it was then (some 100 kB of its own), in a session of its own, blocks every
 * signal that can be blocked, is not chosen when memory runs out (where that is allowed), is called
 * heaptap-guard, and has no descriptors but its socket and what it is given. It stays in main's cgroup: a
 * service manager that ends a unit waits for all that is in there. So `kill -9` of the whole cgroup
 * takes it along: what that leaves is found by the next heaptap (track/leftovers.h).
 *
 * When it is gone itself (killed), every request says -EPIPE, and what it held is out, or was left.
 *
 * For one thread.
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

/* Before there are threads and much memory. Descriptors that are open then are not its. */
int guardian_start(struct guardian **ret);
/* What it still holds goes; waits until it has ended. NULL is fine. */
void guardian_end(struct guardian *g);
/* Has it been killed? */
bool guardian_is_lost(const struct guardian *g);
/* A new process in its place, that holds nothing. */
int guardian_restart(struct guardian *g);
pid_t guardian_pid(const struct guardian *g);

/* Readable when there is news. */
int guardian_fd(const struct guardian *g);
/* Takes the news. -EPIPE: it is gone. */
int guardian_work(struct guardian *g);

/*
 * A ticket is a detaching that nobody waits for yet. Is it done, with all that were begun before? 0 is.
 * So is everything when the guardian is gone.
 */
bool guardian_is_out(struct guardian *g, uint64_t ticket);
void guardian_wait_out(struct guardian *g, uint64_t ticket);
/* For everything that is under way. */
void guardian_wait_all_out(struct guardian *g);

/*
 * Attaches, and detaches at once, while nobody waits: that takes the breakpoints at these sites out of
 * everyone who has them and whom nobody probes. A forked child has inherited them from a
 * probed process, and pays a trap for each; a killed profiler may have left them.
 */
int guardian_clean(struct guardian *g, const struct attach_request *req);
/* How much of that is under way. */
size_t guardian_cleaning_cnt(struct guardian *g);

/*
 * Probes that processes share (kernel/shared_probes.h). First the definitions are opened, see
 * uprobe_events_open(). Events: a number, or 0.
 */
int guardian_open_events(struct guardian *g, size_t *ret_removed_cnt, struct err *why);
int guardian_new_events(struct guardian *g, const struct attach_request *reqs, size_t req_cnt,
			uint64_t *ret_events);
/* The links of their processes must be out. 0 is fine. */
void guardian_free_events(struct guardian *g, uint64_t events);

#endif
