/* SPDX-License-Identifier: MIT */
/* explain/explain_json.c - an explanation for programs: one JSON object. All sizes are in bytes. */
#include "explain/explain.h"

#include "base/clock.h"
#include "base/json.h"

static void put_rows(struct json *j, const struct rows *r, const struct explain_change *c)
{
	json_begin(j, "rows", '[');
	for (size_t i = 0; i < ROW_CNT; i++) {
		const struct row *row = &r->list[i];

		if (!row->bytes && row->kind != ROW_MOVED && !c->rows[row->kind])
			continue;
		json_line(j);
		json_begin(j, NULL, '{');
		json_text(j, "row", row_name(row->kind));
		json_format(j, "bytes", "%lld", (long long)row->bytes);
		if (c->is_known)
			json_format(j, "change", "%lld", (long long)c->rows[row->kind]);
		json_text(j, "what", row_label(row->kind));
		json_begin(j, "largest", '[');
		for (size_t k = 0; k < ROW_PARTS && row->parts[k].bytes; k++) {
			json_begin(j, NULL, '{');
			json_text(j, "name", row->parts[k].name);
			json_uint(j, "bytes", row->parts[k].bytes);
			json_end(j, '}');
		}
		json_end(j, ']');
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_sum(struct json *j, const struct heap_sum *s)
{
	json_uint(j, "live_blocks", s->cnt[HEAP_LIVE]);
	json_uint(j, "live_bytes", s->bytes[HEAP_LIVE]);
	json_uint(j, "free_chunks", s->cnt[HEAP_FREE]);
	json_uint(j, "free_bytes", s->bytes[HEAP_FREE]);
	json_uint(j, "cached_blocks", s->cnt[HEAP_CACHED]);
	json_uint(j, "cached_bytes", s->bytes[HEAP_CACHED]);
	json_uint(j, "top_bytes", s->bytes[HEAP_TOP]);
	json_uint(j, "unknown_bytes", s->bytes[HEAP_UNKNOWN]);
	json_uint(j, "resident_trimmable", s->trim);
	json_uint(j, "resident_pinned", s->pinned);
	json_uint(j, "resident_kept", s->kept);
}

/* bins_*, fast_* and caches_*: counted in malloc's lists, to compare with what the walk found. */
static void put_arena(struct json *j, const struct glibc_arena *a)
{
	json_line(j);
	json_begin(j, NULL, '{');
	json_format(j, "address", "\"%#llx\"", (unsigned long long)a->addr);
	json_bool(j, "is_main", a->is_main);
	json_bool(j, "is_proved", a->is_proved);
	json_text(j, "why_not", a->is_proved ? NULL : a->why);
	json_uint(j, "system_bytes", a->system_bytes);
	put_sum(j, &a->sum);
	json_uint(j, "bins_chunks", a->bin_cnt);
	json_uint(j, "bins_bytes", a->bin_bytes);
	json_uint(j, "fast_chunks", a->fast_cnt);
	json_uint(j, "fast_bytes", a->fast_bytes);
	json_uint(j, "caches_blocks", a->cached_cnt);
	json_end(j, '}');
}

static void put_sizes(struct json *j, const char *name, const struct glibc *g, bool is_of_pins)
{
	json_begin(j, name, '[');
	for (uint32_t i = 0; g->classes && i < HEAP_CLASS_CNT; i++) {
		const struct heap_class *c = &g->classes[i];
		uint64_t from, to;

		if (!c->live_cnt || (is_of_pins && c->pinned_bytes < 1))
			continue;
		heap_class_range(i, &from, &to);
		json_line(j);
		json_begin(j, NULL, '{');
		json_uint(j, "from_bytes", from);
		json_uint(j, "to_bytes", to);
		json_uint(j, "blocks", c->live_cnt);
		json_uint(j, "bytes", c->live_bytes);
		if (is_of_pins) {
			json_format(j, "pinned_bytes", "%.0f", c->pinned_bytes);
			json_uint(j, "alone_bytes", c->alone_bytes);
		}
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_glibc(struct json *j, const struct glibc *g)
{
	const struct glibc_arena *a;

	json_begin(j, "glibc", '{');
	json_uint(j, "mmapped_blocks", g->mmapped.cnt[HEAP_LIVE]);
	json_uint(j, "mmapped_bytes", g->mmapped.bytes[HEAP_LIVE]);
	json_uint(j, "mmapped_blocks_counted", g->parameters.mmapped_cnt);
	json_uint(j, "mmapped_bytes_counted", g->parameters.mmapped_bytes);
	json_begin(j, "arenas", '[');
	vec_each(&g->arenas, a)
		put_arena(j, a);
	json_end(j, ']');
	put_sizes(j, "sizes", g, false);
	put_sizes(j, "pinned_by", g, true);
	json_end(j, '}');
}

static void put_tree(struct json *j, const struct jemalloc_tree *t)
{
	const struct jemalloc_sum *s = &t->sum;

	json_line(j);
	json_begin(j, NULL, '{');
	json_format(j, "address", "\"%#llx\"", (unsigned long long)t->root);
	json_text(j, "version", t->version);
	json_bool(j, "is_proved", t->is_proved);
	json_text(j, "why_not", t->is_proved ? NULL : t->why);
	json_uint(j, "live_blocks", s->live_cnt);
	json_uint(j, "live_bytes", s->live_bytes);
	json_uint(j, "active_bytes", s->active_bytes);
	json_uint(j, "dirty_bytes", s->dirty_bytes);
	json_uint(j, "muzzy_bytes", s->muzzy_bytes);
	json_uint(j, "retained_bytes", s->retained_bytes);
	json_uint(j, "base_bytes", s->base_bytes);
	json_uint(j, "resident_retained", s->retained);
	json_begin(j, "bins", '[');
	for (uint32_t i = 0; i < JEMALLOC_BIN_CNT; i++) {
		uint64_t from, to;

		if (!s->bins[i].slab_cnt)
			continue;
		jemalloc_bin_range(i, &from, &to);
		json_line(j);
		json_begin(j, NULL, '{');
		json_uint(j, "from_bytes", from);
		json_uint(j, "to_bytes", to);
		json_uint(j, "slabs", s->bins[i].slab_cnt);
		json_uint(j, "regions", s->bins[i].region_cnt);
		json_uint(j, "blocks", s->bins[i].live_cnt);
		json_uint(j, "pinned_bytes", s->bins[i].pinned_bytes);
		json_end(j, '}');
	}
	json_end(j, ']');
	json_end(j, '}');
}

/* Those that were found. */
static void put_runtimes(struct json *j, const struct runtimes *rt)
{
	json_begin(j, "runtimes", '{');
	if (rt->java.resident) {
		json_begin(j, "java", '{');
		json_uint(j, "reserved_bytes", rt->java.reserved);
		json_uint(j, "committed_bytes", rt->java.committed);
		if (rt->java.used)
			json_uint(j, "last_counted_used_bytes", rt->java.used);
		else
			json_null(j, "last_counted_used_bytes");
		json_end(j, '}');
	}
	if (rt->go.arena_cnt) {
		json_begin(j, "go", '{');
		json_uint(j, "span_bytes", rt->go.span_bytes);
		json_uint(j, "free_bytes", rt->go.idle_bytes);
		json_end(j, '}');
	}
	if (rt->v8.page_cnt) {
		json_begin(j, "v8", '{');
		json_uint(j, "isolates", rt->v8.isolate_cnt);
		json_uint(j, "pages", rt->v8.page_cnt);
		json_uint(j, "allocated_bytes", rt->v8.allocated);
		json_end(j, '}');
	}
	if (rt->python.pool_cnt) {
		json_begin(j, "python", '{');
		json_uint(j, "pools", rt->python.pool_cnt);
		json_uint(j, "blocks", rt->python.live_cnt);
		json_end(j, '}');
	}
	json_end(j, '}');
}

static void put_types(struct json *j, const struct types *types)
{
	size_t cnt;
	const struct type *list = types_list(types, &cnt);

	json_begin(j, "classes", '[');
	for (size_t i = 0; i < cnt; i++) {
		json_line(j);
		json_begin(j, NULL, '{');
		json_text(j, "name", list[i].name);
		json_uint(j, "blocks", list[i].sum.cnt);
		json_uint(j, "bytes", list[i].sum.bytes);
		json_format(j, "pinned_bytes", "%.0f", list[i].sum.pinned_bytes);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_change(struct json *j, const struct explain_change *c)
{
	json_begin(j, "change", '{');
	json_number(j, "seconds", 3, (double)c->apart_ns / NS_PER_S);
	json_format(j, "rss_bytes", "%lld", (long long)c->rss_bytes);
	json_text(j, "text", c->text);
	json_end(j, '}');
}

void explain_print_json(const struct explanation *x, FILE *out)
{
	struct json j = { .out = out };

	json_begin(&j, NULL, '{');
	json_uint(&j, "pid", (uint64_t)x->pid);
	json_text(&j, "comm", x->comm);
	json_uint(&j, "rss_bytes", x->rows.rss_bytes);
	json_uint(&j, "pss_bytes", x->rows.pss_bytes);
	json_uint(&j, "swap_bytes", x->rows.swap_bytes);
	json_uint(&j, "hugetlb_bytes", x->rows.hugetlb_bytes);
	json_uint(&j, "forked_bytes", x->rows.forked_bytes);
	json_uint(&j, "huge_page_bytes", x->rows.huge_bytes);
	json_uint(&j, "huge_page_zero_bytes", x->rows.huge_zero_bytes);
	json_uint(&j, "thread_stacks", x->rows.stack_cnt);
	json_uint(&j, "dead_thread_stacks", x->rows.dead_stack_cnt);
	json_begin(&j, "verdict", '{');
	json_text(&j, "cause", x->verdict.cause);
	json_text(&j, "text", x->verdict.text);
	json_text(&j, "advice", x->verdict.advice);
	json_end(&j, '}');
	if (x->change.is_known)
		put_change(&j, &x->change);
	put_rows(&j, &x->rows, &x->change);
	if (x->glibc.main_arena)
		put_glibc(&j, &x->glibc);
	else
		json_null(&j, "glibc");
	if (x->glibc.is_unread)
		json_text(&j, "glibc_why_not", x->glibc.why);
	json_begin(&j, "jemalloc", '[');
	for (size_t i = 0; i < x->jemalloc.tree_cnt; i++)
		put_tree(&j, &x->jemalloc.trees[i]);
	json_end(&j, ']');
	put_runtimes(&j, &x->runtimes);
	put_types(&j, x->types);
	json_end(&j, '}');
	fputc('\n', out);
}
