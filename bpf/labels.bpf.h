/* SPDX-License-Identifier: MIT */
/*
 * labels.bpf.h - copies labels as raw bytes: foreign formats, and that of a scope record.
 *
 * Equal label sets are kept once: the key of a set is the hash of its content. User space decodes them
 * (profile/tag_labels.c).
 */
#ifndef HT_LABELS_BPF_H
#define HT_LABELS_BPF_H

/* OpenTelemetry thread context: the part in front of the attributes. */
struct otel_record {
	__u8 trace_id[16];
	__u8 span_id[8];
	__u8 is_valid;
	__u8 flags;
	__u16 attr_bytes;
};
_Static_assert(sizeof(struct otel_record) == 28, "attributes begin at 28");

/* Polar Signals custom labels v1. */
struct custom_set {
	__u64 storage_addr;
	__u64 cnt;
	__u64 cap;
};
struct custom_label {
	__u64 key_len, key_addr;
	__u64 value_len, value_addr;
};

/* Id of the labels in w->labels (byte_cnt bytes), 0: none, or no room. */
__noinline __u64 labels_intern(struct ht_walk *arg)
{
	struct ht_walk *w = arg ? walk_self(arg) : NULL;
	struct ht_labels *known;
	__u64 id, *word;
	__u32 cnt;

	if (!w)
		return 0;
	cnt = w->labels.byte_cnt;
	id = cnt | ((__u64)w->labels.kind << 32);
	for (__u32 i = 0; i < HT_LABEL_BYTES_CAP / 8; i++) {
		if (i * 8 >= cnt)
			break;
		word = (__u64 *)&w->labels.byte[i * 8];
		id = (id ^ *word) * 0x9e3779b97f4a7c15ULL;
		id ^= id >> 32;
	}
	id = id ? id : 1;
	known = bpf_map_lookup_elem(&label_sets, &id);
	if (known && reclaim_keep(&known->epoch))
		return id;
	w->labels.epoch = reclaim_epoch;
	w->labels.owner_tgid = w->tgid;
	w->labels.owner_generation = w->generation;
	if (!share_take(w->tgid, w->generation, HT_SHARED_LABELS))
		return 0;
	if (!bpf_map_update_elem(&label_sets, &id, &w->labels, BPF_NOEXIST))
		return id;
	share_give(w->tgid, w->generation, HT_SHARED_LABELS);
	known = bpf_map_lookup_elem(&label_sets, &id);
	if (known && reclaim_keep(&known->epoch))
		return id;
	stat_inc(HT_STAT_LABELS_FULL);
	return 0;
}

/* Pad with zeros to whole words, which are hashed: byte_cnt need not be a multiple of 8. */
static __always_inline void labels_end(struct ht_walk *w, __u32 byte_cnt)
{
	__u32 at = byte_cnt;

	w->labels.byte_cnt = byte_cnt;
	for (int i = 0; i < 7; i++) {
		if (!(at & 7))
			break;
		w->labels.byte[at & (HT_LABEL_BYTES_CAP - 1)] = 0;
		at++;
	}
}

#define OTEL_ENTRIES_CAP 64
static const __u8 zeros[256];

/*
 * Zero the value of the entry at `at` of w->labels when its key is in the bit mask. Returns the offset of the
 * next entry. Global, so that the verifier looks at it once and not in every round of the loop.
 */
__noinline __u32 label_blank(struct ht_walk *w, __u32 at, __u32 keys)
{
	__u32 key, len;

	if (!w || at > HT_LABEL_BYTES_CAP - 2 - 255)
		return HT_LABEL_BYTES_CAP;
	key = w->labels.byte[at];
	len = w->labels.byte[at + 1];
	if (key < 32 && keys >> key & 1 && len)
		bpf_probe_read_kernel(&w->labels.byte[at + 2], len & 0xff, zeros);
	return at + 2 + len;
}

/* Blank the ids of requests: each would make its own label set and context. */
static __always_inline void labels_blank(struct ht_walk *w, __u32 cnt, __u32 keys)
{
	__u32 at = 0;

	for (int i = 0; i < OTEL_ENTRIES_CAP && at + 2 <= cnt; i++)
		at = label_blank(w, at, keys);
}

/* Turn a record in OpenTelemetry's format into labels, without the values of the keys in the bit mask. */
__noinline __u64 labels_otel(struct ht_walk *w, __u64 addr, __u32 kind, __u32 id_keys)
{
	struct otel_record r;
	__u32 cnt;

	if (!w || !addr)
		return 0;
	if (bpf_probe_read_user(&r, sizeof(r), (const void *)addr)) {
		stat_inc(HT_STAT_TAG_UNREADABLE);
		return 0;
	}
	cnt = r.attr_bytes;
	if (r.is_valid != 1 || !cnt)
		return 0;
	if (cnt > HT_LABEL_BYTES_CAP) {
		stat_inc(HT_STAT_LABELS_FULL);
		return 0;
	}
	if (bpf_probe_read_user(w->labels.byte, cnt, (const void *)(addr + sizeof(r)))) {
		stat_inc(HT_STAT_TAG_UNREADABLE);
		return 0;
	}
	if (id_keys)
		labels_blank(w, cnt, id_keys);
	w->labels.kind = kind;
	labels_end(w, cnt);
	return labels_intern(w);
}

/* Copy a custom label of the target to w->labels, at `at`. Returns the offset for the next one. */
__noinline __u32 label_copy(struct ht_walk *w, __u32 at, __u64 addr)
{
	struct custom_label l;
	__u32 key_len, value_len;

	if (!w || at > HT_LABEL_BYTES_CAP - 2 - HT_CUSTOM_KEY_CAP - HT_CUSTOM_VALUE_CAP)
		goto left_out;
	if (bpf_probe_read_user(&l, sizeof(l), (const void *)addr)) {
		stat_inc(HT_STAT_TAG_UNREADABLE);
		return at;
	}
	if (!l.key_addr) /* a deleted label */
		return at;
	key_len = l.key_len;
	value_len = l.value_len;
	if (!l.key_len || l.key_len > HT_CUSTOM_KEY_CAP || l.value_len > HT_CUSTOM_VALUE_CAP ||
	    key_len > HT_CUSTOM_KEY_CAP || value_len > HT_CUSTOM_VALUE_CAP)
		goto left_out;
	w->labels.byte[at] = key_len;
	w->labels.byte[at + 1] = value_len;
	if (bpf_probe_read_user(&w->labels.byte[at + 2], key_len, (const void *)l.key_addr) ||
	    (value_len && bpf_probe_read_user(&w->labels.byte[at + 2 + key_len], value_len,
					      (const void *)l.value_addr)))
		goto left_out;
	return at + 2 + key_len + value_len;
left_out:
	stat_inc(HT_STAT_LABELS_FULL);
	return at;
}

__noinline __u64 labels_custom(struct ht_walk *w, __u64 addr)
{
	struct custom_set set;
	__u32 at = 0;

	if (!w || !addr)
		return 0;
	if (bpf_probe_read_user(&set, sizeof(set), (const void *)addr)) {
		stat_inc(HT_STAT_TAG_UNREADABLE);
		return 0;
	}
	for (__u32 i = 0; i < HT_CUSTOM_LABELS_CAP; i++) {
		if (i >= set.cnt)
			break;
		at = label_copy(w, at, set.storage_addr + i * sizeof(struct custom_label));
	}
	if (!at || at >= HT_LABEL_BYTES_CAP)
		return 0;
	w->labels.kind = HT_TAG_CUSTOM;
	labels_end(w, at);
	return labels_intern(w);
}

#endif
