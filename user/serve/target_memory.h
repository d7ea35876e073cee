/* SPDX-License-Identifier: MIT */
/*
 * target_memory.h - what the kernel says about the memory of the followed processes, beside what they allocated:
 * proportional set size, container, limit and usage of the control group.
 *
 * The proportional set size is expensive: the kernel walks the whole address space, milliseconds for each GiB, and
 * the process waits if it maps memory meanwhile. So target_memory_work() reads it for one process at a time, for
 * each at most every TARGET_PSS_NS, for all together at most half a percent of the time, and only while it is asked
 * for. Other values that seldom change are read as seldom, and values that the processes of one control group share
 * are read once for all of them.
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

/* For the process ret->pid that began at start, fill container, cgroup, pss_bytes and cgroup_*_bytes. Pointers are valid
 * until target_memory_sweep(). */
int target_memory_get(struct target_memory *tm, uint64_t start, struct serve_process *ret);
/* Forget the processes that were not asked for since the last call. */
void target_memory_sweep(struct target_memory *tm);
/* Have a job of the reader read one proportional set size, if one is due: the kernel may take long over it. Call a
 * few times a second. */
void target_memory_work(struct target_memory *tm);
/* That job (proc/reader.h). */
#define TARGET_MEMORY_JOB 1
int target_memory_run_job(const void *args, size_t args_bytes, int out_fd);

#endif
