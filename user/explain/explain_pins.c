/* SPDX-License-Identifier: MIT */
/* explain/explain_pins.c - the live blocks that keep free memory from being returned, for people. */
#include "explain/explain.h"

#include <stdlib.h>

#include "base/printable.h"
#include "base/units.h"

#define ROWS_SHOWN 10
#define SMALL_SHARE 0.005 /* of what is pinned: smaller rows are not shown */
#define LINE_BYTES 1024

struct pin {
	double pinned_bytes, alone_bytes; /* alone_bytes: below 0: not known */
	uint64_t cnt, from, to; /* blocks, and their sizes */
	const char *class; /* of C++; NULL: they are those of a size */
};

struct pins {
	VEC(struct pin) list;
	double all_bytes;
};

/* Without memory for it, there is one row less. */
static void add(struct pins *p, const struct pin *pin)
{
	p->all_bytes += pin->pinned_bytes;
	if (pin->pinned_bytes >= 1)
		(void)vec_push(&p->list, *pin);
}

static void add_sizes(const struct explanation *x, struct pins *p)
{
	const struct heap_class *classes = x->glibc.classes;
	const struct jemalloc_bin *bins = x->jemalloc.sum.bins;
	struct pin pin = { 0 };

	for (uint32_t i = 0; classes && i < HEAP_CLASS_CNT; i++) {
		pin.pinned_bytes = classes[i].pinned_bytes;
		pin.alone_bytes = (double)classes[i].alone_bytes;
		pin.cnt = classes[i].live_cnt;
		heap_class_range(i, &pin.from, &pin.to);
		add(p, &pin);
	}
	/* a slab has blocks of one size, so all that they pin they pin alone */
	for (uint32_t i = 0; i < JEMALLOC_BIN_CNT; i++) {
		pin.pinned_bytes = pin.alone_bytes = (double)bins[i].pinned_bytes;
		pin.cnt = bins[i].live_cnt;
		jemalloc_bin_range(i, &pin.from, &pin.to);
		add(p, &pin);
	}
}

static void add_types(const struct explanation *x, struct pins *p)
{
	size_t cnt;
	const struct type *list = types_list(x->types, &cnt);

	for (size_t i = 0; i < cnt; i++) {
		const struct pin pin = { .pinned_bytes = list[i].sum.pinned_bytes,
					 .alone_bytes = -1,
					 .cnt = list[i].sum.cnt,
					 .class = list[i].name };

		add(p, &pin);
	}
}

static int compare_pins(const void *a, const void *b)
{
	const struct pin *x = a, *y = b;

	return x->pinned_bytes < y->pinned_bytes ? 1 : x->pinned_bytes > y->pinned_bytes ? -1 : 0;
}

static void print(struct pins *p, const char *what, double all_bytes, int columns, FILE *out)
{
	char line[LINE_BYTES], size[64], b[3][UNITS_BUF];

	fprintf(out, "\n%12s %12s %9s  %s\n", "pinned", "alone", "blocks", what);
	qsort(p->list.data, p->list.cnt, sizeof(*p->list.data), compare_pins);
	for (size_t i = 0; i < p->list.cnt && i < ROWS_SHOWN; i++) {
		const struct pin *pin = &p->list.data[i];

		if (pin->pinned_bytes < SMALL_SHARE * all_bytes)
			break;
		snprintf(size, sizeof(size), "%llu to %llu bytes", (unsigned long long)pin->from,
			 (unsigned long long)pin->to);
		snprintf(line, sizeof(line), "%12s %12s %9s  %s",
			 format_bytes(pin->pinned_bytes, b[0], UNITS_BUF),
			 pin->alone_bytes < 0 ? "-" :
						format_bytes(pin->alone_bytes, b[1], UNITS_BUF),
			 format_count((double)pin->cnt, b[2], UNITS_BUF),
			 pin->class ? pin->class : size);
		make_printable(line);
		fprintf(out, "%.*s\n", columns, line);
	}
}

void explain_print_pins(const struct explanation *x, int columns, FILE *out)
{
	struct pins sizes = { 0 }, types = { 0 };

	add_sizes(x, &sizes);
	add_types(x, &types);
	if (sizes.list.cnt)
		print(&sizes, "live blocks by size", sizes.all_bytes, columns, out);
	else
		fprintf(out, "\nNo live block is known to pin free memory.\n");
	if (types.list.cnt)
		print(&types, "live blocks by C++ class", sizes.all_bytes, columns, out);
	if (sizes.list.cnt)
		fprintf(out,
			"pinned: free memory on the same pages (jemalloc: slabs), divided equally among their live blocks\n"
			"alone: the part of it on pages with blocks of this size only\n");
	vec_release(&sizes.list);
	vec_release(&types.list);
}
