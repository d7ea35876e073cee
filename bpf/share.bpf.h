/* SPDX-License-Identifier: MIT */
/*
 * share.bpf.h - what a process may take of the tables that all share.
 *
 * It may have twice as many entries as are free. So nobody has a fixed part: one process alone has two
 * thirds, several that take all they can have equal parts, and there is always a part left for who comes
 * next, which no process can take. What is refused is counted for the process that it was refused to.
 * (The dynamic thresholds of Choudhury and Hahne, IEEE/ACM Trans. Networking 6, 1998, for shared memory
 * in switches.) Nobody is turned out: an entry that is taken back would be a silent lie.
 */
#ifndef HT_SHARE_BPF_H
#define HT_SHARE_BPF_H

/* Set before the object is loaded: keep the sums of whole processes. */
const volatile bool ht_sum_images;
/* ... and the sizes of the tables; 0: not shared out. Needs ht_sum_images. */
const volatile __u32 ht_share_cap[HT_SHARED_CNT];
/* Entries; user space counts down what it takes out. */
__u32 share_used[HT_SHARED_CNT];

#define SHARE_OF_FREE 2

static __always_inline struct ht_image *image_get(const struct ht_image_key *key)
{
	/* Not on the stack, of which six calls have 512 bytes together. */
	static const struct ht_image zero;
	struct ht_image *image = bpf_map_lookup_elem(&images, key);

	if (image)
		return image;
	bpf_map_update_elem(&images, key, &zero, BPF_NOEXIST);
	image = bpf_map_lookup_elem(&images, key);
	if (!image)
		stat_inc(HT_STAT_IMAGES_FULL);
	return image;
}

/* May it have one more entry? It is counted then, and is to be given back when it is not made. Without
 * room for its image, a process is not held to anything. */
static __always_inline bool share_take(__u32 tgid, __u32 generation, enum ht_shared table)
{
	struct ht_image_key key = { tgid, generation };
	__u32 cap = ht_share_cap[table], used, free_cnt;
	struct ht_image *image;

	if (!cap)
		return true;
	image = image_get(&key);
	used = *(volatile __u32 *)&share_used[table];
	free_cnt = used < cap ? cap - used : 0;
	if (image) {
		__u32 own = *(volatile __u32 *)&image->used[table];

		if (own && own >= SHARE_OF_FREE * free_cnt) {
			__sync_fetch_and_add(&image->refused[table], 1);
			stat_inc(HT_STAT_SHARE_LIVE + table);
			return false;
		}
		__sync_fetch_and_add(&image->used[table], 1);
	}
	__sync_fetch_and_add(&share_used[table], 1);
	return true;
}

static __always_inline void share_give(__u32 tgid, __u32 generation, enum ht_shared table)
{
	struct ht_image_key key = { tgid, generation };
	struct ht_image *image;

	if (!ht_share_cap[table])
		return;
	image = bpf_map_lookup_elem(&images, &key);
	if (image)
		__sync_fetch_and_add(&image->used[table], -1);
	__sync_fetch_and_add(&share_used[table], -1);
}

#endif
