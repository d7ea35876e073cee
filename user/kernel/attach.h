/* SPDX-License-Identifier: MIT */
/*
 * attach.h - uprobes: from (file, offset, program, cookie) to links.
 *
 * Three variants; the best one that the kernel has is used, and each can be forced:
 *   session   uprobe_multi session links; the return is probed only for sampled calls
 *   multi     uprobe_multi links for entry and for return
 *   perf      one perf_event per site and direction, with a BPF cookie
 */
#ifndef HT_KERNEL_ATTACH_H
#define HT_KERNEL_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* File in which the kernel gives the perf event type of uprobes, if it has one. */
#define PERF_UPROBE_TYPE_FILE "/sys/bus/event_source/devices/uprobe/type"

enum attach_mode { ATTACH_AUTO, ATTACH_SESSION, ATTACH_MULTI, ATTACH_PERF };

const char *attach_mode_name(enum attach_mode mode);

struct attach_site {
	uint64_t off; /* in the file */
	uint64_t cookie;
	/* Place in the file of a 16-bit counter (the semaphore of a USDT). The kernel keeps it raised while the
	 * probe is attached, in each process that the probe is for. 0: none. */
	uint64_t semaphore_off;
};

enum attach_kind {
	ATTACH_ENTRY,
	ATTACH_RETURN,
	ATTACH_ENTRY_DECIDES, /* entry; and return where the program asks for it (session mode) */
};

struct attach_request {
	int file_fd; /* the file whose code is probed, opened through the target's view */
	pid_t pid; /* a live thread of the process, or 0 for every process */
	enum attach_mode mode;
	enum attach_kind kind;
	int prog_fd;
	const struct attach_site *sites;
	size_t site_cnt;
	/* Readable when the caller no longer wants the request: perf events take a call for each site, most of
	 * a second in all; the remaining sites are then left out (-ECANCELED). 0: none. */
	int cancel_fd;
};

/* File descriptors that keep probes attached. Closing them detaches the probes. */
struct attach_links;
int attach_links_new(struct attach_links **ret);
/* Attach; on failure nothing of this request remains. */
int attach_add(struct attach_links *links, const struct attach_request *req);
size_t attach_links_cnt(const struct attach_links *links);
/* Move all links to `to`, which then has all or none of them. */
int attach_links_move(struct attach_links *from, struct attach_links *to);
/* Add fd to the links; closed on failure. */
int attach_links_take(struct attach_links *links, int fd);
/* The same, for one process's event of probes that others keep: its close waits for no grace period. */
int attach_links_take_member(struct attach_links *links, int fd);
/* Detach all but the first cnt links, and wait until that is done. */
void attach_links_cut(struct attach_links *links, size_t cnt);
/* Detach all, and wait until that is done. */
void attach_links_free(struct attach_links *links);
/* Detach without waiting, in a process of its own: for probes that nobody runs into. */
void attach_links_free_later(struct attach_links *links);

#endif
