/* SPDX-License-Identifier: MIT */
/* proc_text.h - reads a file of /proc, whole. */
#ifndef HT_PROC_TEXT_H
#define HT_PROC_TEXT_H

#include <stddef.h>
#include <sys/types.h>

#define PROC_TEXT_BYTES_CAP (4 << 20)

/* Read /proc/PID/name, of this process for pid 0; the caller frees the text. -ESRCH: no such process; -EFBIG:
 * longer than PROC_TEXT_BYTES_CAP. */
int proc_text_read(pid_t pid, const char *name, char **ret);
/* The same for a file that may contain NULs. *ret_bytes includes the NUL after the last byte. */
int proc_text_read_all(pid_t pid, const char *name, char **ret, size_t *ret_bytes);

#endif
