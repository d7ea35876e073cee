/* SPDX-License-Identifier: MIT */
/*
 * explain_priv.h - what explain.c shows to its tests: a running process, read by /proc/PID/smaps, pagemap and mem, with pauses.
 *
 * Each reading holds a lock for which the process's mmap() and munmap() wait, so it is cut into short ones: their
 * 99th percentile stays below 1 ms. process_vm_readv() is not used for anonymous memory: it takes pages like a writer, so
 * a process that shares them with a forked one gets a copy of each.
 */
#ifndef HT_EXPLAIN_EXPLAIN_PRIV_H
#define HT_EXPLAIN_EXPLAIN_PRIV_H

#include "base/std.h"
#include "explain/memory.h"
#include "explain/types.h"

struct target;

/* tid: any live thread of the process. maps: as read by target_read_mappings(); stays the caller's. -ESRCH, -EACCES, -EPERM. */
int target_open(pid_t tid, struct mappings *maps, uint64_t deadline_ns, struct target **ret);
void target_close(struct target *t);
struct memory *target_memory(struct target *t);
/* false: it has ended, or has executed another program, so what was read of late is nothing. */
bool target_is_there(struct target *t);

/* -ESRCH, -EACCES; -ETIMEDOUT: it took until the deadline. */
int target_read_mappings(pid_t tid, uint64_t deadline_ns, struct mappings *ret);

/* struct type_files of a process: one file is open at a time. */

struct open_file;

/* tid: any live thread of the process. A file whose file system may wait for ever (FUSE, NFS) is not opened. */
int type_files_open(pid_t tid, struct open_file **ret_open, struct type_files *ret);
void type_files_close(struct open_file *f);

#endif
