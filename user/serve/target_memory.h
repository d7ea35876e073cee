/* SPDX-License-Identifier: MIT */
/*
 * target_memory.h - what the kernel says about the memory of the followed processes, beside what
 * they allocated: proportional set size, container, limit and usage of the control group.
 *
 * The proportional set size is dear: the kernel walks the whole address space, milliseconds for each
 * GiB, and the process waits when it maps memory meanwhile. So it is read for one process at a time
 * (target_memory_work()), for each at most every TARGET_PSS_NS, for all together at most half a percent
 * of the time, and only while somebody asks. The rest of what seldom changes is read as seldom, and
 * what processes of one control group share is read once for all of them.
 */
#ifndef HT_SERVE_TARGET_MEMORY_H
#define HT_SERVE_TARGET_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

#define TARGET_PSS_NS (30 * NS_PER_S)

struct serve_process;
struct target_memory;

int target_memory_new(struct target_memory **ret);
void target_memory_free(struct target_memory *tm);

/* Of the process ret->pid that began at start: fills container, pss_bytes, cgroup_*_bytes. What it
 * points to holds until target_memory_sweep(). */
int target_memory_get(struct target_memory *tm, uint64_t start, struct serve_process *ret);
/* Forgets those that were not asked for since the last time. */
void target_memory_sweep(struct target_memory *tm);
/* Has one proportional set size read, when one is due, by a job of the reader: the kernel may take long over it. To
 * be called a few times a second. */
void target_memory_work(struct target_memory *tm);
/* That job (proc/reader.h). */
#define TARGET_MEMORY_JOB 1
int target_memory_run_job(const void *args, size_t args_bytes, int out_fd);

#endif
