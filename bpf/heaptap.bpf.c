// SPDX-License-Identifier: MIT
/*
 * heaptap.bpf.c - the programs. Their work is in the *.bpf.h files, in the order of the pipeline: target ->
 * sample -> call (entry to return) -> tags (labels, intern), stack -> live, scope; lifecycle stands beside.
 *
 * The allocation program, or pair of programs, that fits the kernel is loaded:
 *   ht_alloc_session          6.13+: decides at entry whether the return is probed at all
 *   ht_alloc_entry + _return  uprobe_multi (6.6+) or perf_event uprobes (5.15+)
 * Beside the session or multi programs, those for perf events that processes share can be loaded,
 * ht_event_*: a program works with either links or events. An event has a program to itself. So malloc and
 * free, which cause nearly all hits, have programs that need not ask which function they are on: that partly
 * pays for the third trap that a shared event takes for a pair.
 * Programs return 0: in a perf_event uprobe that means "make no perf sample".
 */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "heaptap/abi.h"
#include "heaptap/sum.h"
#include "heaptap/variance.h"

#include "maps.bpf.h"
#include "stats.bpf.h"
#include "target.bpf.h"
#include "threads.bpf.h"
#include "share.bpf.h"
#include "reclaim.bpf.h"
#include "sample.bpf.h"
#include "scope.bpf.h"
#include "peak.bpf.h"
#include "bins.bpf.h"
#include "live.bpf.h"
#include "step.bpf.h"
#include "walk.bpf.h"
#include "mapping.bpf.h"
#include "stack.bpf.h"
#include "labels.bpf.h"
#include "tags.bpf.h"
#include "intern.bpf.h"
#include "sharing.bpf.h"
#include "call.bpf.h"
#include "sampled.bpf.h"
#include "hold.bpf.h"
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
	return call_enter(ctx, SITE_ANY, false) ? 0 : 1; /* 1: no return probe for this call */
}

SEC("kprobe/entry")
int ht_alloc_entry(struct pt_regs *ctx)
{
	call_enter(ctx, SITE_ANY, true);
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
	call_free(ctx, SITE_ANY);
	return 0;
}

SEC("kprobe/event_entry")
int ht_event_entry(struct pt_regs *ctx)
{
	call_enter(ctx, SITE_ANY, true);
	return 0;
}

SEC("kprobe/event_malloc")
int ht_event_malloc(struct pt_regs *ctx)
{
	call_enter(ctx, HT_COOKIE_MALLOC, true);
	return 0;
}

SEC("kprobe/event_return")
int ht_event_return(struct pt_regs *ctx)
{
	call_return(ctx, true);
	return 0;
}

SEC("kprobe/event_free")
int ht_event_free(struct pt_regs *ctx)
{
	call_free(ctx, SITE_ANY);
	return 0;
}

SEC("kprobe/event_free_ptr")
int ht_event_free_ptr(struct pt_regs *ctx)
{
	call_free(ctx, HT_COOKIE_FREE);
	return 0;
}

/* The probes of a sampler in the process itself. */
SEC("kprobe/sampled")
int ht_sampled(struct pt_regs *ctx)
{
	sampled_hit(ctx);
	return 0;
}

SEC("kprobe/tag_ready")
int ht_tag_ready(struct pt_regs *ctx)
{
	tags_ready(ctx);
	return 0;
}

SEC("kprobe/task_exit")
int ht_task_exit(struct pt_regs *ctx)
{
	tags_task_exit(ctx);
	return 0;
}

/* The place where a loader tells debuggers that its list of libraries has changed. */
SEC("kprobe/loaded")
int ht_loaded(struct pt_regs *ctx)
{
	hold_loaded(ctx);
	return 0;
}

/*
 * Add a tag source that user space found: {tgid, generation, struct ht_tag_source in words}; kind 0: the
 * process has ended. User space runs it (BPF_PROG_TEST_RUN); it is never attached. So only one side writes the
 * map.
 */
SEC("raw_tp/heaptap_tag_source")
int ht_add_tag_source(struct bpf_raw_tracepoint_args *ctx)
{
	struct ht_tag_source s = {};
	__u32 tgid = ctx->args[0];
	struct ht_target *t = target_find(tgid);

	s.kind = ctx->args[2];
	if (s.kind == HT_TAG_FREE) {
		tags_drop(tgid);
		return 0;
	}
	if (!t || t->generation != (__u32)ctx->args[1])
		return 1;
	s.tls_mode = ctx->args[3];
	s.tls_off = ctx->args[4];
	s.tls_module = ctx->args[5];
	s.desc_addr = ctx->args[6];
	s.dtv_shift = ctx->args[7];
	s.flags = ctx->args[8];
	return tags_add(tgid, t->generation, &s, false) ? 2 : 0;
}

/*
 * Change the flags of a target: {tgid, flags to set, flags to clear}. User space cannot do it itself while an
 * exec may change the rest of the target. Run as the above. 1: no such target.
 */
SEC("raw_tp/heaptap_mark_target")
int ht_mark_target(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 tgid = ctx->args[0], set = ctx->args[1], clear = ctx->args[2];
	struct ht_target *t = target_find(tgid);

	if (!t)
		return 1;
	if (set)
		__sync_fetch_and_or(&t->flags, set);
	if (clear)
		__sync_fetch_and_and(&t->flags, ~clear);
	return 0;
}

/* {HT_SWEEP_*, id, 0}: take the entry out when nobody has asked for it; {HT_SWEEP_INSTANCE, task, number}: take
 * the task out. Run by user space, never attached. */
SEC("raw_tp/heaptap_sweep")
int ht_sweep(struct bpf_raw_tracepoint_args *ctx)
{
	if (ctx->args[0] == HT_SWEEP_INSTANCE)
		return instance_sweep(ctx->args[1], ctx->args[2]);
	return reclaim_sweep(ctx->args[0], ctx->args[1]);
}

/*
 * Run by user space, as above: {tgid, rate_idx, is_alloc_only}: change a target. A hit that runs meanwhile may see
 * one of the two changed and the other not. 1: not a target.
 */
SEC("raw_tp/heaptap_change")
int ht_change_target(struct bpf_raw_tracepoint_args *ctx)
{
	struct ht_target *t = target_find(ctx->args[0]);

	if (!t)
		return 1;
	t->rate_idx = ctx->args[1];
	t->is_alloc_only = ctx->args[2];
	return 0;
}

/* Run by user space: {tgid, generation, addr} can no longer be followed to its free. 1: not there. */
SEC("raw_tp/heaptap_drop")
int ht_drop_block(struct bpf_raw_tracepoint_args *ctx)
{
	struct ht_live_key key = {};
	struct ht_live old;

	key.tgid = ctx->args[0];
	key.generation = ctx->args[1];
	key.addr = ctx->args[2];
	if (!live_take(&key, &old))
		return 1;
	live_drop(&key, &old);
	return 0;
}

/* Read by user space: a byte for each thread of the process that has one of HT_THREAD_*. */
SEC("iter/task")
int ht_threads(struct bpf_iter__task *ctx)
{
	const struct task_struct *task = ctx->task;
	__u8 flags = 0;

	if (!task)
		return 0;
	if (thread_is_dispatching(task))
		flags |= HT_THREAD_DISPATCHES;
	if (thread_may_not_restart(task))
		flags |= HT_THREAD_MAY_NOT_RESTART;
	if (flags)
		bpf_seq_write(ctx->meta->seq, &flags, sizeof(flags));
	return 0;
}

/* An empty program: measures the cost of a bare hit (calibration, feature probes). */
SEC("kprobe/empty")
int ht_empty(struct pt_regs *ctx)
{
	return 0;
}

SEC("raw_tp/sched_process_exec")
int ht_exec(struct bpf_raw_tracepoint_args *ctx)
{
	lifecycle_exec((pid_t)ctx->args[1]);
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
