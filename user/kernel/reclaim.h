/* SPDX-License-Identifier: MIT */
/*
 * reclaim.h - what images that are over left in the maps is taken out, a slice at a time.
 *
 * A cycle walks the maps once, in slices of a few milliseconds. It deletes what belongs to images
 * that are over: outstanding samples, sums and their bins, contexts, scopes and tasks; and what was shared and
 * nothing refers to any more: stacks and label sets. Sums of images that are not over are kept, and
 * with them their stacks. Numbers (of contexts, slots of scopes) are given out again after one
 * more cycle, so that a hit that was under way cannot meet a new owner.
 */
#ifndef HT_KERNEL_RECLAIM_H
#define HT_KERNEL_RECLAIM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "heaptap/abi.h"

struct engine;
struct reclaim;

/* Files that frames are in: bit id & 7 of byte id >> 3. */
struct reclaim_files {
	uint8_t bits[HT_FILES_CAP / 8];
};
static inline bool reclaim_files_have(const struct reclaim_files *f, uint32_t file_id)
{
	return file_id < HT_FILES_CAP && f->bits[file_id >> 3] >> (file_id & 7) & 1;
}

struct reclaim_ops {
	/* Asked for every entry. Once an image is over it stays so. */
	bool (*is_over)(void *ctx, pid_t tgid, uint32_t generation);
	/* What is over now... */
	void (*on_begin)(void *ctx);
	/* ... has nothing in the maps any more. used: files that the stacks that are left name. */
	void (*on_end)(void *ctx, const struct reclaim_files *used);
};

/* Since it was made; what was taken out. */
struct reclaim_counts {
	uint64_t cycles;
	uint64_t samples, sums, bins, contexts, scopes, tasks, stacks, label_sets;
};

/* How long a hit of a probe may take at the most: between its entry and its end, not its call's. */
#define RECLAIM_GRACE_NS 1000000000ULL

int reclaim_new(struct engine *e, const struct reclaim_ops *ops, void *ctx, uint64_t grace_ns,
		struct reclaim **ret);
void reclaim_free(struct reclaim *r);
/* There is something to take out: a cycle begins with the next run, or after the one under way. */
void reclaim_ask(struct reclaim *r);
/*
 * A slice of about budget_ns; nothing when nothing is asked for. readers_since_ns: when the oldest
 * snapshot was taken whose stacks and labels somebody may still look up, UINT64_MAX: there is none.
 * A cycle waits for those that are older than its marks.
 */
int reclaim_run(struct reclaim *r, uint64_t readers_since_ns, uint64_t budget_ns);
const struct reclaim_counts *reclaim_counts(const struct reclaim *r);

#endif
