/* SPDX-License-Identifier: MIT */
/*
 * explain/verdict.c - see explain/rows.h. The first of these that holds:
 *
 *	swapped		a quarter of RSS and swap together is swapped out
 *	forked		half of RSS is also in another process, since one was forked from the other
 *	arenas		8 arenas or more have over 256 KiB of resident free memory each, none has half of it, and all
 *			have a quarter of RSS
 *	huge_pages	30 % of RSS is zeros in huge pages
 *	dead_stacks	stacks are the largest row, and half of it is of threads that have ended
 *	two rows	the largest row is below 60 % and the second at least 30 %
 *	a row		the largest
 *
 * What is advised has a number of bytes, and is worth 5 % of RSS and 1 MiB.
 */
#include "explain/rows.h"

#include "base/units.h"
#include "explain/explain_priv.h"

#define ARENA_FREE_BYTES (256u << 10)
#define ARENA_CNT 8
#define ADVICE_BYTES (1u << 20)
#define TRIM_THRESHOLD \
	(128u << 10) /* of glibc, until a mapped block was freed: then twice its size */

static const char *const phrases[ROW_CNT] = {
	[ROW_LIVE] = "live malloc blocks",
	[ROW_TRIM] = "free memory that malloc has not returned to the kernel",
	[ROW_PINNED] = "free memory pinned by live blocks on the same pages",
	[ROW_KEPT] = "free memory that malloc keeps for future calls",
	[ROW_OWN] = "metadata of malloc",
	[ROW_UNKNOWN] = "malloc memory that could not be read",
	[ROW_JE_LIVE] = "live jemalloc blocks",
	[ROW_JE_PINNED] = "free memory in jemalloc's slabs, pinned by live blocks",
	[ROW_JE_DIRTY] = "free pages that jemalloc has not returned to the kernel",
	[ROW_JE_OWN] = "metadata of jemalloc",
	[ROW_PY_LIVE] = "small Python objects",
	[ROW_PY_FREE] = "free memory in Python's pools, pinned by live objects",
	[ROW_JAVA] = "the heap of the JVM",
	[ROW_GO_LIVE] = "heap and stacks of Go in use",
	[ROW_GO_FREE] = "free memory that Go has not returned to the kernel",
	[ROW_V8] = "V8's JavaScript heap",
	[ROW_BRK] = "brk heap memory outside of verified malloc heaps",
	[ROW_ANONYMOUS] = "anonymous memory outside of verified malloc heaps",
	[ROW_NAMED] = "named anonymous memory",
	[ROW_CODE] = "code generated at run time",
	[ROW_STACKS] = "stacks",
	[ROW_SHARED] = "shared memory",
	[ROW_FILES] = "file pages",
	[ROW_DATA] = "program and library data",
	[ROW_KERNEL] = "kernel pages",
	[ROW_MOVED] = "memory that changed during reading",
};

struct finder {
	struct verdict *v;
	pid_t pid;
	const struct rows *rows;
	const struct glibc *g;
	const struct jemalloc *je;
	const struct runtimes *rt;
};

#define SAY(v, ...) add_text((v)->text, sizeof((v)->text), __VA_ARGS__)
#define ADVISE(v, ...) add_text((v)->advice, sizeof((v)->advice), __VA_ARGS__)

static double share(const struct finder *f, double bytes)
{
	return f->rows->rss_bytes ? bytes / (double)f->rows->rss_bytes : 0;
}

static void say_row(struct finder *f, const struct row *row)
{
	char bytes[UNITS_BUF], percent[UNITS_BUF];

	SAY(f->v, "%s (%s, %s %%)", phrases[row->kind],
	    format_bytes((double)row->bytes, bytes, sizeof(bytes)),
	    format_percent(share(f, (double)row->bytes), percent, sizeof(percent)));
}

static bool is_worth_it(const struct finder *f, double bytes)
{
	return bytes >= ADVICE_BYTES && share(f, bytes) >= 0.05;
}

static void advise_trim(struct finder *f)
{
	double trim = (double)rows_find(f->rows, ROW_TRIM)->bytes, top = (double)f->g->sum.trim_top;
	uint64_t threshold = f->g->parameters.trim_threshold;
	char bytes[UNITS_BUF], limit[UNITS_BUF];

	if (is_worth_it(f, trim))
		ADVISE(f->v, "malloc_trim(0) would return %s now. ",
		       format_bytes(trim, bytes, sizeof(bytes)));
	if (is_worth_it(f, top) && threshold > TRIM_THRESHOLD)
		ADVISE(f->v,
		       "%s of it is the end of the heap, of which free() keeps up to %s: "
		       "MALLOC_TRIM_THRESHOLD_=%u in its environment lowers that. ",
		       format_bytes(top, bytes, sizeof(bytes)),
		       format_bytes((double)threshold, limit, sizeof(limit)), TRIM_THRESHOLD);
}

/* One that pins half as much, at least. */
static void name_pinning_type(struct finder *f, double bytes)
{
	const struct type *best = NULL, *list;
	size_t cnt;

	list = types_list(f->g->types, &cnt);
	for (size_t i = 0; i < cnt; i++)
		if (!best || list[i].sum.pinned_bytes > best->sum.pinned_bytes)
			best = &list[i];
	if (best && best->sum.pinned_bytes >= bytes / 2)
		ADVISE(f->v, "most are objects of the C++ class %.200s; ", best->name);
}

static void advise_pinned(struct finder *f)
{
	uint64_t from, to;
	uint32_t best = 0;
	char bytes[UNITS_BUF];

	if (!f->g->classes)
		return;
	for (uint32_t i = 1; i < HEAP_CLASS_CNT; i++)
		if (f->g->classes[i].pinned_bytes > f->g->classes[best].pinned_bytes)
			best = i;
	if (!is_worth_it(f, f->g->classes[best].pinned_bytes))
		return;
	heap_class_range(best, &from, &to);
	ADVISE(f->v,
	       "Blocks of %llu to %llu bytes pin %s, which malloc_trim cannot return while they live; ",
	       (unsigned long long)from, (unsigned long long)to,
	       format_bytes(f->g->classes[best].pinned_bytes, bytes, sizeof(bytes)));
	name_pinning_type(f, f->g->classes[best].pinned_bytes);
	ADVISE(f->v, "'heaptap record -p %d' shows which code allocates them. ", f->pid);
}

/* The slabs of one size class have blocks of no other. */
static void advise_slabs(struct finder *f)
{
	const struct jemalloc_bin *bins = f->je->sum.bins;
	uint32_t best = 0;
	uint64_t from, to;
	char bytes[UNITS_BUF];

	for (uint32_t i = 1; i < JEMALLOC_BIN_CNT; i++)
		if (bins[i].pinned_bytes > bins[best].pinned_bytes)
			best = i;
	if (!is_worth_it(f, (double)bins[best].pinned_bytes))
		return;
	jemalloc_bin_range(best, &from, &to);
	ADVISE(f->v,
	       "Slabs for blocks of %llu to %llu bytes have %s free. jemalloc returns a slab "
	       "only when its last block is freed; 'heaptap record -p %d' shows which code "
	       "allocates them. ",
	       (unsigned long long)from, (unsigned long long)to,
	       format_bytes((double)bins[best].pinned_bytes, bytes, sizeof(bytes)), f->pid);
}

static void advise_dirty(struct finder *f)
{
	char bytes[UNITS_BUF];

	if (is_worth_it(f, (double)f->je->sum.dirty))
		ADVISE(f->v,
		       "jemalloc would return %s at once by mallctl(\"arena.4096.purge\"), or over time with "
		       "MALLOC_CONF=background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0 in its "
		       "environment. ",
		       format_bytes((double)f->je->sum.dirty, bytes, sizeof(bytes)));
}

static void name_largest(struct finder *f, const struct row *row)
{
	char bytes[UNITS_BUF];

	if (row->parts[0].bytes && row->parts[0].name[0])
		ADVISE(f->v, "The largest is %s (%s). ", row->parts[0].name,
		       format_bytes((double)row->parts[0].bytes, bytes, sizeof(bytes)));
}

/* *ret_why: of the largest. */
static uint64_t unproved_bytes(const struct glibc *g, const char **ret_why)
{
	const struct glibc_arena *a;
	uint64_t bytes = 0, most = 0;

	vec_each(&g->arenas, a) {
		if (a->is_proved)
			continue;
		bytes += a->system_bytes;
		if (a->system_bytes > most) {
			most = a->system_bytes;
			*ret_why = a->why;
		}
	}
	return bytes;
}

/* Memory that no heap is known to have: which heap was not read, and why; else whose it can be. */
static void advise_unowned(struct finder *f)
{
	const char *why = "";
	double unproved = (double)unproved_bytes(f->g, &why);
	char bytes[UNITS_BUF];

	if (is_worth_it(f, unproved))
		ADVISE(f->v, "malloc has %s in arenas that could not be verified: %s. ",
		       format_bytes(unproved, bytes, sizeof(bytes)), why);
	else if (f->g->is_unread)
		ADVISE(f->v,
		       "The heap of glibc's malloc could not be read (%s). This memory is that "
		       "heap, unless the program uses another allocator. ",
		       f->g->why);
	else
		ADVISE(f->v,
		       "It comes from a runtime, another allocator or direct system calls; "
		       "'heaptap doctor -p %d' names the allocators found. ",
		       f->pid);
}

/* One that has a quarter of it, at least; the list begins with the largest. */
static void name_live_type(struct finder *f)
{
	uint64_t live = f->g->sum.live + f->je->sum.live;
	size_t cnt;
	const struct type *list = types_list(f->g->types, &cnt);
	char bytes[UNITS_BUF], count[UNITS_BUF];

	if (cnt && list->sum.bytes >= live / 4)
		ADVISE(f->v, "%s of it is in %s objects of the C++ class %.200s. ",
		       format_bytes((double)list->sum.bytes, bytes, sizeof(bytes)),
		       format_count((double)list->sum.cnt, count, sizeof(count)), list->name);
}

static void advise_live(struct finder *f)
{
	name_live_type(f);
	ADVISE(f->v,
	       "%s'heaptap record -d 60s -p %d' shows which code allocates memory that stays, and whether "
	       "it grows. ",
	       f->v->is_compared ?
		       "" :
		       "A single reading cannot tell a leak from a cache: --for 60s compares two, and ",
	       f->pid);
}

static void advise_mmapped(struct finder *f)
{
	const struct heap_sum *s = &f->g->mmapped;
	char bytes[UNITS_BUF];

	if (s->live * 2 > f->g->sum.live)
		ADVISE(f->v, "%s of it is in %llu large blocks, each with a mapping of its own. ",
		       format_bytes((double)s->live, bytes, sizeof(bytes)),
		       (unsigned long long)s->cnt[HEAP_LIVE]);
}

static void advise_java(struct finder *f)
{
	char used[UNITS_BUF], committed[UNITS_BUF];

	if (f->rt->java.used)
		ADVISE(f->v, "Of %s committed, the JVM last counted %s in use. ",
		       format_bytes((double)f->rt->java.committed, committed, sizeof(committed)),
		       format_bytes((double)f->rt->java.used, used, sizeof(used)));
	ADVISE(f->v, "'jcmd %d GC.class_histogram' shows which objects it has. ", f->pid);
}

static void advise_row(struct finder *f, const struct row *row)
{
	switch (row->kind) {
	case ROW_LIVE:
		advise_mmapped(f);
		advise_live(f);
		break;
	case ROW_JE_LIVE:
		advise_live(f);
		break;
	case ROW_PY_LIVE:
		ADVISE(f->v,
		       "tracemalloc, in the program, shows which lines of Python made them. ");
		break;
	case ROW_PY_FREE:
		ADVISE(f->v, "Python returns 1 MiB at a time, when no object is left in it. ");
		break;
	case ROW_JAVA:
		advise_java(f);
		break;
	case ROW_GO_LIVE:
		ADVISE(f->v, "/debug/pprof/heap, in the program, shows which code allocated it. ");
		break;
	case ROW_GO_FREE:
		ADVISE(f->v, "Go returns it over minutes, debug.FreeOSMemory() at once. ");
		break;
	case ROW_V8:
		ADVISE(f->v,
		       "A heap snapshot (node --heapsnapshot-signal) shows which objects it has. ");
		break;
	case ROW_ANONYMOUS:
	case ROW_BRK:
		advise_unowned(f);
		break;
	case ROW_STACKS:
		ADVISE(f->v,
		       "%llu threads have a stack. A stack page stays resident once touched. ",
		       (unsigned long long)f->rows->stack_cnt);
		break;
	case ROW_FILES:
		name_largest(f, row);
		ADVISE(f->v, "The kernel drops these pages under memory pressure. ");
		break;
	case ROW_SHARED:
		name_largest(f, row);
		ADVISE(f->v, "It stays until its last user unmaps or deletes it. ");
		break;
	case ROW_NAMED:
	case ROW_DATA:
		name_largest(f, row);
		break;
	default:
		break;
	}
}

static bool find_swapped(struct finder *f)
{
	double swap = (double)f->rows->swap_bytes, all = swap + (double)f->rows->rss_bytes;
	char bytes[UNITS_BUF];

	if (swap < all / 4 || swap == 0)
		return false;
	f->v->cause = "swapped";
	SAY(f->v, "%s of its memory is swapped out; RSS shows only the rest.",
	    format_bytes(swap, bytes, sizeof(bytes)));
	return true;
}

static bool find_forked(struct finder *f)
{
	double forked = (double)f->rows->forked_bytes;
	char bytes[UNITS_BUF], pss[UNITS_BUF];

	if (!forked || share(f, forked) < 0.5)
		return false;
	f->v->cause = "forked";
	SAY(f->v,
	    "%s is shared with a forked process and counted in both. PSS, which divides shared pages among "
	    "their users, is %s.",
	    format_bytes(forked, bytes, sizeof(bytes)),
	    format_bytes((double)f->rows->pss_bytes, pss, sizeof(pss)));
	return true;
}

static uint64_t free_bytes(const struct heap_sum *s)
{
	return s->trim + s->pinned + s->kept;
}

static bool find_arenas(struct finder *f)
{
	uint64_t all = free_bytes(&f->g->sum), largest = 0, cnt = 0;
	const struct row *top = &f->rows->list[0];
	const struct glibc_arena *a;
	char bytes[UNITS_BUF];

	vec_each(&f->g->arenas, a) {
		uint64_t free = free_bytes(&a->sum);

		cnt += free > ARENA_FREE_BYTES;
		largest = free > largest ? free : largest;
	}
	if (cnt < ARENA_CNT || largest * 2 >= all || share(f, (double)all) < 0.25)
		return false;
	if (share(f, (double)all) <= 0.3 && top->kind != ROW_TRIM && top->kind != ROW_PINNED &&
	    top->kind != ROW_KEPT)
		return false;
	f->v->cause = "arenas";
	SAY(f->v, "%s of free memory is scattered over %llu malloc arenas.",
	    format_bytes((double)all, bytes, sizeof(bytes)), (unsigned long long)cnt);
	ADVISE(f->v, "Set MALLOC_ARENA_MAX=2 in its environment to make threads share arenas. ");
	return true;
}

static bool find_huge(struct finder *f)
{
	double zeros = (double)f->rows->huge_zero_bytes;
	char bytes[UNITS_BUF], percent[UNITS_BUF];

	if (share(f, zeros) < 0.3)
		return false;
	f->v->cause = "huge_pages";
	SAY(f->v,
	    "About %s (%s %%) is zeros in huge pages: the kernel provided 2 MiB where the program wrote less.",
	    format_bytes(zeros, bytes, sizeof(bytes)),
	    format_percent(share(f, zeros), percent, sizeof(percent)));
	ADVISE(f->v,
	       "To keep pages small: prctl(PR_SET_THP_DISABLE) in the program, or 'madvise' in "
	       "/sys/kernel/mm/transparent_hugepage/enabled. ");
	return true;
}

static bool find_dead_stacks(struct finder *f)
{
	const struct row *first = &f->rows->list[0];
	uint64_t dead = f->rows->dead_stack_bytes;
	char bytes[UNITS_BUF];

	if (first->kind != ROW_STACKS || (int64_t)(2 * dead) < first->bytes)
		return false;
	f->v->cause = "dead_stacks";
	SAY(f->v, "%s is in the stacks of %llu threads that have ended.",
	    format_bytes((double)dead, bytes, sizeof(bytes)),
	    (unsigned long long)f->rows->dead_stack_cnt);
	ADVISE(f->v,
	       "A thread that is neither joined nor detached keeps its stack: call pthread_join() or "
	       "pthread_detach() for each. glibc itself keeps up to 40 MiB for new threads. ");
	return true;
}

static void find_rows(struct finder *f)
{
	const struct row *first = &f->rows->list[0], *second = &f->rows->list[1];

	f->v->cause = row_name(first->kind);
	if (share(f, (double)first->bytes) < 0.6 && share(f, (double)second->bytes) >= 0.3) {
		SAY(f->v, "Mostly ");
		say_row(f, first);
		SAY(f->v, " and ");
		say_row(f, second);
	} else {
		if (share(f, (double)first->bytes) < 0.5)
			SAY(f->v, "The largest part is ");
		else
			SAY(f->v, "Mostly ");
		say_row(f, first);
	}
	SAY(f->v, ".");
	if (is_worth_it(f, (double)first->bytes))
		advise_row(f, first);
}

void verdict_find(struct verdict *v, pid_t pid, const struct rows *r, const struct glibc *g,
		  const struct jemalloc *je, const struct runtimes *rt)
{
	struct finder f = { .v = v, .pid = pid, .rows = r, .g = g, .je = je, .rt = rt };

	v->text[0] = v->advice[0] = '\0';
	if (!find_swapped(&f) && !find_forked(&f) && !find_arenas(&f) && !find_huge(&f) &&
	    !find_dead_stacks(&f))
		find_rows(&f);
	advise_trim(&f);
	advise_pinned(&f);
	advise_dirty(&f);
	advise_slabs(&f);
}
