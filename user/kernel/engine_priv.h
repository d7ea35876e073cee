/* SPDX-License-Identifier: MIT */
/* engine_priv.h - what engine.c, the other engine_*.c and reclaim.c share. */
#ifndef HT_KERNEL_ENGINE_PRIV_H
#define HT_KERNEL_ENGINE_PRIV_H

#include <bpf/libbpf.h>

#include "heaptap/abi.h" /* the skeleton's variables have types of it */
#include "heaptap/variance.h"

#include "heaptap.skel.h"
#include "base/extents.h"
#include "base/hmap.h"
#include "base/vec.h"
#include "kernel/engine.h"
#include "kernel/map_walk.h"

#define ENGINE_LATE_CNT (ENGINE_SAMPLED + 1) /* the programs that may be loaded late: engine.c */

struct engine_shard {
	int fd;
	struct extents rows;
};

/* Run statistics of the programs on entries, while the kernel measures them. */
struct engine_runs {
	uint64_t cnt, ns;
	uint64_t stack_ns; /* part of ns: the stacks of samples */
};

struct engine {
	struct heaptap_bpf *skel;
	struct ring_buffer *ring;
	struct bpf_link *lifecycle[3];
	int late_fd[ENGINE_LATE_CNT]; /* -1: not loaded yet, or with the others */
	struct engine_ops ops;
	void *ops_ctx;
	enum attach_mode mode;
	pid_t only_tgid;
	VEC(struct ht_sampled_site) sampled_sites; /* index: as in the map */
	uint32_t rate_cnt; /* number of sampling tables, from 0 on */
	bool has_finest_rate;
	struct {
		VEC(uint32_t) unused; /* given back */
		uint32_t next; /* the first index that was never taken */
		uint32_t cap;
		int stats_fd; /* while hits are measured; else -1 */
		struct engine_runs runs; /* at the end of the last measurement */
		struct ht_hits *per_cpu; /* room for the counters of one target; cpu_cnt */
		int cpu_cnt;
	} hits; /* see engine_read.c */
	/* mappings and unwind tables: see engine_tables.c */
	struct slow_caller *slow;
	struct hmap mapping_set_of; /* tgid -> index of its set */
	VEC(int) mapping_set_fds;
	VEC(uint32_t) free_mapping_sets;
	struct extents file_ids;
	struct extents pages;
	VEC(struct engine_shard) shards;
};

int engine_tables_init(struct engine *e);
void engine_tables_release(struct engine *e);

void engine_hits_release(struct engine *e);

/* Negative: not loaded. */
int engine_loaded_fd(const struct engine *e, enum engine_prog prog);

#endif
