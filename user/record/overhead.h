/* SPDX-License-Identifier: MIT */
/*
 * overhead.h - what the probes cost the target.
 *
 * Hits are counted in BPF; what one costs was measured on this machine at start. Their product
 * over the CPU time that the target used meanwhile is the achieved overhead.
 */
#ifndef HT_RECORD_OVERHEAD_H
#define HT_RECORD_OVERHEAD_H

#include <stdint.h>
#include <sys/types.h>

#include "heaptap/abi.h"
#include "kernel/features.h"

struct overhead {
	struct probe_costs costs;
	uint64_t begin_cpu_ns, last_cpu_ns;
};

/* CPU time of the process so far; -ESRCH when it is gone. */
int process_cpu_ns(pid_t pid, uint64_t *ret_ns);
void overhead_begin(struct overhead *o, const struct probe_costs *costs, pid_t pid);
/* Share of the target's CPU time since begin; < 0: nothing to compare with yet. */
double overhead_achieved(struct overhead *o, pid_t pid, const uint64_t stats[HT_STAT_CNT]);

#endif
