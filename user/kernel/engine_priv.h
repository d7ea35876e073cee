/* SPDX-License-Identifier: MIT */
/* engine_priv.h - what engine.c, engine_read.c and engine_tables.c share. */
#ifndef HT_KERNEL_ENGINE_PRIV_H
#define HT_KERNEL_ENGINE_PRIV_H

#include <bpf/libbpf.h>

#include "heaptap/abi.h" /* the skeleton's variables have types of it */

#include "heaptap.skel.h"
#include "base/hmap.h"
#include "kernel/engine.h"

struct engine {
	struct heaptap_bpf *skel;
	struct ring_buffer *ring;
	struct bpf_link *lifecycle[3];
	struct engine_ops ops;
	void *ops_ctx;
	enum attach_mode mode;
	pid_t only_tgid;
	struct hmap mapping_fds; /* tgid -> its inner array in maps_of */
	/* unwind tables: bump allocation, see engine_tables.c */
	uint32_t next_file_id;
	uint32_t next_page;
	uint32_t shard_cnt;
	uint32_t shard_rows; /* used in the last shard */
	int shard_fd; /* the last shard */
	struct ht_row *shard; /* the last shard, mapped */
};

void engine_tables_release(struct engine *e);

#endif
