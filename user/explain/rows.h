/* SPDX-License-Identifier: MIT */
/*
 * explain/rows.h - all resident memory of a process, by what it is. Each resident page is in one row, so the rows add up
 * to RSS. What changed between the readings is a row of its own, and may be negative.
 */
#ifndef HT_EXPLAIN_ROWS_H
#define HT_EXPLAIN_ROWS_H

#include "base/std.h"
#include "explain/glibc.h"
#include "explain/jemalloc.h"
#include "explain/memory.h"

enum row_kind {
	ROW_LIVE,
	ROW_TRIM,
	ROW_PINNED,
	ROW_KEPT,
	ROW_OWN,
	ROW_UNKNOWN,
	ROW_JE_LIVE,
	ROW_JE_PINNED,
	ROW_JE_DIRTY,
	ROW_JE_OWN,
	ROW_PY_LIVE,
	ROW_PY_FREE,
	ROW_JAVA,
	ROW_GO_LIVE,
	ROW_GO_FREE,
	ROW_V8,
	ROW_BRK,
	ROW_ANONYMOUS,
	ROW_NAMED, /* by prctl(PR_SET_VMA_ANON_NAME) */
	ROW_CODE,
	ROW_STACKS,
	ROW_SHARED,
	ROW_FILES,
	ROW_DATA,
	ROW_KERNEL,
	ROW_MOVED,
	ROW_CNT,
};

#define ROW_PARTS 3

struct row_part {
	const char *name; /* "": it has none */
	uint64_t bytes;
};

struct row {
	enum row_kind kind;
	int64_t bytes;
	uint64_t part_cnt; /* files, names, or mappings */
	struct row_part parts[ROW_PARTS]; /* the largest ones */
};

struct rows {
	struct row list[ROW_CNT]; /* largest first */
	uint64_t rss_bytes, pss_bytes;
	uint64_t swap_bytes, hugetlb_bytes; /* not in RSS */
	uint64_t forked_bytes; /* anonymous, and in another process as well */
	uint64_t huge_bytes, huge_zero_bytes; /* in huge pages; about so much of that is zeros */
	uint64_t stack_cnt; /* of threads */
	uint64_t dead_stack_cnt, dead_stack_bytes; /* of these, of threads that have ended */
};

/* Of CPython's pymalloc (pymalloc.c): resident bytes of blocks in use, and of the rest of their pools; all blocks. */
struct python_pools {
	uint64_t live, free;
	uint64_t live_cnt, pool_cnt;
};

/* Find its pools, and take them from the mappings. */
void python_pools_read(struct memory *m, struct mappings *maps, struct python_pools *ret);

/* Of runtimes that have a heap of their own (runtimes.c). resident, live and free: resident bytes, taken from the mappings. */

struct java_heap {
	uint64_t addr; /* 0: it has its own kind of mapping */
	uint64_t reserved, committed, resident;
	uint64_t used; /* as the JVM counted when it last updated its counters; it may never have */
};

struct go_heap {
	uint64_t arena_cnt, span_bytes, idle_bytes; /* 0: none was proved */
	uint64_t live, free; /* in spans that are in use, and in none */
};

#define V8_ISOLATES 64
struct v8_heap {
	uint64_t page_cnt, resident;
	uint64_t allocated; /* for objects; of young pages, all */
	uint64_t isolate_cnt, isolates[V8_ISOLATES];
};

struct runtimes {
	struct python_pools python;
	struct java_heap java;
	struct go_heap go;
	struct v8_heap v8;
};

/* 0 or -ENOMEM. */
int runtimes_read(struct memory *m, struct mappings *maps, struct runtimes *ret);

/* Add up what the walk left to the mappings, and what it took from them. -ENOMEM. */
int rows_fill(struct rows *r, struct memory *m, const struct mappings *maps, const struct glibc *g,
	      const struct jemalloc *je, const struct runtimes *rt);
const struct row *rows_find(const struct rows *r, enum row_kind kind);
/* For programs, and for people. */
const char *row_name(enum row_kind kind);
const char *row_label(enum row_kind kind);

/* verdict.c: what most of the memory is, and what can be done about it. */

struct verdict {
	const char *cause; /* for programs: the name of a row, or what is said below */
	char text[768];
	char advice[768]; /* "": nothing is worth it */
	bool is_compared; /* set by the caller: this is the second of two looks */
};

/* pid: for the commands that are advised. */
void verdict_find(struct verdict *v, pid_t pid, const struct rows *r, const struct glibc *g,
		  const struct jemalloc *je, const struct runtimes *rt);

#endif
