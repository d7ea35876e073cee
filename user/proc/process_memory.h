/* SPDX-License-Identifier: MIT */
/*
 * process_memory.h - reads the memory of another process.
 */
#ifndef HT_PROC_PROCESS_MEMORY_H
#define HT_PROC_PROCESS_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Read all of [addr, addr + bytes) or nothing. tid: any live thread of the process. -EFAULT: not all of it is
 * mapped. -ESRCH: the process has ended. -EPERM, -EACCES. The process runs on: the bytes may be half of an
 * update.
 */
int process_memory_read(pid_t tid, uint64_t addr, void *buf, size_t bytes);

#endif
