/* SPDX-License-Identifier: MIT */
/*
 * engine.h - the BPF object: loads it, fills and reads its maps, delivers its events.
 *
 * The only folder that knows the skeleton. Everything here is in terms of the structs of abi.h.
 */
#ifndef HT_KERNEL_ENGINE_H
#define HT_KERNEL_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/hmap.h"
#include "heaptap/abi.h"
#include "kernel/attach.h"

struct engine;
struct err;
struct kernel_features;

/* Few threads and scopes reach one stack; room for this many on average. */
#define ENGINE_TOTALS_PER_STACK 4
#define ENGINE_BINS_PER_STACK 8

struct engine_options {
	enum attach_mode mode; /* resolved: not ATTACH_AUTO */
	uint32_t live_cap; /* outstanding samples */
	uint32_t stack_cap; /* distinct stacks */
	pid_t only_tgid; /* the only process that will ever be a target, or 0: several */
	bool is_tapped; /* the programs of probes are not needed, unless the tap is refused */
	bool has_events; /* also load the programs of shared probes (kernel/uprobe_events.h) */
	bool holds; /* processes may be HT_TARGET_HELD */
	bool keeps_peak; /* for engine_peak_begin(), and for engine_each_image() with only_tgid */
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
/* While a map is entered in another, fn is called ten times a second: the kernel may take seconds. fn must not use the engine.
 * NULL: nobody. */
void engine_while_waiting(struct engine *e, void (*fn)(void *ctx), void *ctx);

int engine_events_fd(const struct engine *e);
int engine_events_drain(struct engine *e);

/* Programs, for attach.h. Up to ENGINE_SAMPLED they may be loaded at their first use, which takes some 0.1 s.
 * Negative: this mode has none, or the error of loading. */
enum engine_prog {
	ENGINE_ALLOC,
	ENGINE_ALLOC_RETURN,
	ENGINE_FREE,
	ENGINE_EVENT_ALLOC, /* for perf events, in any mode */
	ENGINE_EVENT_ALLOC_RETURN,
	ENGINE_EVENT_FREE,
	ENGINE_EVENT_MALLOC, /* for sites whose cookie is HT_COOKIE_MALLOC, ... */
	ENGINE_EVENT_FREE_PTR, /* ... or HT_COOKIE_FREE, of any file and sharing */
	ENGINE_SAMPLED, /* probes of the process's own sampler */
	ENGINE_TAG_READY, /* heaptap:tls_v1 */
	ENGINE_TASK_EXIT, /* heaptap:task_exit */
	ENGINE_LOADED, /* the place where a loader has mapped libraries: only with `holds` */
};
int engine_prog_fd(struct engine *e, enum engine_prog prog);
enum attach_mode engine_mode(const struct engine *e);

/*
 * Bitmask of the sharings whose hits count for a file: bit n is HT_SHARING_*. 0: all, for a file whose probes
 * do not move.
 */
void engine_set_sharings(struct engine *e, uint32_t file_id, uint32_t sharings);
/* Is a call under way whose entry was seen by a probe of this file with this sharing? */
bool engine_has_calls(struct engine *e, uint32_t file_id, uint32_t sharing);

/*
 * Set the finest rate that will ever be used, before any rate is set: errors are summed in units of it, so no
 * table may be 2^HT_VARIANCE_RANGE_LOG2 times coarser. Without this call it is the rate of the first table, and
 * does not change.
 */
void engine_set_finest_rate(struct engine *e, uint64_t rate_bytes);
/*
 * Set sampling table number idx for rate R; throw_limit as in struct ht_rate. -ERANGE: too coarse for the sum
 * of errors.
 */
int engine_set_rate(struct engine *e, uint32_t idx, uint64_t rate_bytes,
		    uint64_t throw_limit_bytes);

/* Change only the rate, of a table that may be in use: each sample stores the probability that it was drawn
 * with. */
int engine_change_rate(struct engine *e, uint32_t idx, uint64_t rate_bytes);

/* Convert a sum in BPF's units to bytes^2. */
double engine_variance(const struct engine *e, const struct ht_variance *v);

/* The index, for HT_COOKIE_SAMPLED(), of these places of arguments. -ENOSPC: too many different ones. */
int engine_sampled_site(struct engine *e, const struct ht_sampled_site *site, uint32_t *ret_idx);

/* Change only the limit, in all tables. */
int engine_set_throw_limit(struct engine *e, uint64_t throw_limit_bytes);

int engine_put_target(struct engine *e, pid_t tgid, const struct ht_target *t);
/* -ENOENT: not a target. */
int engine_get_target(struct engine *e, pid_t tgid, struct ht_target *ret);
int engine_del_target(struct engine *e, pid_t tgid);
/* HT_THREAD_* of all threads of any process, without a stop. -ENOTSUP: not on this kernel (6.1). After another error
 * but -ESRCH, all of them: nobody is harmed because the kernel did not answer. */
int engine_ask_threads(const struct engine *e, pid_t pid, uint32_t *ret_flags);
/* Set and clear flags (HT_TARGET_*); safe when an exec changes the target at the same time. */
int engine_mark_target(struct engine *e, pid_t tgid, uint32_t set, uint32_t clear);

/*
 * Change a running target: its sampling table, and whether allocations go only into the sums. Hits under way
 * may still use the old values. -ENOENT: not a target.
 */
struct engine_change {
	uint32_t rate_idx;
	bool is_alloc_only;
};
int engine_change_target(struct engine *e, pid_t tgid, const struct engine_change *change);
/* The frees of an image can no longer be seen: take its samples out of `live`, and out of the sums that they
 * were charged to. Walks the live map. ret_cnt: number of these samples; or NULL. */
int engine_drop_live(struct engine *e, pid_t tgid, uint32_t generation, size_t *ret_cnt);

/*
 * Take an index for the hits of a target (ht_target.hits_idx). Index 0 is for targets that took none, and is
 * returned when none is left. Counters continue from the last user's values.
 */
uint32_t engine_hits_take(struct engine *e);
void engine_hits_give(struct engine *e, uint32_t idx);
/* Summed over CPUs. */
int engine_read_hits(struct engine *e, uint32_t idx, struct ht_hits *ret);

/*
 * Average time of the programs per hit, without the stacks of samples, since measuring was turned on or since
 * the last answer. While it is on, every hit costs some ns more. -EAGAIN: too few hits so far. -ENOTSUP: the
 * kernel cannot (5.8).
 */
int engine_measure_hits(struct engine *e, bool on);
int engine_hit_ns(struct engine *e, double *ret_ns);

/* Counters summed over CPUs, and hits over all targets. */
int engine_read_stats(struct engine *e, uint64_t ret[HT_STAT_CNT]);

/* Walk a map in batches; fn returns non-zero to stop with that value. */
/* There may be a million samples: several threads call fn, one at a time. */
typedef int (*engine_live_fn)(void *ctx, const struct ht_live_key *k, const struct ht_live *v);
int engine_each_live(struct engine *e, engine_live_fn fn, void *ctx);
typedef int (*engine_total_fn)(void *ctx, const struct ht_total_key *k, const struct ht_total *v);
int engine_each_total(struct engine *e, engine_total_fn fn, void *ctx);
typedef int (*engine_bin_fn)(void *ctx, const struct ht_bin_key *k, const struct ht_bin *v);
int engine_each_bin(struct engine *e, engine_bin_fn fn, void *ctx);
typedef int (*engine_context_fn)(void *ctx, const struct ht_context *k,
				 const struct ht_context_value *v);
int engine_each_context(struct engine *e, engine_context_fn fn, void *ctx);
/* What every process holds, without walking the live map; needs several targets, or keeps_peak. */
typedef int (*engine_image_fn)(void *ctx, const struct ht_image_key *k, const struct ht_image *v);
int engine_each_image(struct engine *e, engine_image_fn fn, void *ctx);
/* -ENOENT: the image has no samples. */
int engine_get_image(struct engine *e, pid_t tgid, uint32_t generation, struct ht_image *ret);
/*
 * The most that all targets held together, with keeps_peak. Read it before the totals, and call engine_peak_end() after
 * them. false: nothing was ever held, or it is not kept.
 */
struct engine_peak {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t number;
	struct hmap over; /* image (tgid << 32 | generation) -> number of the peak when it was over */
};
int engine_peak_begin(struct engine *e, struct engine_peak *p, bool *ret_is_known);
/* What this sum's stack held at that peak. image: of its context. */
struct estimate;
void engine_peak_of(const struct engine *e, const struct engine_peak *p, uint64_t image,
		    const struct ht_total *total, struct estimate *ret);
void engine_peak_end(struct engine_peak *p);
/* -ENOENT: no such stack. */
int engine_get_stack(struct engine *e, uint64_t stack_id, struct ht_stack *ret);

/*
 * Tags: see abi.h. A source that is already known is not added twice; -ESTALE: the process has executed another
 * program meanwhile; -ENOSPC: it has too many sources.
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
/* The same in steps, for a caller that must not be blocked for long. fn may delete the task that it is shown. */
struct engine_walk;
int engine_walk_instances(struct engine *e, engine_instance_fn fn, void *ctx,
			  struct engine_walk **ret);
/* Walk a part; *ret_at_end: it was the last. */
int engine_walk_step(struct engine_walk *w, bool *ret_at_end);
void engine_walk_free(struct engine_walk *w);

/* -ENOENT: no such labels. */
int engine_get_labels(struct engine *e, uint64_t labels_id, struct ht_labels *ret);

/*
 * Unwind tables. A table is handed over once per file and gets a file id (> 0); the mappings of a process are
 * handed over as a set. -ENOSPC when a bound is reached.
 */
struct unwind_table;
/* table may be NULL. inner: see struct ht_file; at most HT_INNER_CAP ranges are used. flags: HT_FILE_*. */
int engine_add_file(struct engine *e, const struct unwind_table *table,
		    const struct ht_range *inner, size_t inner_cnt, uint32_t flags,
		    uint32_t *ret_file_id);
/* How many sampled calls from the file's ranges were left out although no outer call was found. */
uint64_t engine_unproven_cnt(const struct engine *e, uint32_t file_id);
/* Nothing refers to the file any more, and no program is about to use it: its place can be reused. */
void engine_del_file(struct engine *e, uint32_t file_id);
/* Lets the stack walk find the file by itself when a process maps it anew. */
int engine_add_inode(struct engine *e, uint64_t ino, uint32_t dev, uint32_t file_id,
		     uint64_t vaddr_minus_off);
int engine_del_inode(struct engine *e, uint64_t ino, uint32_t dev);
/* map is sorted by start_addr; at most HT_MAPPINGS_CAP are used. jit_file_id: for mappings with HT_MAPPING_JIT
 * that the walk finds by itself; 0: none is known. The mappings are valid for this generation only. Takes
 * microseconds, but a grace period (tens of ms, at times seconds) when there are more processes at once than ever before.
 * So may engine_add_file(). -ECANCELED: this process is told to end meanwhile. */
int engine_put_mappings(struct engine *e, pid_t tgid, uint32_t generation, uint32_t jit_file_id,
			const struct ht_mapping *map, size_t cnt);
int engine_del_mappings(struct engine *e, pid_t tgid);

#endif
