// SPDX-License-Identifier: MIT
/*
 * heaptap.bpf.c - the programs. What they do is in the *.bpf.h files, in the order of the
 * pipeline: target -> sample -> call (entry to return) -> stack -> live, and lifecycle beside.
 *
 * Of the allocation programs the one or the pair that fits the kernel is loaded:
 *   ht_alloc_session          6.13+: decides at entry whether the return is probed at all
 *   ht_alloc_entry + _return  uprobe_multi (6.6+) or perf_event uprobes (5.15+)
 * Programs return 0: in a perf_event uprobe that means "make no perf sample".
 */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "heaptap/abi.h"

#include "maps.bpf.h"
#include "stats.bpf.h"
#include "target.bpf.h"
#include "sample.bpf.h"
#include "live.bpf.h"
#include "stack.bpf.h"
#include "call.bpf.h"
#include "lifecycle.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

extern bool bpf_session_is_return(void) __ksym __weak;

SEC("kprobe/session")
int ht_alloc_session(struct pt_regs *ctx)
{
	if (bpf_session_is_return()) {
		call_return(ctx, false);
		return 0;
	}
	return call_enter(ctx, false) ? 0 : 1; /* 1: no return probe for this call */
}

SEC("kprobe/entry")
int ht_alloc_entry(struct pt_regs *ctx)
{
	call_enter(ctx, true);
	return 0;
}

SEC("kprobe/return")
int ht_alloc_return(struct pt_regs *ctx)
{
	call_return(ctx, true);
	return 0;
}

SEC("kprobe/free")
int ht_free(struct pt_regs *ctx)
{
	call_free(ctx);
	return 0;
}

/* An empty program: what a bare hit costs here (calibration, feature probes). */
SEC("kprobe/empty")
int ht_empty(struct pt_regs *ctx)
{
	return 0;
}

SEC("raw_tp/sched_process_exec")
int ht_exec(struct bpf_raw_tracepoint_args *ctx)
{
	lifecycle_exec();
	return 0;
}

SEC("raw_tp/sched_process_exit")
int ht_exit(struct bpf_raw_tracepoint_args *ctx)
{
	lifecycle_exit((struct task_struct *)ctx->args[0]);
	return 0;
}

SEC("raw_tp/sched_process_fork")
int ht_fork(struct bpf_raw_tracepoint_args *ctx)
{
	lifecycle_fork((struct task_struct *)ctx->args[1]);
	return 0;
}
