/* SPDX-License-Identifier: MIT */
/* explain/explain_change.c - what is different between two looks at one process, and whose it is. */
#include "explain/explain.h"

#include "base/printable.h"
#include "base/units.h"

/* Less is called no change: of RSS, and in all. */
#define CHANGE_SHARE 0.01
#define CHANGE_BYTES (1 << 20)

#define SAY(x, ...) text_add((x)->change.text, sizeof((x)->change.text), __VA_ARGS__)

static bool is_large(const struct explanation *x, double bytes)
{
	return fabs(bytes) >= CHANGE_BYTES &&
	       fabs(bytes) >= CHANGE_SHARE * (double)x->rows.rss_bytes;
}

/* The row that changed most, in the direction of RSS if that changed. */
static void say_row(struct explanation *x)
{
	const struct explain_change *c = &x->change;
	const int64_t sign = !is_large(x, (double)c->rss_bytes) ? 0 : c->rss_bytes > 0 ? 1 : -1;
	enum row_kind best = 0;
	int64_t most = 0;
	char bytes[UNITS_BUF];

	for (int kind = 0; kind < ROW_CNT; kind++) {
		int64_t change = sign ? sign * c->rows[kind] : llabs(c->rows[kind]);

		if (change > most) {
			most = change;
			best = (enum row_kind)kind;
		}
	}
	if (is_large(x, (double)most))
		SAY(x, " Most in the row '%s': %s%s.", row_label(best),
		    c->rows[best] > 0 ? "+" : "",
		    format_bytes((double)c->rows[best], bytes, sizeof(bytes)));
}

/* Of blocks that live, the size of which there are more: glibc's classes, then the bins of jemalloc. */
static void say_size(struct explanation *x, const struct explanation *before)
{
	const struct glibc *g = &x->glibc, *old = &before->glibc;
	uint64_t from = 0, to = 0, cnt = 0;
	double most = 0;
	char bytes[UNITS_BUF], count[UNITS_BUF];

	for (uint32_t i = 0; g->classes && old->classes && i < HEAP_CLASS_CNT; i++) {
		double change =
			(double)g->classes[i].live_bytes - (double)old->classes[i].live_bytes;

		if (change <= most || g->classes[i].live_cnt < old->classes[i].live_cnt)
			continue;
		most = change;
		cnt = g->classes[i].live_cnt - old->classes[i].live_cnt;
		heap_class_range(i, &from, &to);
	}
	for (uint32_t i = 0; i < JEMALLOC_BIN_CNT; i++) {
		const uint64_t now_cnt = x->jemalloc.sum.bins[i].live_cnt;
		const uint64_t old_cnt = before->jemalloc.sum.bins[i].live_cnt;
		uint64_t bin_from, bin_to;

		jemalloc_bin_range(i, &bin_from, &bin_to);
		if (now_cnt < old_cnt || (double)(now_cnt - old_cnt) * (double)bin_to <= most)
			continue;
		cnt = now_cnt - old_cnt;
		most = (double)cnt * (double)bin_to;
		from = bin_from;
		to = bin_to;
	}
	if (is_large(x, most))
		SAY(x, " Of live blocks, those of %llu to %llu bytes grew most: %s more, %s.",
		    (unsigned long long)from, (unsigned long long)to,
		    format_count((double)cnt, count, sizeof(count)),
		    format_bytes(most, bytes, sizeof(bytes)));
}

static const struct type *find_type(const struct explanation *x, const char *name)
{
	size_t cnt;
	const struct type *list = types_list(x->types, &cnt);

	for (size_t i = 0; i < cnt; i++)
		if (!strcmp(list[i].name, name))
			return &list[i];
	return NULL;
}

static void say_type(struct explanation *x, const struct explanation *before)
{
	size_t cnt, best = 0;
	const struct type *list = types_list(x->types, &cnt);
	double most = 0, more = 0;
	char count[UNITS_BUF];

	/* those below have less than the largest growth */
	for (size_t i = 0; i < cnt && (double)list[i].sum.bytes > most; i++) {
		const struct type *old = find_type(before, list[i].name);
		double change = (double)list[i].sum.bytes - (old ? (double)old->sum.bytes : 0);

		if (change <= most)
			continue;
		best = i;
		most = change;
		more = (double)list[i].sum.cnt - (old ? (double)old->sum.cnt : 0);
	}
	if (more > 0 && is_large(x, most))
		SAY(x, " Of the C++ class %.200s there are %s more.", list[best].name,
		    format_count(more, count, sizeof(count)));
}

/* What a leak would do. */
static void say_live(struct explanation *x)
{
	const int64_t *rows = x->change.rows;

	if ((x->glibc.main_arena || x->jemalloc.tree_cnt) &&
	    !is_large(x, (double)(rows[ROW_LIVE] + rows[ROW_JE_LIVE])))
		SAY(x, " Live malloc blocks did not grow.");
}

void explain_compare(struct explanation *x, const struct explanation *before)
{
	struct explain_change *c = &x->change;
	char apart[UNITS_BUF], bytes[UNITS_BUF];

	c->is_known = true;
	c->apart_ns = x->looked_ns - before->looked_ns;
	c->rss_bytes = (int64_t)(x->rows.rss_bytes - before->rows.rss_bytes);
	for (int kind = 0; kind < ROW_CNT; kind++)
		c->rows[kind] = rows_find(&x->rows, (enum row_kind)kind)->bytes -
				rows_find(&before->rows, (enum row_kind)kind)->bytes;
	format_duration(c->apart_ns, apart, sizeof(apart));
	if (is_large(x, (double)c->rss_bytes))
		SAY(x, "RSS %s by %s in %s.", c->rss_bytes > 0 ? "grew" : "fell",
		    format_bytes(fabs((double)c->rss_bytes), bytes, sizeof(bytes)), apart);
	else
		SAY(x, "RSS hardly changed in %s.", apart);
	say_row(x);
	say_live(x);
	say_size(x, before);
	say_type(x, before);
	x->verdict.is_compared = true;
	verdict_find(&x->verdict, x->pid, &x->rows, &x->glibc, &x->jemalloc, &x->runtimes);
}
