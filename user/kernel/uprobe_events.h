/* SPDX-License-Identifier: MIT */
/*
 * uprobe_events.h - uprobes that are defined in tracefs.
 *
 * A definition is a site. Any number of perf events can be opened for it, one for each process to be recorded
 * (kernel/shared_probes.h). Without an event it does nothing and costs nothing. Unlike a descriptor, a
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

struct err;
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

int uprobe_events_define(struct uprobe_events *ue, const struct uprobe_site *site,
			 struct uprobe_event *ret);
/* -EBUSY: something is attached to it. */
int uprobe_events_undefine(struct uprobe_events *ue, const struct uprobe_event *event);

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

#endif
