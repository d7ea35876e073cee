/* SPDX-License-Identifier: MIT */
/*
 * reclaim.h - takes out of the maps what ended images left, a slice at a time.
 *
 * A cycle walks the maps once, in slices of a few milliseconds. It deletes the entries of ended images:
 * outstanding samples, sums and their bins, contexts, scopes and tasks. It also deletes shared entries without
 * references: stacks and label sets. Sums of other images are kept, and with them their stacks. Numbers (of
 * contexts, slots of scopes) are given out again after one more walk, so that a hit under way cannot meet a
 * new owner.
 */
#ifndef HT_KERNEL_RECLAIM_H
#define HT_KERNEL_RECLAIM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "heaptap/abi.h"

struct engine;
struct reclaim;

/* Files that frames refer to: bit id & 7 of byte id >> 3. */
struct reclaim_files {
	uint8_t bits[HT_FILES_CAP / 8];
};
static inline bool reclaim_files_have(const struct reclaim_files *f, uint32_t file_id)
{
	return file_id < HT_FILES_CAP && f->bits[file_id >> 3] >> (file_id & 7) & 1;
}

struct reclaim_ops {
	/* Called for every entry. An image that is over stays so. */
	bool (*is_over)(void *ctx, pid_t tgid, uint32_t generation);
	/* The images that are over now are taken out from here on... */
	void (*on_begin)(void *ctx);
	/* ... and they have nothing in the maps any more but stacks and labels. */
	void (*on_gone)(void *ctx);
	/* A cycle has ended. used: files that the remaining stacks refer to. */
	void (*on_end)(void *ctx, const struct reclaim_files *used);
};

/* What was taken out since reclaim_new(). */
struct reclaim_counts {
	uint64_t cycles;
	uint64_t samples, sums, bins, contexts, scopes, tasks, stacks, label_sets;
};

/* Upper bound for a hit of a probe: from the hit's start to its end, not to the return of the call. */
#define RECLAIM_GRACE_NS 1000000000ULL

int reclaim_new(struct engine *e, const struct reclaim_ops *ops, void *ctx, uint64_t grace_ns,
		struct reclaim **ret);
void reclaim_free(struct reclaim *r);
/* There is something to take out: start a cycle with the next run, or after the one under way. */
void reclaim_ask(struct reclaim *r);
/*
 * Run a slice of about budget_ns of CPU time, or up to four times as long when much is left; nothing when no cycle is asked for. readers_since_ns: time of the oldest
 * snapshot whose stacks and labels may still be looked up; UINT64_MAX: none. A cycle deletes stacks and labels
 * once there are no snapshots that are older than its marks; other entries of ended images do not wait for that.
 */
int reclaim_run(struct reclaim *r, uint64_t readers_since_ns, uint64_t budget_ns);
const struct reclaim_counts *reclaim_counts(const struct reclaim *r);

#endif
