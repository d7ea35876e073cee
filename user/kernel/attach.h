/* SPDX-License-Identifier: MIT */
/*
 * attach.h - uprobes: from (file, offset, program, cookie) to links.
 *
 * Three variants, the best that the kernel has is taken, and each can be forced:
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

/* Where the kernel says which number perf events of uprobes have, if it knows any. */
#define PERF_UPROBE_TYPE_FILE "/sys/bus/event_source/devices/uprobe/type"

enum attach_mode { ATTACH_AUTO, ATTACH_SESSION, ATTACH_MULTI, ATTACH_PERF };

const char *attach_mode_name(enum attach_mode mode);

struct attach_site {
	uint64_t off; /* in the file */
	uint64_t cookie;
	/* In the file: a 16-bit counter that the kernel keeps up while the probe is there, in each
	 * process that it is for (the semaphore of a USDT); 0: none. */
	uint64_t semaphore_off;
};

enum attach_kind {
	ATTACH_ENTRY,
	ATTACH_RETURN,
	ATTACH_ENTRY_DECIDES, /* entry, and return where the program says so (session mode) */
};

struct attach_request {
	int file_fd; /* the file whose code is probed, opened through the target's view */
	pid_t pid; /* a live thread of the process, or 0 for every process */
	enum attach_mode mode;
	enum attach_kind kind;
	int prog_fd;
	const struct attach_site *sites;
	size_t site_cnt;
	/* Readable when nobody wants it any more: perf events are a call for each site, most of a second
	 * in all, and the rest of them is left out then (-ECANCELED). 0: none. */
	int cancel_fd;
};

/* The file descriptors that keep probes in place. Closing them takes the probes out. */
struct attach_links;
int attach_links_new(struct attach_links **ret);
/* Attach; on failure nothing of this request stays. */
int attach_add(struct attach_links *links, const struct attach_request *req);
size_t attach_links_cnt(const struct attach_links *links);
/* From one to the other, which has all or none of them then. */
int attach_links_move(struct attach_links *from, struct attach_links *to);
/* fd becomes one of them; closed on failure. */
int attach_links_take(struct attach_links *links, int fd);
/* Takes all but the first cnt out, and waits until they are. */
void attach_links_cut(struct attach_links *links, size_t cnt);
/* Waits until they are out. */
void attach_links_free(struct attach_links *links);
/* Does not: for probes that nobody runs into. A process of its own does it. */
void attach_links_free_later(struct attach_links *links);

#endif
