/* SPDX-License-Identifier: MIT */
/* explain/explain_pins.c - the live blocks by size and by C++ class, and what they keep from being returned, for people. */
#include "explain/explain.h"

#include "base/printable.h"
#include "base/units.h"

#define PINS_SHOWN 10
#define BLOCKS_SHOWN 20
#define SMALL_SHARE 0.005 /* of what is pinned: smaller rows are not shown */
#define LINE_BYTES 1024

struct group {
	double order; /* the largest first */
	double live_bytes, pinned_bytes, alone_bytes; /* alone_bytes: below 0: not known */
	uint64_t cnt, from, to; /* blocks, and their sizes */
	const char *class; /* of C++; NULL: they are those of a size */
};

struct groups {
	VEC(struct group) list;
	double pinned_bytes; /* by all of them */
	double least_bytes; /* of one that is shown */
};

/* Without memory for it, there is one row less. */
static void add(struct groups *g, const struct group *group)
{
	g->pinned_bytes += group->pinned_bytes;
	if (group->cnt)
		(void)vec_push(&g->list, *group);
}

static void add_sizes(const struct explanation *x, struct groups *g)
{
	const struct heap_class *classes = x->glibc.classes;
	const struct jemalloc_bin *bins = x->jemalloc.sum.bins;
	struct group group = { 0 };

	for (uint32_t i = 0; classes && i < HEAP_CLASS_CNT; i++) {
		group.live_bytes = (double)classes[i].live_bytes;
		group.pinned_bytes = classes[i].pinned_bytes;
		group.alone_bytes = (double)classes[i].alone_bytes;
		group.cnt = classes[i].live_cnt;
		heap_class_range(i, &group.from, &group.to);
		add(g, &group);
	}
	/* a slab has blocks of one size, so all that they pin they pin alone */
	for (uint32_t i = 0; i < JEMALLOC_BIN_CNT; i++) {
		group.pinned_bytes = group.alone_bytes = (double)bins[i].pinned_bytes;
		group.cnt = bins[i].live_cnt;
		jemalloc_bin_range(i, &group.from, &group.to);
		group.live_bytes = (double)group.cnt * (double)group.to;
		add(g, &group);
	}
}

static void add_types(const struct explanation *x, struct groups *g)
{
	size_t cnt;
	const struct type *list = types_list(x->types, &cnt);

	for (size_t i = 0; i < cnt; i++) {
		const struct group group = { .live_bytes = (double)list[i].sum.bytes,
					     .pinned_bytes = list[i].sum.pinned_bytes,
					     .alone_bytes = -1,
					     .cnt = list[i].sum.cnt,
					     .class = list[i].name };

		add(g, &group);
	}
}

static int compare(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return (x->order < y->order) - (x->order > y->order);
}

/* by_live: live and pinned bytes; else pinned ones, and those that are pinned by this group alone. */
static void print(struct groups *g, const char *what, bool by_live, int columns, FILE *out)
{
	const size_t shown_cnt = by_live ? BLOCKS_SHOWN : PINS_SHOWN;
	char line[LINE_BYTES], size[64], b[3][UNITS_BUF];
	struct group *group;

	vec_each(&g->list, group)
		group->order = by_live ? group->live_bytes : group->pinned_bytes;
	if (g->list.cnt)
		qsort(g->list.data, g->list.cnt, sizeof(*group), compare);
	fprintf(out, "\n%12s %12s %9s  %s\n", by_live ? "live" : "pinned",
		by_live ? "pinned" : "alone", "blocks", what);
	vec_each(&g->list, group) {
		double second = by_live ? group->pinned_bytes : group->alone_bytes;

		if (group == g->list.data + shown_cnt || group->order < g->least_bytes)
			break;
		snprintf(size, sizeof(size), "%llu to %llu bytes", (unsigned long long)group->from,
			 (unsigned long long)group->to);
		snprintf(line, sizeof(line), "%12s %12s %9s  %s",
			 format_bytes(group->order, b[0], UNITS_BUF),
			 second < 0 ? "-" : format_bytes(second, b[1], UNITS_BUF),
			 format_count((double)group->cnt, b[2], UNITS_BUF),
			 group->class ? group->class : size);
		make_printable(line);
		fprintf(out, "%.*s\n", columns, line);
	}
	if (by_live && g->list.cnt > shown_cnt)
		fprintf(out, "and %zu more\n", g->list.cnt - shown_cnt);
}

void explain_print_pins(const struct explanation *x, int columns, FILE *out)
{
	struct groups sizes = { 0 }, types = { 0 };
	double all;

	add_sizes(x, &sizes);
	add_types(x, &types);
	all = sizes.pinned_bytes;
	sizes.least_bytes = types.least_bytes = all * SMALL_SHARE > 1 ? all * SMALL_SHARE : 1;
	if (all >= 1)
		print(&sizes, "live blocks by size", false, columns, out);
	else
		fprintf(out, "\nNo live block is known to pin free memory.\n");
	if (types.pinned_bytes >= 1)
		print(&types, "live blocks by C++ class", false, columns, out);
	if (all >= 1)
		fprintf(out,
			"pinned: free memory on the same pages (jemalloc: slabs), divided equally among their live blocks\n"
			"alone: the part of it on pages with blocks of this size only\n");
	vec_release(&sizes.list);
	vec_release(&types.list);
}

void explain_print_blocks(const struct explanation *x, int columns, FILE *out)
{
	struct groups sizes = { 0 }, types = { 0 };

	add_sizes(x, &sizes);
	add_types(x, &types);
	if (sizes.list.cnt)
		print(&sizes, "live blocks by size", true, columns, out);
	if (types.list.cnt)
		print(&types, "C++ class, by the first word of live blocks", true, columns, out);
	vec_release(&sizes.list);
	vec_release(&types.list);
}
