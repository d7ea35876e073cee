/* SPDX-License-Identifier: MIT */
/*
 * snapshot.h - the live map and the cumulative sums at one moment, summed per stack and thread.
 *
 * In-use comes from the live map alone. Estimates are made per sample and then summed, never the
 * other way round.
 */
#ifndef HT_SNAPSHOT_SNAPSHOT_H
#define HT_SNAPSHOT_SNAPSHOT_H

#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "heaptap/abi.h"
#include "model/estimate.h"

struct engine;

struct snapshot_row {
	uint64_t stack_id; /* 0: no stack was kept for these samples */
	pid_t pid;
	uint32_t generation;
	char comm[HT_COMM_BYTES]; /* of the thread; "" = unknown */
	struct estimate inuse;
	uint64_t alloc_samples;
	double alloc_objects, alloc_bytes;
};

struct snapshot {
	VEC(struct snapshot_row) rows;
	struct estimate inuse; /* of all rows */
	uint64_t stats[HT_STAT_CNT];
	uint64_t live_cnt;
	uint64_t taken_ns; /* CLOCK_MONOTONIC, at the end of reading */
};

int snapshot_take(struct engine *e, struct snapshot **ret);
void snapshot_free(struct snapshot *s);

#endif
