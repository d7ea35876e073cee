/* SPDX-License-Identifier: MIT */
/*
 * snapshot.h - what is in use now: the live map, the totals and the counters, read once.
 *
 * Samples are grouped by {stack, process instance, thread name, scope, labels, task}. Reading a map
 * while its process runs is not atomic: samples that come or go meanwhile may be seen or not, those
 * that stay are seen exactly once. In-use values come from the live map alone, so they are never
 * negative. Peaks, and what a task has allocated, come from sums that BPF keeps.
 */
#ifndef HT_RECORD_SNAPSHOT_H
#define HT_RECORD_SNAPSHOT_H

#include "base/std.h"
#include "base/hmap.h"
#include "base/vec.h"
#include "heaptap/abi.h"
#include "profile/bins.h"
#include "profile/estimate.h"

struct engine;
struct history;
struct resident_pins;
struct tracker;

#define SNAPSHOT_STACK_REST UINT64_MAX

struct snapshot_row {
	uint64_t stack_id; /* 0: these samples have no stack; SNAPSHOT_STACK_REST: several stacks */
	pid_t pid;
	uint32_t generation;
	char comm[HT_COMM_BYTES]; /* of the thread; "" = unknown */
	uint32_t source, node; /* the scope: see struct ht_scope_key */
	uint32_t context_id;
	uint64_t labels_id; /* 0: none */
	uint64_t instance; /* innermost task of the scope; 0: none, or several summed up */
	struct estimate inuse;
	struct estimate alloc; /* not in rows with an instance; has no variance of objects */
	struct estimate peak; /* in use at the peak; likewise */
	struct estimate pinned; /* by what is in use; only its bytes */
	double freed_objects, freed_bytes; /* not in rows with an instance */
	uint32_t bin_first, bin_cnt; /* in bins; not in rows with an instance */
};

struct snapshot_scope {
	struct ht_scope_key key;
	struct ht_scope scope;
	struct ht_scope_sums sums;
};

struct snapshot_instance {
	struct ht_instance_key key;
	struct ht_instance sums;
};

/* The part of a row in one class of age. */
struct snapshot_age {
	uint32_t row; /* index in rows */
	uint64_t oldest_ns;
	struct age_part part;
};

/* What an image held when its process executed another program. */
struct snapshot_held {
	pid_t pid;
	uint32_t generation;
	struct estimate held;
};

struct snapshot {
	VEC(struct snapshot_row) rows;
	struct estimate inuse; /* of all rows */
	uint64_t peak_ns; /* CLOCK_MONOTONIC, of the most in use; 0: it is not known */
	bool has_pinned; /* it is known what blocks pin */
	size_t pinned_cnt, unpinned_cnt; /* blocks of which it is known, and of which it is not */
	VEC(struct snapshot_age) ages; /* by row, then by class; only from snapshot_take_moment() */
	VEC(struct bin_part)
	bins; /* a row's are adjacent, ascending; not from snapshot_take_contexts() */
	VEC(struct snapshot_held) exec_held; /* see snapshot_part_replaced() */
	uint64_t stats[HT_STAT_CNT];
	VEC(struct snapshot_scope) scopes;
	VEC(struct snapshot_instance) instances;
	size_t live_cnt, total_cnt, context_cnt; /* number of entries read from BPF's maps */
	struct hmap scope_by_key; /* struct ht_scope_key -> index in scopes */
	struct hmap scope_by_slot; /* uint32_t -> index in scopes */
	struct hmap instance_by_key; /* struct ht_instance_key -> index in instances */
};

/* t: leave out what waits to be reclaimed (tracker_is_let_go()); NULL: take all. */
int snapshot_take(struct engine *e, const struct tracker *t, struct snapshot **ret);
/* Take all, and add a moment to h. pins: what the blocks pin. Either may be NULL. */
int snapshot_take_moment(struct engine *e, struct history *h, const struct resident_pins *pins,
			 struct snapshot **ret);
/* Append the sampled blocks that a program's image holds now. 0, -EFBIG: too many, -ENOMEM, or why the live map
 * cannot be read. */
int snapshot_list_blocks(struct engine *e, pid_t pid, uint32_t generation,
			 struct resident_pins *to);
/* Only add a moment to h. Reads the live map. */
int snapshot_read_moment(struct engine *e, struct history *h);
/*
 * Like snapshot_take(), without stacks and tasks: one row for each {process instance, thread name,
 * scope, labels}, no instances. Most of its time is the kernel's copying of the live map.
 */
int snapshot_take_contexts(struct engine *e, const struct tracker *t, struct snapshot **ret);
/* What a stack held, known from elsewhere: see snapshot_of(). */
struct snapshot_given {
	uint64_t stack_id, image; /* tgid << 32 | generation */
	uint32_t context_id;
	struct estimate inuse;
};
/* Make a snapshot of what distinct stacks held at another moment, with the present scopes and
 * contexts. It has no allocated values. */
int snapshot_of(struct engine *e, const struct snapshot_given *given, size_t cnt,
		struct snapshot **ret);
/*
 * Images that an exec has replaced hold nothing any more. Move what they held from the rows and
 * from the total in use to exec_held, one entry per image. What they have allocated stays. -ENOMEM.
 */
int snapshot_part_replaced(struct snapshot *s, const struct tracker *t);
void snapshot_free(struct snapshot *s);

/* NULL: not found. */
const struct snapshot_scope *snapshot_scope(const struct snapshot *s,
					    const struct ht_scope_key *key);
/* BPF's sums of a task; NULL: it was forgotten (exited and empty) or not kept. */
const struct snapshot_instance *snapshot_instance(const struct snapshot *s, uint32_t task_slot,
						  uint64_t instance);

#endif
