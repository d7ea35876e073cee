/* SPDX-License-Identifier: MIT */
/*
 * share.bpf.h - the share that a process may take of the tables that all processes share.
 *
 * A process may have twice as many entries as are free. So there are no fixed parts: one process alone has two
 * thirds, several that take all they can have equal parts, and a part that no process can take is always left
 * for the next one. A refusal is counted for the process that was refused. (The dynamic thresholds of Choudhury
 * and Hahne, IEEE/ACM Trans. Networking 6, 1998, for shared memory in switches.) No entry is evicted: an entry
 * that is taken back would be a silent lie.
 */
#ifndef HT_SHARE_BPF_H
#define HT_SHARE_BPF_H

/* Set before the object is loaded: keep the sums of whole processes. */
const volatile bool ht_sum_images;
/* ... and the sizes of the tables; 0: without shares. Needs ht_sum_images. */
const volatile __u32 ht_share_cap[HT_SHARED_CNT];
/* Number of entries; user space subtracts those that it takes out. */
__u32 share_used[HT_SHARED_CNT];

#define SHARE_OF_FREE 2

static __always_inline struct ht_image *image_get(const struct ht_image_key *key)
{
	/* Not on the stack: six calls have 512 bytes of it together. */
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

/* May the process have one more entry? If so it is counted; give it back when the entry is not made. A process
 * without room for its image has no limit. */
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
