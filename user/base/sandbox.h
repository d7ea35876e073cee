/* SPDX-License-Identifier: MIT */
/*
 * sandbox.h - a forked child that reads somebody else's bytes gives up everything that it does not need.
 *
 * For children only: none of this can be undone.
 */
#ifndef HT_BASE_SANDBOX_H
#define HT_BASE_SANDBOX_H

#include "base/std.h"

struct sandbox_limits {
	/* added to what the process has now */
	uint64_t data_bytes; /* private writable memory */
	uint64_t map_bytes; /* address space */
	uint64_t cpu_seconds; /* in total, then SIGXCPU; 0: as in sandbox_begin() */
};

/* Call right after fork(): sets signals, death with the parent, CPU limit, no core file, nothing setuid. keep_fd:
 * the file descriptors that stay open; 0, 1 and 2 become /dev/null unless kept. */
int sandbox_begin(pid_t parent, const int *keep_fds, size_t keep_fd_cnt, uint64_t cpu_seconds);
/* Call when all files are open: another user, no capabilities, bounded memory, and only the system calls that
 * reading memory and writing an answer need. 0 or a negative errno: then do not go on. */
int sandbox_seal(pid_t parent, const struct sandbox_limits *limits);
/*
 * Keep only the capabilities that reading other users' processes and files needs, and that a child needs to give
 * up its own.
 */
int sandbox_keep_reading(void);
/* The same for a child that has yet to open what it reads, as one of sandbox_run_reading(). data_bytes: private writable
 * memory, added to what it has. 0 or a negative errno. */
int sandbox_seal_reading(pid_t parent, uint64_t data_bytes);
/*
 * Run fn(arg) in a child that can read whatever this process can, and write nothing but standard output and error
 * and files that everybody may write: no process is started, none changed. What it prints comes through a pipe, so it
 * knows no terminal. Return its exit status (0 to 123), or
 * -EIO: it crashed or could not be sealed, -ENOSPC: its output could not be written, -ETIMEDOUT: it was killed after
 * wall_s seconds.
 */
int sandbox_run_reading(int (*fn)(void *), void *arg, uint32_t wall_s);
const char *sandbox_reading_error(int err);

/* A child as above that reads beside this process. */
struct sandbox_reading {
	pid_t child; /* 0: none */
	int fd; /* what it writes to standard output, to the end; does not block */
};

/* fn(arg) begins; what it writes to standard error is dropped. wall_s: of CPU time, too. */
int sandbox_begin_reading(int (*fn)(void *), void *arg, uint32_t wall_s,
			  struct sandbox_reading *ret);
/* Its answer was read, or is not wanted. It is left behind if it does not end at once, as it may be stuck in the kernel. */
void sandbox_end_reading(struct sandbox_reading *r);
/* false: this kernel has no filters for system calls (CONFIG_SECCOMP_FILTER). Then a sealed child has another user, no
 * capabilities and its limits, but may still make any system call. Whoever has foreign files read tells the user. */
bool sandbox_is_whole(void);
#define SANDBOX_NOT_WHOLE                                                                     \
	"this kernel cannot filter system calls (no seccomp): a hostile file could make its " \
	"parser do anything that the user nobody may do"

#endif
