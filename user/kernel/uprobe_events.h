/* SPDX-License-Identifier: MIT */
/*
 * uprobe_events.h - uprobes that are defined in tracefs.
 *
 * A definition is a site that any number of perf events can be opened for, one for each process that
 * is to be seen (kernel/shared_probes.h). Without one it does nothing and costs nothing. Unlike a
 * descriptor it outlives who made it: the name tells its owner, and what a killed run has left is
 * removed when the next one opens this.
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

/* Can be opened, as far as can be told without doing it. */
bool uprobe_events_are_there(void);

/*
 * Uses the tracefs that is mounted; without one, a mount that nobody else sees. On failure why says
 * what is missing. `ret_removed_cnt` (may be NULL): definitions of dead runs that were removed.
 */
int uprobe_events_open(struct uprobe_events **ret, size_t *ret_removed_cnt, struct err *why);
/* Removes what is still defined, as far as nothing is attached to it. */
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
 * Whose definition is this? A line of the file uprobe_events, "p:GROUP/NAME PATH:OFFSET ...".
 * -ENOENT: not heaptap's. *ret_name points into line, "GROUP/NAME", name_len characters.
 */
struct uprobe_owner {
	pid_t pid;
	uint64_t start_time_ticks; /* a pid that is used again is another process */
	uint64_t pid_namespace; /* inode: a pid means something only there */
};
int uprobe_event_owner(const char *line, struct uprobe_owner *ret, const char **ret_name,
		       size_t *ret_name_len);

#endif
