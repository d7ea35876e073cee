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
struct kernel_features;

struct engine_options {
	enum attach_mode mode; /* resolved: not ATTACH_AUTO */
	uint32_t live_cap; /* outstanding samples */
	uint32_t stack_cap; /* distinct stacks */
	pid_t only_tgid; /* the one process that will ever be a target, or 0: several */
	bool is_verbose; /* libbpf's own messages */
};

struct engine_ops {
	void (*on_event)(void *ctx, const struct ht_event *event);
};

/* On failure why (if not NULL) says what failed and what to do. */
int engine_open(const struct engine_options *opts, const struct kernel_features *features,
		const struct engine_ops *ops, void *ctx, struct engine **ret, char *why,
		size_t why_bytes);
void engine_close(struct engine *e);

int engine_events_fd(const struct engine *e);
int engine_events_drain(struct engine *e);

/* Programs, for attach.h. -1: not loaded in this mode. */
enum engine_prog { ENGINE_ALLOC, ENGINE_ALLOC_RETURN, ENGINE_FREE };
int engine_prog_fd(const struct engine *e, enum engine_prog prog);
enum attach_mode engine_mode(const struct engine *e);

/* Sampling table number idx for rate R; throw_limit as in struct ht_rate. */
int engine_set_rate(struct engine *e, uint32_t idx, uint64_t rate_bytes,
		    uint64_t throw_limit_bytes);

/* Change the limit alone. */
int engine_set_throw_limit(struct engine *e, uint32_t idx, uint64_t throw_limit_bytes);

int engine_put_target(struct engine *e, pid_t tgid, const struct ht_target *t);
/* -ENOENT: not a target. */
int engine_get_target(struct engine *e, pid_t tgid, struct ht_target *ret);
int engine_del_target(struct engine *e, pid_t tgid);

/* Counters summed over CPUs. */
int engine_read_stats(struct engine *e, uint64_t ret[HT_STAT_CNT]);

/* Walk a map in batches; fn returns non-zero to stop with that value. */
typedef int (*engine_live_fn)(void *ctx, const struct ht_live_key *k, const struct ht_live *v);
int engine_each_live(struct engine *e, engine_live_fn fn, void *ctx);
typedef int (*engine_total_fn)(void *ctx, const struct ht_total_key *k, const struct ht_total *v);
int engine_each_total(struct engine *e, engine_total_fn fn, void *ctx);
typedef int (*engine_context_fn)(void *ctx, const struct ht_context *k, uint32_t id);
int engine_each_context(struct engine *e, engine_context_fn fn, void *ctx);
/* -ENOENT: no such stack. */
int engine_get_stack(struct engine *e, uint64_t stack_id, struct ht_stack *ret);

/*
 * Unwind tables. A table is handed over once per file and gets a file id (> 0); mappings of a
 * process are handed over as a set. -ENOSPC when a bound is met.
 */
struct unwind_table;
/* table may be NULL. inner: the allocator's own code; at most HT_INNER_CAP ranges are used. */
int engine_add_file(struct engine *e, const struct unwind_table *table,
		    const struct ht_range *inner, size_t inner_cnt, uint32_t *ret_file_id);
/* Lets the walk find the file by itself when a process maps it anew. */
int engine_add_inode(struct engine *e, uint64_t ino, uint32_t dev, uint32_t file_id,
		     uint64_t vaddr_minus_off);
/* Sorted by start_addr; at most HT_MAPPINGS_CAP are used. They hold for this generation
 * only. The first set of a process takes a grace period (tens of ms), later ones microseconds. */
int engine_put_mappings(struct engine *e, pid_t tgid, uint32_t generation,
			const struct ht_mapping *map, size_t cnt);
int engine_del_mappings(struct engine *e, pid_t tgid);
/* Bytes of kernel memory that rows and pages take. */
uint64_t engine_table_bytes(const struct engine *e);

#endif
