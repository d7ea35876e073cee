/* SPDX-License-Identifier: MIT */
/*
 * shared_probes.h - probes of a file that many processes share, and that nobody else pays for.
 *
 * Each site is one definition in tracefs with its program, set once. A process is added by a perf
 * event of its own on each; only the processes that were added have breakpoints in their text.
 * A hit walks one short list of the added processes instead of a consumer for each of them.
 * What that saves is in track/plan.c.
 */
#ifndef HT_KERNEL_SHARED_PROBES_H
#define HT_KERNEL_SHARED_PROBES_H

#include <stddef.h>
#include <sys/types.h>

struct attach_links;
struct attach_request;
struct shared_probes;
struct uprobe_events;

/*
 * Of a request kind, file_fd, prog_fd and sites count; the programs must be loaded for perf events,
 * which have no ATTACH_ENTRY_DECIDES. Nothing fires before a process is added.
 */
int shared_probes_new(struct uprobe_events *ue, const struct attach_request *reqs, size_t req_cnt,
		      struct shared_probes **ret);
/*
 * Every thread of the process that tid, one of its threads, belongs to; site by site in the order
 * of the requests. Ends when links are freed - or when that very thread ends: the main thread, as
 * long as there is one, is the one to name. On failure nothing is added.
 */
int shared_probes_add(const struct shared_probes *sp, pid_t tid, struct attach_links *links);
/* The links of its processes must have been freed. */
void shared_probes_free(struct shared_probes *sp);

#endif
