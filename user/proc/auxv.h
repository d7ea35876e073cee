/* SPDX-License-Identifier: MIT */
/* auxv.h - the auxiliary vector, which the kernel gave a program at its start. */
#ifndef HT_PROC_AUXV_H
#define HT_PROC_AUXV_H

#include <stdint.h>
#include <sys/types.h>

/* Return the value of a type (AT_*). -ENOENT: the type is absent; -errno: it cannot be read. */
int auxv_value(pid_t pid, uint64_t type, uint64_t *ret);

#endif
