/* SPDX-License-Identifier: MIT */
/*
 * process_memory.h - bytes of another process's memory.
 */
#ifndef HT_PROC_PROCESS_MEMORY_H
#define HT_PROC_PROCESS_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * All of [addr, addr + bytes) or nothing. tid: any live thread of the process. -EFAULT: not all of
 * it is mapped. -ESRCH: it has ended. -EPERM, -EACCES.
 * The process runs on: what is read may be half of an update.
 */
int process_memory_read(pid_t tid, uint64_t addr, void *buf, size_t bytes);

#endif
