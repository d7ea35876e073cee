/* SPDX-License-Identifier: MIT */
/*
 * engine.h - the BPF object: loaded, its maps filled and read, its events delivered.
 *
 * The only group that knows the skeleton. Everything here speaks in the structs of abi.h.
 */
#ifndef HT_KERNEL_ENGINE_H
#define HT_KERNEL_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "heaptap/abi.h"
#include "kernel/attach.h"

struct engine;
struct err;
struct kernel_features;

/* A stack is reached from few threads and scopes; room for so many on the average. */
#define ENGINE_TOTALS_PER_STACK 4
#define ENGINE_BINS_PER_STACK 8

struct engine_options {
	enum attach_mode mode; /* resolved: not ATTACH_AUTO */
	uint32_t live_cap; /* outstanding samples */
	uint32_t stack_cap; /* distinct stacks */
	pid_t only_tgid; /* the one process that will ever be a target, or 0: several */
	bool has_events; /* also load the programs of shared probes (kernel/shared_probes.h) */
	bool holds; /* processes may be HT_TARGET_HELD */
	bool sums_images; /* for engine_each_image(); always so without only_tgid */
	bool realloc_keeps_scope; /* else realloc charges the current scope */
	bool is_verbose; /* libbpf's own messages */
};

struct engine_ops {
	void (*on_event)(void *ctx, const struct ht_event *event);
};

/* On failure why (if not NULL) says what failed and what to do. */
int engine_open(const struct engine_options *opts, const struct kernel_features *features,
		const struct engine_ops *ops, void *ctx, struct engine **ret, struct err *why);
void engine_close(struct engine *e);

int engine_events_fd(const struct engine *e);
int engine_events_drain(struct engine *e);

/* Programs, for attach.h. Negative: not loaded in this mode; ENGINE_SAMPLED, which is loaded at the first time: why it
 * cannot be. */
enum engine_prog {
	ENGINE_ALLOC,
	ENGINE_ALLOC_RETURN,
	ENGINE_FREE,
	ENGINE_EVENT_ALLOC, /* for perf events, whatever the mode is */
	ENGINE_EVENT_ALLOC_RETURN,
	ENGINE_EVENT_FREE,
	ENGINE_EVENT_MALLOC, /* for sites whose cookie is HT_COOKIE_MALLOC, ... */
	ENGINE_EVENT_FREE_PTR, /* HT_COOKIE_FREE, of any file and sharing */
	ENGINE_SAMPLED, /* probes of a sampler that the process has itself */
	ENGINE_TAG_READY, /* heaptap:tls_v1 */
	ENGINE_TASK_EXIT, /* heaptap:task_exit */
	ENGINE_LOADED, /* where a loader has mapped libraries: with `holds` only */
};
int engine_prog_fd(struct engine *e, enum engine_prog prog);
enum attach_mode engine_mode(const struct engine *e);

/*
 * Bitmask of the sharings whose probes of a file count: bit n is HT_SHARING_*. 0: all, for a file whose
 * probes do not move.
 */
void engine_set_sharings(struct engine *e, uint32_t file_id, uint32_t sharings);
/* Is a call under way whose entry was seen by a probe of this file of that sharing? */
bool engine_has_calls(struct engine *e, uint32_t file_id, uint32_t sharing);

/*
 * The finest rate that there will be, before any is set: errors are summed up in units of it, so no table may be
 * 2^HT_VARIANCE_RANGE_LOG2 times coarser. Else it is that of the first table that is set, and does not change.
 */
void engine_set_finest_rate(struct engine *e, uint64_t rate_bytes);
/*
 * Sampling table number idx for rate R; throw_limit as in struct ht_rate. -ERANGE: coarser
 * than errors can be summed up.
 */
int engine_set_rate(struct engine *e, uint32_t idx, uint64_t rate_bytes,
		    uint64_t throw_limit_bytes);

/* Change the rate alone, of a table that is in use perhaps: each sample has the probability that it was drawn with. */
int engine_change_rate(struct engine *e, uint32_t idx, uint64_t rate_bytes);

/* What a sum in BPF's units is in bytes^2. */
double engine_variance(const struct engine *e, const struct ht_variance *v);

/* The number that a probe's cookie has for a place of arguments like this, HT_COOKIE_SAMPLED(). -ENOSPC: too
 * many different ones. */
int engine_sampled_site(struct engine *e, const struct ht_sampled_site *site, uint32_t *ret_idx);

/* Change the limit alone, in all tables. */
int engine_set_throw_limit(struct engine *e, uint64_t throw_limit_bytes);

int engine_put_target(struct engine *e, pid_t tgid, const struct ht_target *t);
/* -ENOENT: not a target. */
int engine_get_target(struct engine *e, pid_t tgid, struct ht_target *ret);
int engine_del_target(struct engine *e, pid_t tgid);
/* Set and clear flags (HT_TARGET_*), whatever an exec changes at the same time. */
int engine_mark_target(struct engine *e, pid_t tgid, uint32_t set, uint32_t clear);

/*
 * Change a target that runs: its sampling table; allocations into the sums only. Hits that are
 * under way may still act on what was before. -ENOENT: not a target.
 */
struct engine_change {
	uint32_t rate_idx;
	bool is_alloc_only;
};
int engine_change_target(struct engine *e, pid_t tgid, const struct engine_change *change);
/* The frees of an image can no longer be seen: take its samples out of `live`, and from the sums
 * that they were charged to. Walks the live map. ret_cnt: how many there were; or NULL. */
int engine_drop_live(struct engine *e, pid_t tgid, uint32_t generation, size_t *ret_cnt);

/*
 * Where the hits of a target are counted (ht_target.hits_idx). 0 is for those that asked for none,
 * and for those that come when none is left. Counters go on from the last user's values.
 */
uint32_t engine_hits_take(struct engine *e);
void engine_hits_give(struct engine *e, uint32_t idx);
/* Summed over CPUs. */
int engine_read_hits(struct engine *e, uint32_t idx, struct ht_hits *ret);

/*
 * What the programs themselves took per hit, without the stacks of samples, since measuring was turned on or
 * since the last answer: while it is on, every hit costs some ns more. -EAGAIN: too few hits so far. -ENOTSUP:
 * the kernel cannot (5.8).
 */
int engine_measure_hits(struct engine *e, bool on);
int engine_hit_ns(struct engine *e, double *ret_ns);

/* Counters summed over CPUs, and hits over all targets. */
int engine_read_stats(struct engine *e, uint64_t ret[HT_STAT_CNT]);

/* Walk a map in batches; fn returns non-zero to stop with that value. */
/* Of the samples there may be a million: fn is called by several threads, by one at a time. */
typedef int (*engine_live_fn)(void *ctx, const struct ht_live_key *k, const struct ht_live *v);
int engine_each_live(struct engine *e, engine_live_fn fn, void *ctx);
typedef int (*engine_total_fn)(void *ctx, const struct ht_total_key *k, const struct ht_total *v);
int engine_each_total(struct engine *e, engine_total_fn fn, void *ctx);
typedef int (*engine_bin_fn)(void *ctx, const struct ht_bin_key *k, const struct ht_bin *v);
int engine_each_bin(struct engine *e, engine_bin_fn fn, void *ctx);
typedef int (*engine_context_fn)(void *ctx, const struct ht_context *k,
				 const struct ht_context_value *v);
int engine_each_context(struct engine *e, engine_context_fn fn, void *ctx);
/* What every process holds, without a walk of the live map; needs sums_images. */
typedef int (*engine_image_fn)(void *ctx, const struct ht_image_key *k, const struct ht_image *v);
int engine_each_image(struct engine *e, engine_image_fn fn, void *ctx);
/* -ENOENT: nothing of it was sampled. */
int engine_get_image(struct engine *e, pid_t tgid, uint32_t generation, struct ht_image *ret);
/* -ENOENT: no such stack. */
int engine_get_stack(struct engine *e, uint64_t stack_id, struct ht_stack *ret);

/*
 * Tags: see abi.h. A source that is known already is not added twice; -ESTALE: the process has
 * executed another program meanwhile; -ENOSPC: it has too many sources.
 */
int engine_add_tag_source(struct engine *e, pid_t tgid, uint32_t generation,
			  const struct ht_tag_source *source);
void engine_del_tags(struct engine *e, pid_t tgid);
typedef int (*engine_scope_fn)(void *ctx, const struct ht_scope_key *k, const struct ht_scope *v);
int engine_each_scope(struct engine *e, engine_scope_fn fn, void *ctx);
/* -ENOENT: no such slot. */
int engine_get_scope_sums(struct engine *e, uint32_t slot, struct ht_scope_sums *ret);
typedef int (*engine_instance_fn)(void *ctx, const struct ht_instance_key *k,
				  const struct ht_instance *v);
int engine_each_instance(struct engine *e, engine_instance_fn fn, void *ctx);
int engine_del_instance(struct engine *e, const struct ht_instance_key *k);
/* The same in steps, for who must not be kept long. fn may delete the task that it is shown. */
struct engine_walk;
int engine_walk_instances(struct engine *e, engine_instance_fn fn, void *ctx,
			  struct engine_walk **ret);
/* Some of them; *ret_at_end: these were the last. */
int engine_walk_step(struct engine_walk *w, bool *ret_at_end);
void engine_walk_free(struct engine_walk *w);

/* -ENOENT: no such labels. */
int engine_get_labels(struct engine *e, uint64_t labels_id, struct ht_labels *ret);

/*
 * Unwind tables. A table is handed over once per file and gets a file id (> 0); mappings of a
 * process are handed over as a set. -ENOSPC when a bound is met.
 */
struct unwind_table;
/* table may be NULL. inner: the allocator's own code; at most HT_INNER_CAP ranges are used. */
int engine_add_file(struct engine *e, const struct unwind_table *table,
		    const struct ht_range *inner, size_t inner_cnt, uint32_t *ret_file_id);
/* Nothing leads to the file any more, and nobody is on the way to it: its place is used again. */
void engine_del_file(struct engine *e, uint32_t file_id);
/* Lets the walk find the file by itself when a process maps it anew. */
int engine_add_inode(struct engine *e, uint64_t ino, uint32_t dev, uint32_t file_id,
		     uint64_t vaddr_minus_off);
int engine_del_inode(struct engine *e, uint64_t ino, uint32_t dev);
/* Sorted by start_addr; at most HT_MAPPINGS_CAP are used. jit_file_id: of mappings with HT_MAPPING_JIT
 * that the walk finds by itself; 0: none is known. They hold for this generation
 * only. More processes at once than ever before take a grace period (tens of ms), else it is
 * microseconds. */
int engine_put_mappings(struct engine *e, pid_t tgid, uint32_t generation, uint32_t jit_file_id,
			const struct ht_mapping *map, size_t cnt);
int engine_del_mappings(struct engine *e, pid_t tgid);

#endif
