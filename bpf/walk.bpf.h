/* SPDX-License-Identifier: MIT */
/*
 * walk.bpf.h - the state of a stack walk while it runs.
 *
 * No state outlives the walk. Its scratch space is a slot of an array, owned through a flag: programs are
 * preemptible, so "per CPU" is not exclusive.
 */
#ifndef HT_WALK_BPF_H
#define HT_WALK_BPF_H

/* The thread's tag: what an allocation is for; see tags.bpf.h. */
struct ht_tag {
	__u32 source; /* as in struct ht_scope_key */
	__u32 node;
	__u64 instance;
	__u64 desc_addr;
	__u64 labels_id;
};

#define NESTED_ON_STACK 1
#define NESTED_WAITS 2 /* it waits for its return, and may be off the stack */

#define WALK_WINDOW_CNT 64 /* a power of two */
#define WALK_WINDOW_BYTES (8 * WALK_WINDOW_CNT)

struct ht_walk {
	__u32 is_busy;
	__u32 slot; /* its own index, see walk_self() */
	__u32 tgid;
	__u32 tid;
	__u32 generation;
	__u64 pc, sp, bp;
	/* Start of the walk; begin_pc 0: the walk begins at the probe. */
	__u64 begin_pc, begin_sp;
	__u32 is_exact_pc; /* pc is an instruction, not a return address */
	__u32 is_first;
	/* HT_ROW_* of calls that this call would be a part of; 0: of none (any more) */
	__u32 nest_mask;
	__u32 is_nested; /* NESTED_*: such a call was met */
	/* the caller's file, if its place says that the call is a part of another one; else 0 */
	__u32 inner_file_id;
	__u32 threshold; /* with which the call was drawn */
	__u32 keeps_all; /* every call is recorded, so one that this call is a part of is, too */
	__u64 salt; /* of step_hash() and vma_pages */
	/* the mapping that pc was last found in */
	struct ht_mapping map;
	__u32 is_map_known; /* by user space, which learns of changes */
	__u32 has_new_jit; /* met code made at run time that user space does not know */
	__u32 jit_file_id; /* of the process, see struct ht_mappings */
	/* a piece of the stack, from window_addr up; see walk_read_stack() */
	__u64 window_addr;
	__u64 window[WALK_WINDOW_CNT];
	struct ht_stack stack;
	/* tags.bpf.h, labels.bpf.h, intern.bpf.h */
	struct ht_tag tag;
	__u32 path[HT_SCOPE_DEPTH_CAP];
	__u32 parent; /* of the node that scope_step() met last */
	struct ht_scope scope;
	struct ht_labels labels;
};

#define HT_SCRATCH_TRIES 8
const volatile __u32 ht_scratch_cnt = HT_SCRATCH_TRIES; /* set to that many per CPU */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HT_SCRATCH_TRIES); /* user: ht_scratch_cnt */
	__type(key, __u32);
	__type(value, struct ht_walk);
} scratch SEC(".maps");

static __always_inline struct ht_walk *walk_claim(void)
{
	__u32 slot = bpf_get_smp_processor_id() * HT_SCRATCH_TRIES;

	for (int i = 0; i < HT_SCRATCH_TRIES; i++) {
		__u32 key = (slot + i) % ht_scratch_cnt;
		struct ht_walk *w = bpf_map_lookup_elem(&scratch, &key);

		if (w && __sync_val_compare_and_swap(&w->is_busy, 0, 1) == 0) {
			w->slot = key;
			w->window_addr = ~0ULL;
			w->begin_pc = 0;
			w->inner_file_id = 0;
			return w;
		}
	}
	return NULL;
}

static __always_inline void walk_release(struct ht_walk *w)
{
	__sync_val_compare_and_swap(&w->is_busy, 1, 0);
}

/* The same walk as a pointer to a map's value: 6.1's verifier takes an argument of a global function for plain
 * memory, which it does not let into a map. */
static __always_inline struct ht_walk *walk_self(const struct ht_walk *w)
{
	__u32 key = w->slot;

	return bpf_map_lookup_elem(&scratch, &key);
}

static __always_inline long read_user_u64(__u64 *ret, __u64 addr)
{
	return bpf_probe_read_user(ret, sizeof(*ret), (const void *)addr);
}

#endif
