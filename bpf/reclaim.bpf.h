/* SPDX-License-Identifier: MIT */
/*
 * reclaim.bpf.h - takes stacks and label sets out while probes ask for them. See abi.h, "Reclaiming".
 */
#ifndef HT_RECLAIM_BPF_H
#define HT_RECLAIM_BPF_H

__u32 reclaim_epoch; /* incremented by user space, never HT_EPOCH_DEAD */

/* Note that an entry was asked for: it stays at least for this epoch. false: it is being taken out. */
static __always_inline bool reclaim_keep(__u32 *epoch)
{
	__u32 now = *(volatile __u32 *)&reclaim_epoch, seen = *(volatile __u32 *)epoch;

	if (seen == now)
		return true;
	/* Only a taker changes it to another value than the current epoch. */
	return seen != HT_EPOCH_DEAD &&
	       __sync_val_compare_and_swap(epoch, seen, now) != HT_EPOCH_DEAD;
}

/* Take out an entry that nobody has asked for in this epoch. */
static __always_inline bool reclaim_take(__u32 *epoch)
{
	__u32 now = *(volatile __u32 *)&reclaim_epoch, seen = *(volatile __u32 *)epoch;

	return seen != now && seen != HT_EPOCH_DEAD &&
	       __sync_val_compare_and_swap(epoch, seen, HT_EPOCH_DEAD) == seen;
}

/* 1: the entry has been taken out. */
static __always_inline int reclaim_sweep(__u32 what, __u64 id)
{
	struct ht_labels *labels;
	struct ht_stack *stack;

	if (what == HT_SWEEP_STACK) {
		stack = bpf_map_lookup_elem(&stacks, &id);
		if (stack && reclaim_take(&stack->epoch)) {
			share_give(stack->owner_tgid, stack->owner_generation, HT_SHARED_STACKS);
			return !bpf_map_delete_elem(&stacks, &id);
		}
	} else {
		labels = bpf_map_lookup_elem(&label_sets, &id);
		if (labels && reclaim_take(&labels->epoch)) {
			share_give(labels->owner_tgid, labels->owner_generation, HT_SHARED_LABELS);
			return !bpf_map_delete_elem(&label_sets, &id);
		}
	}
	return 0;
}

#endif
