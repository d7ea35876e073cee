/* SPDX-License-Identifier: MIT */
/*
 * uprobe_link.h - the smallest way to put a BPF program on an instruction of a file, for
 * measuring what a probe costs and for asking a kernel what it can do.
 *
 * Nothing here is shared with the profiler: the calibration must not change when the profiler does,
 * and libbpf 1.1 does not know the newer attachments.
 */
#ifndef HEAPTAP_UPROBE_LINK_H
#define HEAPTAP_UPROBE_LINK_H

#include <stdint.h>
#include <sys/types.h>

enum ul_how {
	UL_PERF, /* a perf event of type uprobe, 5.15 and older */
	UL_MULTI, /* uprobe_multi link, 6.6 */
	UL_SESSION, /* uprobe_multi link whose program runs at entry and decides on the return, 6.13 */
};

struct ul_link {
	int prog_fd;
	int link_fd; /* multi, session; -1 otherwise */
	int perf_fd; /* perf; -1 otherwise */
};

/*
 * Attach to file offset @off of @path in process @pid. @counter_fd is an array map with one u64
 * that every hit increments, or -1 for an empty program (return 0 at once). A session's program
 * returns @session_ret at entry: 1 means that the return is not probed. On failure returns a
 * negative errno and *@link needs no closing.
 */
int ul_attach(enum ul_how how, const char *path, uint64_t off, pid_t pid, int counter_fd,
	      int session_ret, struct ul_link *link);
void ul_detach(struct ul_link *link);

/* An array map with one u64; its value. */
int ul_counter_open(void);
int ul_counter_read(int counter_fd, uint64_t *ret);

/*
 * Where the run-time address of something in this process is in its file: path is written to
 * @path. -ENOENT when no file is mapped there.
 */
int ul_locate(const void *addr, char *path, size_t path_cap, uint64_t *ret_off);

#endif
