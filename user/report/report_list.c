/* SPDX-License-Identifier: MIT */
/* report_list.c - see report_list.h. */
#include "report/report_list.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/report_places.h"
#include "report/report_rows.h"
#include "report/report_text.h"

#define CALLERS_BUF 2048

struct report_list {
	struct report_options opts;
	struct report *r;
	struct report_places places; /* by stack */
	VEC(struct report_list_row) rows;
	VEC(size_t) source; /* of each row: index in places or r->rows */
	struct report_list_row total;
};

static int set_numbers(struct report_list *l, const struct report_row *row,
		       struct report_list_row *ret)
{
	const struct report *r = l->r;
	bool is_known = r->is_inuse && !r->is_unknown;
	char error[REPORT_INTERVAL_BUF] = "";

	ret->held_bytes = is_known ? (double)row->value : NAN;
	ret->blocks = is_known && r->objects_type >= 0 ? (double)row->objects : NAN;
	ret->held_variance = is_known && r->has_interval ? row->estimate.bytes_variance : NAN;
	ret->alloc_bytes = r->alloc_type >= 0 ? report_alloc(row) :
			   r->is_alloc	      ? report_value(row) :
						NAN;
	ret->is_weak = is_known && report_is_weak(r, row);
	if (is_known)
		report_format_short_interval(r, row, error);
	ret->error = strset_keep(l->r->names, error);
	return ret->error ? 0 : -ENOMEM;
}

/* "Store::put store.cc:12 (vector grows)" */
static void name_own(const struct report_named_place *n, char *buf, size_t buf_bytes)
{
	snprintf(buf, buf_bytes, "%s%s%s%s%s", n->own.name, n->own.place, n->hint ? " (" : "",
		 n->hint ? n->hint : "", n->hint ? ")" : "");
}

/* The key of a stack has what report_find_places() groups by. */
static int name_place(struct report_list *l, const struct report_row *row,
		      struct report_list_row *ret)
{
	struct report_named_place n;
	char name[2 * REPORT_NAME_BUF], key[4 * REPORT_NAME_BUF], callers[CALLERS_BUF] = "";
	size_t used = 0;

	report_name_place(l->r, row, &n);
	name_own(&n, name, sizeof(name));
	for (size_t i = 0; i < n.caller_cnt && used < sizeof(callers); i++)
		used += (size_t)snprintf(callers + used, sizeof(callers) - used, "%s< %s%s",
					 i ? " " : "", n.caller[i].name, n.caller[i].place);
	ret->name = strset_keep(l->r->names, name);
	ret->callers = strset_keep(l->r->names, callers);
	report_strip_tier(n.own.name);
	report_strip_tier(n.caller[0].name);
	name_own(&n, name, sizeof(name));
	snprintf(key, sizeof(key), "%s < %s%s", name, n.caller[0].name, n.caller[0].place);
	ret->key = strset_keep(l->r->names, key);
	return ret->key && ret->name && ret->callers ? 0 : -ENOMEM;
}

static int name_row(struct report_list *l, const struct report_row *row,
		    struct report_list_row *ret)
{
	bool is_scope = l->opts.by == REPORT_BY_SCOPE && row->scope.path;

	if (l->opts.by == REPORT_BY_STACK)
		return name_place(l, row, ret);
	ret->name = strset_get(l->r->names, row->name);
	ret->key = is_scope ? strset_get(l->r->names, row->scope.path) : ret->name;
	ret->callers = "";
	ret->depth = row->scope.depth;
	return 0;
}

static int add_row(struct report_list *l, const struct report_row *row, size_t source)
{
	struct report_list_row to = { 0 };
	int err = name_row(l, row, &to);

	if (!err)
		err = set_numbers(l, row, &to);
	if (!err)
		err = vec_push(&l->rows, to);
	return err ? err : vec_push(&l->source, source);
}

/* A caller without values of its own is not listed. */
static bool is_nothing(const struct report_row *row)
{
	return !row->value && !row->alloc && !row->objects;
}

static int add_rows(struct report_list *l)
{
	const struct report_row *rows = l->r->rows.data;
	size_t cnt = l->r->rows.cnt;
	int err = 0;

	if (l->opts.by == REPORT_BY_STACK) {
		err = report_find_places(l->r, &l->places);
		rows = l->places.data;
		cnt = l->places.cnt;
	}
	for (size_t i = 0; i < cnt && !err; i++)
		if (!is_nothing(&rows[i]))
			err = add_row(l, &rows[i], i);
	l->total = (struct report_list_row){ .key = "", .name = "", .callers = "" };
	return err ? err : set_numbers(l, &l->r->total, &l->total);
}

int report_list_new(const struct profile *p, const struct report_options *opts,
		    struct report_list **ret)
{
	struct report_list *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->opts = *opts;
	l->opts.value = REPORT_VALUE_INUSE;
	l->opts.format = REPORT_TEXT;
	l->opts.row_cap = 0;
	err = report_open(p, &l->opts, &l->r);
	if (!err)
		err = add_rows(l);
	if (err)
		report_list_free(l);
	else
		*ret = l;
	return err;
}

void report_list_free(struct report_list *l)
{
	if (!l)
		return;
	vec_release(&l->rows);
	vec_release(&l->source);
	vec_release(&l->places);
	report_close(l->r);
	free(l);
}

size_t report_list_cnt(const struct report_list *l)
{
	return l->rows.cnt;
}

const struct report_list_row *report_list_at(const struct report_list *l, size_t i)
{
	return &l->rows.data[i];
}

const struct report_list_row *report_list_total(const struct report_list *l)
{
	return &l->total;
}

const char *report_list_frame(const struct report_list *l, size_t i, size_t n,
			      char buf[REPORT_LIST_FRAME_BUF])
{
	const struct report_row *row;
	struct report_frame_pos pos = { 0 };
	struct report_frame f;
	struct report_named named;

	if (l->opts.by != REPORT_BY_STACK)
		return NULL;
	row = &l->places.data[l->source.data[i]];
	if (!row->sample_cnt)
		return NULL;
	for (size_t k = 0; k <= n; k++)
		if (!report_next_frame(l->r->p,
				       &l->r->p->samples.data[l->r->order.data[row->sample_first]],
				       &pos, &f))
			return NULL;
	report_name_frame(l->r, &f, &named);
	snprintf(buf, REPORT_LIST_FRAME_BUF, "%s%s", named.name, named.place);
	return buf;
}
