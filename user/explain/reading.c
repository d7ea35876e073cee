/* SPDX-License-Identifier: MIT */
/* explain/reading.c - see explain/explain.h. */

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "explain/explain.h"

/* A row that is not here has its own label, and is nothing for limits. */
static const struct {
	const char *label;
	enum resident_kind kind;
} texts[ROW_CNT] = {
	[ROW_LIVE] = { "live", RESIDENT_LIVE },
	[ROW_TRIM] = { "free kept by glibc", RESIDENT_FREE },
	[ROW_PINNED] = { "free kept by glibc", RESIDENT_FREE },
	[ROW_KEPT] = { "free kept by glibc", RESIDENT_FREE },
	[ROW_OWN] = { "metadata of malloc", RESIDENT_METADATA },
	[ROW_UNKNOWN] = { "heap not read", RESIDENT_UNREAD },
	[ROW_JE_LIVE] = { "live", RESIDENT_LIVE },
	[ROW_JE_PINNED] = { "free kept by jemalloc", RESIDENT_FREE },
	[ROW_JE_DIRTY] = { "free kept by jemalloc", RESIDENT_FREE },
	[ROW_JE_OWN] = { "metadata of malloc", RESIDENT_METADATA },
	[ROW_PY_LIVE] = { "Python objects", RESIDENT_OTHER },
	[ROW_PY_FREE] = { "free kept by Python", RESIDENT_FREE },
	[ROW_BRK] = { "brk heap", RESIDENT_UNOWNED },
	[ROW_ANONYMOUS] = { "anonymous", RESIDENT_UNOWNED },
	[ROW_NAMED] = { "named anonymous", RESIDENT_OTHER },
	[ROW_CODE] = { "generated code", RESIDENT_OTHER },
	[ROW_STACKS] = { "stacks", RESIDENT_OTHER },
	[ROW_SHARED] = { "shared memory", RESIDENT_OTHER },
	[ROW_FILES] = { "files", RESIDENT_OTHER },
	[ROW_DATA] = { "program data", RESIDENT_OTHER },
	[ROW_KERNEL] = { "kernel pages", RESIDENT_OTHER },
	[ROW_MOVED] = { "changed while read", RESIDENT_MOVED },
};
_Static_assert(ROW_CNT <= RESIDENT_ROW_CAP, "a reading has room for all rows");

/* Is a heap in use? why: one that was found was not read, or none was found; "": all were. */
static bool find_heap(const struct explanation *x, char why[RESIDENT_WHY_BYTES])
{
	bool has_heap = x->jemalloc.tree_cnt != 0;
	const struct glibc_arena *a;

	why[0] = '\0';
	vec_each(&x->glibc.arenas, a) {
		has_heap |= a->system_bytes != 0;
		if (!a->is_proved && a->system_bytes && !why[0])
			snprintf(why, RESIDENT_WHY_BYTES, "an arena of malloc: %.128s", a->why);
	}
	for (size_t i = 0; i < x->jemalloc.tree_cnt; i++) {
		if (!x->jemalloc.trees[i].is_proved && !why[0])
			snprintf(why, RESIDENT_WHY_BYTES, "jemalloc: %.128s",
				 x->jemalloc.trees[i].why);
	}
	if (x->glibc.is_unread && !why[0])
		snprintf(why, RESIDENT_WHY_BYTES, "glibc's malloc: %.128s", x->glibc.why);
	if (!has_heap && !why[0])
		snprintf(why, RESIDENT_WHY_BYTES, "no glibc malloc or jemalloc in use was found");
	return has_heap;
}

static void set_row(const struct row *row, bool is_proved, struct resident_reading_row *ret)
{
	const char *label = texts[row->kind].label;

	if (row->kind == ROW_ANONYMOUS && is_proved)
		label = "mapped directly"; /* else a part of it may be malloc's */
	snprintf(ret->name, sizeof(ret->name), "%s", row_name(row->kind));
	snprintf(ret->label, sizeof(ret->label), "%s", label ? label : row_label(row->kind));
	ret->kind = texts[row->kind].kind;
	ret->bytes = row->bytes;
}

static void explain_make_reading(const struct explanation *x, struct resident_reading *ret)
{
	const struct glibc *g = &x->glibc;

	memset(ret, 0, sizeof(*ret));
	ret->has_heap = find_heap(x, ret->why);
	ret->is_known = true;
	ret->is_proved = !ret->why[0];
	ret->rss_bytes = x->rows.rss_bytes;
	ret->took_ns = x->took_ns;
	/* jemalloc's blocks are counted with those in caches of threads, which are not the program's. */
	ret->is_counted =
		ret->is_proved && g->cache_key && !x->jemalloc.tree_cnt && !x->jemalloc.is_mapped;
	ret->live_cnt = g->sum.cnt[HEAP_LIVE];
	ret->live_bytes = g->sum.bytes[HEAP_LIVE];
	ret->mmapped_cnt = g->mmapped.cnt[HEAP_LIVE];
	ret->has_brk = rows_find(&x->rows, ROW_BRK)->bytes != 0;
	for (size_t i = 0; i < ROW_CNT; i++)
		if (x->rows.list[i].bytes)
			set_row(&x->rows.list[i], ret->is_proved, &ret->rows[ret->row_cnt++]);
}

void explain_read(pid_t pid, struct resident_pins *pins, uint64_t limit_ns,
		  struct resident_reading *ret)
{
	uint64_t begin_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	struct explanation x;
	struct err why;

	memset(ret, 0, sizeof(*ret));
	if (!explain_process(pid, false, pins, limit_ns, &x, &why))
		explain_make_reading(&x, ret);
	else
		snprintf(ret->why, sizeof(ret->why), "%.159s", why.text);
	explain_release(&x);
	ret->cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns;
}
