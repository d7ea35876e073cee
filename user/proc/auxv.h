/* SPDX-License-Identifier: MIT */
/* auxv.h - what the kernel told a program at its start. */
#ifndef HT_PROC_AUXV_H
#define HT_PROC_AUXV_H

#include <stdint.h>
#include <sys/types.h>

/* The value of a type (AT_*). -ENOENT: there is none; -errno: it cannot be read. */
int auxv_value(pid_t pid, uint64_t type, uint64_t *ret);

#endif
