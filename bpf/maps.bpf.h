/* SPDX-License-Identifier: MIT */
/*
 * maps.bpf.h - every map of the object. Sizes marked "user" are set before the object is loaded.
 */
#ifndef HT_MAPS_BPF_H
#define HT_MAPS_BPF_H

#define HT_EEXIST 17
#define HT_EBUSY 16

/* The recorded processes. Checked again at every hit: a probe may fire for other processes. */
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

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, HT_HITS_CAP); /* user: 1 for a single target */
	__type(key, __u32);
	__type(value, struct ht_hits);
} hits SEC(".maps");

/* Where the probes of foreign samplers have their arguments. Equal entries are there once. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HT_SAMPLED_SITES_CAP);
	__type(key, __u32);
	__type(value, struct ht_sampled_site);
} sampled_sites SEC(".maps");

/* Outstanding sampled allocations. Not an LRU: an evicted entry would be a silent lie. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 20); /* user: --max-live */
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct ht_live_key);
	__type(value, struct ht_live);
} live SEC(".maps");

/* Only with ht_sum_images. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HT_IMAGES_CAP);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct ht_image_key);
	__type(value, struct ht_image);
} images SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 18); /* user */
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct ht_total_key);
	__type(value, struct ht_total);
} totals SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 19); /* user */
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct ht_bin_key);
	__type(value, struct ht_bin);
} bins SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HT_CONTEXTS_CAP);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct ht_context);
	__type(value, struct ht_context_value);
} contexts SEC(".maps");

/* Tags. Has only processes with a tag source; see HT_TAGS_CNT. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HT_TAGS_CNT);
	__type(key, __u32);
	__type(value, struct ht_tags);
} tags SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HT_SCOPES_CAP);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct ht_scope_key);
	__type(value, struct ht_scope);
} scopes SEC(".maps");

/* Numbers to give out before fresh ones: user space gives back those of images that are over. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, HT_SCOPES_CAP);
	__uint(value_size, sizeof(__u32));
} free_slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, HT_CONTEXTS_CAP);
	__uint(value_size, sizeof(__u32));
} free_contexts SEC(".maps");

/* Index: slot of a scope; 0 is not used. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HT_SCOPES_CAP);
	__type(key, __u32);
	__type(value, struct ht_scope_sums);
} scope_sums SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HT_INSTANCES_CAP);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct ht_instance_key);
	__type(value, struct ht_instance);
} instances SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HT_LABEL_SETS_CAP);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, struct ht_labels);
} label_sets SEC(".maps");

/* Key: 64-bit hash of the content. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 16); /* user: --max-stacks */
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, struct ht_stack);
} stacks SEC(".maps");

/* All zero: initial value of a thread's entry in `pending` (too big for the BPF stack). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ht_calls);
} empty_calls SEC(".maps");

/* Calls between entry and return. Key: tid. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 16);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct ht_calls);
} pending SEC(".maps");

/* Unwinding: process -> mappings -> file -> page -> rows. */
/* Inner maps give sizes, not types: clang 14 leaves only a forward declaration of the types. */
struct ht_mappings_inner {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct ht_mappings));
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, HT_PROCESSES_CAP);
	__type(key, __u32);
	__array(values, struct ht_mappings_inner);
} mapping_sets SEC(".maps");

/* Key: tgid; value: index of the process's set. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HT_PROCESSES_CAP);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, __u32);
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
