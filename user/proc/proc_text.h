/* SPDX-License-Identifier: MIT */
/*
 * proc_text.h - opens and reads the files of a process in /proc. Only this folder builds their paths (tools/check-layers).
 *
 * The caller of these waits for the process, where the kernel does: see process.h for what goes through the reader.
 */
#ifndef HT_PROC_TEXT_H
#define HT_PROC_TEXT_H

#include <dirent.h>

#include "base/std.h"

#define PROC_TEXT_BYTES_CAP (4 << 20)

/* Read /proc/PID/name, of this process for pid 0; the caller frees the text. -ESRCH: no such process; -EFBIG:
 * longer than PROC_TEXT_BYTES_CAP. */
int proc_text_read(pid_t pid, const char *name, char **ret);
/* The same for a file that may contain NULs, or be longer. *ret_bytes includes the NUL after the last byte. */
int proc_text_read_all(pid_t pid, const char *name, size_t bytes_cap, char **ret,
		       size_t *ret_bytes);
/* Read where a link there leads; "" on failure. */
void proc_read_link(pid_t pid, const char *name, char *buf, size_t bytes);

#define PROC_ROOT_BYTES 32
/* The path of the root folder that a process has. */
void proc_root_path(pid_t pid, char buf[PROC_ROOT_BYTES]);
/* Open /proc/PID/<fmt>, with O_CLOEXEC; pid 0 is this process. Negative errno. */
int proc_open(pid_t pid, int flags, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The same for reading; NULL and errno. */
FILE *proc_fopen(pid_t pid, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
DIR *proc_opendir(pid_t pid, const char *name);
/* Read the first bytes - 1 of it, and terminate them. Return how many these are, 0 on failure. */
size_t proc_read_start(pid_t pid, char *buf, size_t bytes, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The number behind "KEY:" in the status of a thread; otherwise: there is none. */
long proc_status_number(pid_t tid, const char *key, long otherwise);

#endif
