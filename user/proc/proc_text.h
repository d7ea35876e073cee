/* SPDX-License-Identifier: MIT */
/* proc_text.h - a file of /proc, whole. */
#ifndef HT_PROC_TEXT_H
#define HT_PROC_TEXT_H

#include <stddef.h>
#include <sys/types.h>

#define PROC_TEXT_BYTES_CAP (4 << 20)

/* /proc/PID/name, of this process for pid 0, as a text to be freed. -ESRCH: there is no such
 * process; -EFBIG: longer than PROC_TEXT_BYTES_CAP. */
int proc_text_read(pid_t pid, const char *name, char **ret);
/* The same of what may have NULs in it. *ret_bytes: with the NUL behind the last. */
int proc_text_read_all(pid_t pid, const char *name, char **ret, size_t *ret_bytes);

#endif
