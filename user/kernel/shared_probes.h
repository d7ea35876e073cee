/* SPDX-License-Identifier: MIT */
/*
 * shared_probes.h - probes of a file that many processes share, at no cost for other processes.
 *
 * Each site is one definition in tracefs with its program, set once. A process is added by its own perf event
 * on each definition; only added processes have breakpoints in their text. A hit walks one short list of added
 * processes, not one consumer for each of them. track/plan.c tells what that saves.
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
 * Of a request, kind, file_fd, prog_fd and sites are used. The programs must be loaded for perf events, which
 * have no ATTACH_ENTRY_DECIDES. Nothing fires before a process is added.
 */
int shared_probes_new(struct uprobe_events *ue, const struct attach_request *reqs, size_t req_cnt,
		      struct shared_probes **ret);
/*
 * Add every thread of the process that tid belongs to; site by site in the order of the requests. Ends when
 * links are freed - or when the thread tid ends: so name the main thread as long as there is one. On failure
 * nothing is added.
 */
int shared_probes_add(const struct shared_probes *sp, pid_t tid, struct attach_links *links);
/* The links of all its processes must have been freed before. */
void shared_probes_free(struct shared_probes *sp);

#endif
