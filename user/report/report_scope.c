/* SPDX-License-Identifier: MIT */
/*
 * report_scope.c - the rows of a report by scope: the tree, each scope before those below it.
 *
 * With a cap the largest scopes are shown, and their other siblings become one row "(other)". A
 * scope is never larger than its parent, so all ancestors of a shown scope are shown. At every
 * place a scope is the sum of the rows directly below it, if any, and its own exclusive part.
 */

#include "report/report_rows.h"
#include "profile/scope_note.h"
#include "profile/scope_tree.h"

struct view {
	struct report *r;
	struct scope_tree *tree;
	VEC(struct report_row) rows; /* one for each node */
	VEC(uint32_t) order; /* nodes, siblings side by side */
	VEC(size_t) first; /* [node + 1]: its first child in order; [0]: the top */
	VEC(char) is_shown;
	uint32_t root; /* node of opts->scope, or SCOPE_NO_NODE */
	struct hmap cut; /* paths that opts->match has removed a part of */
};

static int add_samples(struct view *v)
{
	const struct report *r = v->r;
	const uint32_t *i;

	vec_each(&r->chosen, i) {
		const struct profile_sample *s = &r->p->samples.data[*i];
		uint32_t node;
		int err = scope_tree_add(v->tree, report_sample_scope(r, s), &node);

		while (!err && v->rows.cnt < v->tree->nodes.cnt)
			err = vec_push(&v->rows, (struct report_row){ 0 });
		if (err)
			return err;
		report_add_sample(r, s, &v->rows.data[node]);
	}
	return 0;
}

/* Add what lies below to what each scope has itself. A node is behind its parent. */
static void sum_up(struct view *v)
{
	struct report_row *row;

	vec_each(&v->rows, row)
		report_set_exclusive(row);
	for (size_t i = v->rows.cnt; i-- > 0;) {
		uint32_t parent = v->tree->nodes.data[i].parent;

		if (parent != SCOPE_NO_NODE)
			report_add_row(&v->rows.data[parent], &v->rows.data[i]);
		v->rows.data[i].row_cnt = 0; /* it is no "(other)" */
	}
}

static int add_peaks(const struct report *r, struct scope_tree *t)
{
	const struct scope_note *n;
	int err;

	if (!r->is_inuse)
		return 0;
	vec_each(&r->p->scope_notes, n) {
		if (n->kind != SCOPE_NOTE_PEAK)
			continue;
		err = scope_tree_add_peak(t, profile_text(r->p, n->path_str), n->peak_bytes,
					  n->peak_time_ns, n->scope_cnt > 1);
		if (err)
			return err;
	}
	return 0;
}

/* Mark the path of a sample that is not reported, and all its ancestors. */
static int cut_path(struct view *v, int64_t path_str)
{
	const char *path = strset_get(v->r->names, path_str), *pos = path;
	struct scope_name name;

	for (size_t i = 0; i < SCOPE_DEPTH_MAX && scope_path_next(&pos, &name); i++) {
		int64_t part = strset_add_n(v->r->names, path, name.text + name.len - path);

		if (part < 0 || hmap_put(&v->cut, &part, 1))
			return -ENOMEM;
	}
	return 0;
}

static int find_cut(struct view *v)
{
	const struct report *r = v->r;
	size_t next = 0;

	for (uint32_t i = 0; i < r->scopes.cnt; i++) {
		if (next < r->chosen.cnt && r->chosen.data[next] == i)
			next++;
		else if (!hmap_get(&v->cut, &r->scopes.data[i]) && cut_path(v, r->scopes.data[i]))
			return -ENOMEM;
	}
	return 0;
}

/* Only for a scope that is shown whole: the peak of a part is not known. Of several that were folded into one it is at least
 * what they have now. */
static void set_peak(const struct view *v, const struct scope_node *n, struct report_row *row)
{
	bool is_minimum = n->peak_cnt > 1, was_higher = !is_minimum || n->peak_bytes >= row->value;

	if (!n->peak_cnt || hmap_get(&v->cut, &row->scope.path))
		return;
	row->peak = (struct report_peak){ .is_known = true,
					  .is_minimum = is_minimum,
					  .bytes = was_higher ? n->peak_bytes : row->value,
					  .time_ns = was_higher ? n->peak_time_ns : 0 };
}

static int name_row(struct view *v, uint32_t node)
{
	const struct scope_node *n = &v->tree->nodes.data[node];
	struct report_row *row = &v->rows.data[node];
	char *path = scope_tree_path(v->tree, node);

	if (!path)
		return -ENOMEM;
	row->name = strset_add(v->r->names, strset_get(v->tree->names, n->name_str));
	row->scope.path = strset_add(v->r->names, path);
	free(path);
	if (row->name < 0 || row->scope.path < 0)
		return -ENOMEM;
	set_peak(v, n, row);
	report_rank(v->r, row);
	return 0;
}

static size_t parent_slot(const struct view *v, uint32_t node)
{
	uint32_t parent = v->tree->nodes.data[node].parent;

	return parent == SCOPE_NO_NODE ? 0 : (size_t)parent + 1;
}

static int compare_brothers(const void *a, const void *b, void *ctx)
{
	const struct view *v = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	size_t u = parent_slot(v, x), w = parent_slot(v, y);

	if (u != w)
		return u < w ? -1 : 1;
	return report_compare_rows(&v->rows.data[x], &v->rows.data[y], v->r);
}

/* By the sort of the report (by value when sorted by name); among equals the ancestor first. */
static int compare_sizes(const void *a, const void *b, void *ctx)
{
	const struct view *v = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const struct report_row *p = &v->rows.data[x], *q = &v->rows.data[y];
	int64_t s = p->value, t = q->value;

	if (v->r->opts->sort == REPORT_SORT_OBJECTS) {
		s = p->objects;
		t = q->objects;
	} else if (v->r->opts->sort == REPORT_SORT_ALLOC) {
		s = p->alloc;
		t = q->alloc;
	}
	if (s != t)
		return s > t ? -1 : 1;
	return x < y ? -1 : x > y;
}

static int choose_shown(struct view *v)
{
	size_t cap = v->r->opts->row_cap, cnt = v->tree->nodes.cnt;

	if (cap && v->root != SCOPE_NO_NODE)
		cap += v->tree->nodes.data[v->root].depth; /* its ancestors, which are no rows */
	for (uint32_t i = 0; i < cnt; i++)
		if (vec_push(&v->order, i) || vec_push(&v->is_shown, !cap))
			return -ENOMEM;
	vec_sort_r(&v->order, compare_sizes, v);
	for (size_t i = 0; i < cap && i < cnt; i++)
		v->is_shown.data[v->order.data[i]] = true;
	/* A part is larger than the whole only where values are negative. */
	for (uint32_t i = 0; i < cnt; i++) {
		size_t parent = parent_slot(v, i);

		if (parent && !v->is_shown.data[parent - 1])
			v->is_shown.data[i] = false;
	}
	return 0;
}

static int find_children(struct view *v)
{
	size_t k = 0;

	vec_sort_r(&v->order, compare_brothers, v);
	for (size_t slot = 0; slot <= v->tree->nodes.cnt + 1; slot++) {
		while (k < v->order.cnt && parent_slot(v, v->order.data[k]) < slot)
			k++;
		if (vec_push(&v->first, k))
			return -ENOMEM;
	}
	return 0;
}

static int emit(struct view *v, uint32_t node, uint32_t depth);

/* Recursion ends with the tree's depth: SCOPE_DEPTH_MAX. */
static int emit_children(struct view *v, size_t slot, uint32_t depth)
{
	struct report_row other = { .name = strset_add(v->r->names, "(other)") };
	size_t row_cnt = v->r->rows.cnt;
	int err = other.name < 0 ? -ENOMEM : 0;

	for (size_t k = v->first.data[slot]; k < v->first.data[slot + 1] && !err; k++) {
		uint32_t node = v->order.data[k];

		if (v->is_shown.data[node])
			err = emit(v, node, depth);
		else
			report_add_row(&other, &v->rows.data[node]);
	}
	if (err || !other.row_cnt || (slot && v->r->rows.cnt == row_cnt))
		return err;
	other.scope.depth = depth;
	report_set_exclusive(&other);
	return vec_push(&v->r->rows, other);
}

static int emit(struct view *v, uint32_t node, uint32_t depth)
{
	struct report_row *row = &v->rows.data[node];
	int err;

	row->scope.depth = depth;
	v->r->has_peaks |= row->peak.is_known;
	err = vec_push(&v->r->rows, *row);
	return err ? err : emit_children(v, (size_t)node + 1, depth + 1);
}

/* The scope that was asked for is at the top, named by its whole path. */
static int emit_all(struct view *v)
{
	if (!v->r->opts->scope)
		return emit_children(v, 0, 0);
	if (v->root == SCOPE_NO_NODE)
		return 0;
	v->rows.data[v->root].name = v->rows.data[v->root].scope.path;
	return emit(v, v->root, 0);
}

int report_rows_by_scope(struct report *r)
{
	struct scope_tree tree;
	struct view v = { .r = r, .tree = &tree, .root = SCOPE_NO_NODE };
	int err = scope_tree_init(&tree, r->opts->folds_repeated);

	if (!err)
		err = add_samples(&v);
	if (!err)
		err = add_peaks(r, &tree);
	sum_up(&v);
	if (!err && r->opts->scope)
		err = scope_tree_find(&tree, r->opts->scope, &v.root);
	hmap_init(&v.cut, sizeof(int64_t));
	if (!err)
		err = find_cut(&v);
	for (uint32_t i = 0; i < tree.nodes.cnt && !err; i++)
		err = name_row(&v, i);
	if (!err)
		err = choose_shown(&v);
	if (!err)
		err = find_children(&v);
	if (!err)
		err = emit_all(&v);
	vec_release(&v.rows);
	vec_release(&v.order);
	vec_release(&v.first);
	vec_release(&v.is_shown);
	hmap_release(&v.cut);
	scope_tree_release(&tree);
	return err;
}
