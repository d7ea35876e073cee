/* SPDX-License-Identifier: MIT */
/*
 * step.bpf.h - remembers the result of a walk for a pc, its frame and its row, to avoid a second search.
 *
 * A program allocates at the same places again and again, so most frames of a stack were frames of an earlier
 * one. A search goes through the process's mappings, the file's pages and a megabyte of rows, half a dozen
 * cache lines that are in no cache; this is one line.
 *
 * Direct-mapped, and written by all CPUs without a lock. `check` is the key's hash mixed with the stored
 * values, so an entry that two writers wrote half each matches nobody. The hash is one to one for the pcs of a
 * process, and 64 bits are compared.
 *
 * Entries are never taken out. User space increments step_epoch after it has changed the mappings of a process
 * or taken a file out; the epoch is part of the hash, and a walk keeps the epoch that it began with. Mappings
 * that the kernel was asked for are not remembered: nobody tells when they change.
 */
#ifndef HT_STEP_BPF_H
#define HT_STEP_BPF_H

#define STEP_SHIFT 13
#define STEP_CNT (1 << STEP_SHIFT)

struct ht_step {
	__u64 check;
	__u64 frame; /* never 0 */
	__u64 row; /* a struct ht_row */
	__u64 reserved; /* two entries to a cache line */
};

__u32 step_epoch;
static struct ht_step steps[STEP_CNT];

static __always_inline __u64 step_salt(__u32 tgid, __u32 generation)
{
	__u64 salt = ((__u64)generation << 32 | tgid) * 0x9e3779b97f4a7c15ULL;

	salt = (salt ^ salt >> 32) + *(volatile __u32 *)&step_epoch;
	return salt * 0xd6e8feb86659fd93ULL;
}

/* is_first: the frame of the probe, whose row is not from the table. */
static __always_inline __u64 step_hash(__u64 salt, __u64 pc, bool is_first)
{
	__u64 h = (pc ^ salt ^ (__u64)is_first << 63) * 0x9e3779b97f4a7c15ULL;

	return h ^ h >> 32;
}

static __always_inline __u64 step_mix(__u64 frame, __u64 row)
{
	return frame * 0xd6e8feb86659fd93ULL + row * 0x9e3779b97f4a7c15ULL;
}

static __always_inline struct ht_step *step_of(__u64 hash)
{
	return &steps[hash & (STEP_CNT - 1)];
}

static __always_inline bool step_recall(__u64 hash, __u64 *ret_frame, struct ht_row *ret_row)
{
	const volatile struct ht_step *s = step_of(hash);
	__u64 check = s->check, frame = s->frame, row = s->row;

	if ((check ^ step_mix(frame, row)) != hash)
		return false;
	*ret_frame = frame;
	__builtin_memcpy(ret_row, &row, sizeof(row));
	return true;
}

static __always_inline void step_remember(__u64 hash, __u64 frame, const struct ht_row *row)
{
	volatile struct ht_step *s = step_of(hash);
	__u64 row_bits;

	__builtin_memcpy(&row_bits, row, sizeof(row_bits));
	s->check = hash ^ step_mix(frame, row_bits);
	s->frame = frame;
	s->row = row_bits;
}

#endif
