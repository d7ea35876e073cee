/* SPDX-License-Identifier: MIT */
/*
 * explain/mappings.h - the mappings of a process with what is resident of each, from the text of smaps (proc_pid_smaps(5)).
 */
#ifndef HT_EXPLAIN_MAPPINGS_H
#define HT_EXPLAIN_MAPPINGS_H

#include "base/vec.h"
#include "proc/facts.h"

#define MAPPINGS_CAP (1u << 20)

struct mapping {
	struct proc_map map;
	/* RSS; what of it no file has; what of it another process has as well; huge pages of it */
	uint64_t rss_bytes, anon_bytes, shared_bytes, huge_bytes;
	uint64_t pss_bytes, swap_bytes;
	uint64_t hugetlb_bytes; /* not in RSS */
	uint64_t taken_bytes; /* what of rss_bytes was found to be an allocator's */
	bool is_shared; /* MAP_SHARED */
};

struct mappings {
	VEC(struct mapping) list; /* sorted by address */
	struct proc_maps maps; /* owns the paths */
	size_t last; /* where mappings_find() found something */
};

/* Reads the text piece by piece. Zero-initialised; released by mappings_finish(). */
struct mappings_reader {
	VEC(struct mapping) list;
	VEC(char) heads; /* the lines that maps has too */
	VEC(char) line; /* the beginning of one */
};

/* 0, -ENOMEM, -EINVAL: it is not such a text, -EFBIG. */
int mappings_feed(struct mappings_reader *r, const char *text, size_t bytes);
/* After the last piece, or, with ret NULL, after an error. */
int mappings_finish(struct mappings_reader *r, struct mappings *ret);
void mappings_release(struct mappings *m);

/* The mapping of an address, or NULL. */
struct mapping *mappings_find(struct mappings *m, uint64_t addr);

static inline bool mapping_is_anonymous(const struct mapping *m)
{
	return !m->map.path[0] || m->map.path[0] == '[';
}

#endif
