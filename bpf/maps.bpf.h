/* SPDX-License-Identifier: MIT */
/*
 * maps.bpf.h - every map of the object. Sizes marked "user" are set before the object is loaded.
 */
#ifndef HT_MAPS_BPF_H
#define HT_MAPS_BPF_H

#define HT_EINVAL 22
#define HT_EEXIST 17
#define HT_EBUSY 16

/* Which processes are recorded. Re-checked at every hit: a probe may fire for others. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HT_TARGETS_CAP);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct ht_target);
} targets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HT_RATES_CAP);
	__type(key, __u32);
	__type(value, struct ht_rate);
} rates SEC(".maps");

/* Sampled allocations that are outstanding. Not an LRU: an evicted entry would be a silent lie. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 20); /* user: --max-live */
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct ht_live_key);
	__type(value, struct ht_live);
} live SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 18); /* user */
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct ht_total_key);
	__type(value, struct ht_total);
} totals SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HT_CONTEXTS_CAP);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct ht_context);
	__type(value, __u32);
} contexts SEC(".maps");

/* Key: 64-bit hash of the content. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 16); /* user: --max-stacks */
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, struct ht_stack);
} stacks SEC(".maps");

/* A call between entry and return. */
struct ht_call {
	__u64 sp; /* at entry: the slot of the return address; identifies the call. 0 = unused */
	__u64 ret_addr; /* the true one (a return probe overwrites the slot) */
	__u64 cookie;
	__u64 ptr; /* old block, or address of the out parameter */
	__u32 is_kept; /* drawn: insert `fresh` at the new address */
	__u32 has_old; /* `old` was taken out of `live` at entry */
	struct ht_live fresh;
	struct ht_live old;
};

struct ht_calls {
	__u32 next; /* slot to give up when all are in use */
	__u32 guard_delegates; /* the guarded call leaves the allocation to the one it jumps to */
	/* last call that was not kept but may jump on into another entry point */
	__u64 guard_sp;
	__u64 guard_ret_addr;
	struct ht_call call[HT_PENDING_CAP];
};

/* All zero: what a thread's entry in `pending` starts as (too big for the BPF stack). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ht_calls);
} empty_calls SEC(".maps");

/* Key: tid. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 16);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct ht_calls);
} pending SEC(".maps");

/* Unwinding: process -> mappings -> file -> page -> rows. */
/* Inner maps give sizes, not types: clang 14 leaves only a forward declaration of the latter. */
struct ht_mappings_inner {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct ht_mappings));
};
/* Key: tgid. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__uint(max_entries, HT_PROCESSES_CAP);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__array(values, struct ht_mappings_inner);
} maps_of SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HT_FILES_CAP);
	__type(key, __u32);
	__type(value, struct ht_file);
} files SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HT_FILES_CAP);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct ht_inode);
	__type(value, struct ht_inode_file);
} inodes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HT_PAGES_CAP);
	__type(key, __u32);
	__type(value, struct ht_page);
} pages SEC(".maps");

struct ht_shard {
	struct ht_row row[HT_SHARD_ROWS];
};
struct ht_shard_inner {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct ht_shard));
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, HT_SHARDS_CAP);
	__type(key, __u32);
	__array(values, struct ht_shard_inner);
} rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024);
} events SEC(".maps");

struct ht_counters {
	__u64 cnt[HT_STAT_CNT];
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ht_counters);
} stats SEC(".maps");

#endif
