/* SPDX-License-Identifier: MIT */
/*
 * uprobe_events.h - uprobes that are defined in tracefs.
 *
 * A definition is a site. Any number of perf events can be opened for it, one for each process to be recorded
 * (shared_probes_add()). Without an event it does nothing and costs nothing. Unlike a descriptor, a
 * definition outlives its maker. So its name tells the owner, and the next uprobe_events_open() removes what a
 * killed run has left.
 */
#ifndef HT_KERNEL_UPROBE_EVENTS_H
#define HT_KERNEL_UPROBE_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define UPROBE_EVENT_NAME_BYTES 64

struct attach_links;
struct attach_request;
struct err;
struct shared_probes;
struct uprobe_events;

/* Can uprobe events be opened? As far as can be told without opening them. */
bool uprobe_events_are_there(void);

/*
 * Use the mounted tracefs; without one, a private mount. On failure why says what is missing. `ret_removed_cnt`
 * (may be NULL): number of definitions of dead runs that were removed.
 */
int uprobe_events_open(struct uprobe_events **ret, size_t *ret_removed_cnt, struct err *why);
/* Remove all remaining definitions that nothing is attached to. */
void uprobe_events_close(struct uprobe_events *ue);

struct uprobe_site {
	int file_fd;
	uint64_t off;
	uint64_t semaphore_off; /* 0: none */
	bool is_return;
};

struct uprobe_event {
	char name[UPROBE_EVENT_NAME_BYTES]; /* without the group */
	uint64_t id; /* `config` of a PERF_TYPE_TRACEPOINT event */
};

/*
 * Find the owner of a definition. line: of the file uprobe_events, "p:GROUP/NAME PATH:OFFSET ...". -ENOENT: not
 * heaptap's. *ret_name points into line, "GROUP/NAME", name_len characters.
 */
struct uprobe_owner {
	pid_t pid;
	uint64_t start_time_ticks; /* tells a reused pid */
	uint64_t pid_namespace; /* inode: a pid has a meaning only there */
};
int uprobe_event_owner(const char *line, struct uprobe_owner *ret, const char **ret_name,
		       size_t *ret_name_len);

/*
 * Probes of a file that many processes share, at no cost for other processes.
 *
 * Each site is one definition in tracefs with its program, set once. A process is added by its own perf event
 * on each definition; only added processes have breakpoints in their text. A hit walks one short list of added
 * processes, not one consumer for each of them. track/plan.c tells what that saves.
 */

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
