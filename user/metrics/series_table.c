/* SPDX-License-Identifier: MIT */
/* series_table.c - see series_table.h. */
#include "metrics/series_table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hmap.h"
#include "base/vec.h"
#include "metrics/series.h"

/* A pair without a series must be larger than one with a series by this factor. */
#define REPLACE_FACTOR 1.25

/* A cumulative value: of the program that runs now, and of all programs. */
struct counter {
	double last, value;
};

struct counters {
	struct counter bytes, objects;
};

struct member {
	char *scope, *pool;
	struct counters counters;
	struct estimate inuse;
};

struct process {
	struct series_process id;
	VEC(struct member) members; /* sorted by names */
	struct counters total;
	double other_bytes, other_objects;
	bool has_other;
	bool is_seen; /* since the last sweep */
};

struct series_table {
	size_t max_cnt;
	struct hmap by_pid; /* uint32_t -> struct process * */
	VEC(const struct series_cell *) outside; /* cells without a series */
	VEC(struct series_cell) rows;
};

int series_table_new(size_t max_cnt, struct series_table **ret)
{
	struct series_table *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->max_cnt = max_cnt;
	hmap_init(&b->by_pid, sizeof(uint32_t));
	*ret = b;
	return 0;
}

static void member_release(struct member *m)
{
	free(m->scope);
	free(m->pool);
}

static void process_free(struct process *p)
{
	struct member *m;

	if (!p)
		return;
	vec_each(&p->members, m)
		member_release(m);
	vec_release(&p->members);
	free(p);
}

void series_table_free(struct series_table *b)
{
	size_t pos = 0;
	const void *key;
	uint64_t p;

	if (!b)
		return;
	while (hmap_next(&b->by_pid, &pos, &key, &p))
		process_free((struct process *)(uintptr_t)p);
	hmap_release(&b->by_pid);
	vec_release(&b->outside);
	vec_release(&b->rows);
	free(b);
}

static struct process *add_process(struct series_table *b, const struct series_process *id)
{
	struct process *p = calloc(1, sizeof(*p));
	uint32_t key = (uint32_t)id->pid;

	if (!p)
		return NULL;
	p->id = *id;
	if (hmap_put(&b->by_pid, &key, (uintptr_t)p)) {
		free(p);
		return NULL;
	}
	return p;
}

static void restart(struct counters *c)
{
	c->bytes.last = c->objects.last = 0;
}

/* Return the process as it was; its counters are ready for the values of its current program. */
static struct process *get_process(struct series_table *b, const struct series_process *id)
{
	uint32_t key = (uint32_t)id->pid;
	const uint64_t *known = hmap_get(&b->by_pid, &key);
	struct process *p = known ? (struct process *)(uintptr_t)*known : NULL;
	struct member *m;

	if (p && p->id.start != id->start) {
		hmap_del(&b->by_pid, &key);
		process_free(p);
		p = NULL;
	}
	if (!p)
		return add_process(b, id);
	if (p->id.generation != id->generation) {
		restart(&p->total);
		vec_each(&p->members, m)
			restart(&m->counters);
		p->id.generation = id->generation;
	}
	return p;
}

static void advance(struct counter *c, double now)
{
	/* Sums of the same numbers in another order may differ in the last digit. */
	if (now > c->last) {
		c->value += now - c->last;
		c->last = now;
	}
}

static void advance_both(struct counters *c, double bytes, double objects)
{
	advance(&c->bytes, bytes);
	advance(&c->objects, objects);
}

static int compare_names(const char *scope, const char *pool, const struct member *m)
{
	int order = strcmp(scope, m->scope);

	return order ? order : strcmp(pool, m->pool);
}

static int by_names(const void *key, const void *element)
{
	const struct series_cell *cell = key;

	return compare_names(cell->scope, cell->pool, element);
}

static int members_by_names(const void *a, const void *b)
{
	const struct member *m = a;

	return compare_names(m->scope, m->pool, b);
}

static struct member *find_member(const struct process *p, const struct series_cell *cell)
{
	return p->members.cnt ? bsearch(cell, p->members.data, p->members.cnt,
					sizeof(*p->members.data), by_names) :
				NULL;
}

/* A scope and a thread of that name cannot be told from the rest. */
static bool is_named_other(const struct series_cell *cell)
{
	return !strcmp(cell->scope, SERIES_OTHER) && !strcmp(cell->pool, SERIES_OTHER);
}

/* Give cells to their members; put those without a member into b->outside, or directly into the rest. */
static int sort_out(struct series_table *b, struct process *p, const struct series_cell *cells,
		    size_t cnt, struct estimate *ret_rest)
{
	struct member *m;
	int err = 0;

	b->outside.cnt = 0;
	vec_each(&p->members, m)
		memset(&m->inuse, 0, sizeof(m->inuse));
	for (size_t i = 0; i < cnt && !err; i++) {
		if (is_named_other(&cells[i])) {
			estimate_merge(ret_rest, &cells[i].inuse);
			p->has_other = true;
			continue;
		}
		m = find_member(p, &cells[i]);
		if (!m) {
			err = vec_push(&b->outside, &cells[i]);
			continue;
		}
		m->inuse = cells[i].inuse;
		advance_both(&m->counters, cells[i].alloc_bytes, cells[i].alloc_objects);
	}
	return err;
}

static int by_size(const void *a, const void *b)
{
	const struct series_cell *l = *(const struct series_cell *const *)a;
	const struct series_cell *r = *(const struct series_cell *const *)b;

	if (l->inuse.bytes != r->inuse.bytes)
		return l->inuse.bytes > r->inuse.bytes ? -1 : 1;
	return (l->alloc_bytes < r->alloc_bytes) - (l->alloc_bytes > r->alloc_bytes);
}

/* Add a member; it counts from 0, or all that it has allocated if nobody counted that before. */
static int add_member(struct process *p, const struct series_cell *cell, bool is_new)
{
	struct member m = {
		.scope = strdup(cell->scope),
		.pool = strdup(cell->pool),
		.inuse = cell->inuse,
		.counters = { { .last = cell->alloc_bytes }, { .last = cell->alloc_objects } },
	};

	if (is_new) {
		m.counters.bytes.value = cell->alloc_bytes;
		m.counters.objects.value = cell->alloc_objects;
	}
	if (!m.scope || !m.pool || vec_push(&p->members, m)) {
		member_release(&m);
		return -ENOMEM;
	}
	return 0;
}

static size_t smallest_member(const struct process *p)
{
	size_t smallest = 0;

	for (size_t i = 1; i < p->members.cnt; i++)
		if (p->members.data[i].inuse.bytes < p->members.data[smallest].inuse.bytes)
			smallest = i;
	return smallest;
}

static void remove_member(struct process *p, size_t i)
{
	member_release(&p->members.data[i]);
	p->members.data[i] = p->members.data[--p->members.cnt];
}

/*
 * Give series to the largest of b->outside; those from *ret_first on get none. What members that lose their series
 * hold goes to *ret_rest. If there was no rest before, all of b->outside is new.
 */
static int promote(struct series_table *b, struct process *p, bool had_other, size_t *ret_first,
		   struct estimate *ret_rest)
{
	size_t i = 0;
	int err = 0;

	if (b->outside.cnt)
		qsort(b->outside.data, b->outside.cnt, sizeof(*b->outside.data), by_size);
	for (; i < b->outside.cnt && !err; i++) {
		const struct series_cell *cell = b->outside.data[i];

		if (p->members.cnt == b->max_cnt) {
			size_t smallest = b->max_cnt ? smallest_member(p) : 0;

			if (!b->max_cnt ||
			    cell->inuse.bytes <=
				    REPLACE_FACTOR * p->members.data[smallest].inuse.bytes)
				break;
			estimate_merge(ret_rest, &p->members.data[smallest].inuse);
			remove_member(p, smallest);
			p->has_other = true;
		}
		err = add_member(p, cell, !had_other);
	}
	if (i)
		qsort(p->members.data, p->members.cnt, sizeof(*p->members.data), members_by_names);
	*ret_first = i;
	return err;
}

static int by_inuse(const void *a, const void *b)
{
	const struct series_cell *l = a, *r = b;

	if (l->inuse.bytes != r->inuse.bytes)
		return l->inuse.bytes > r->inuse.bytes ? -1 : 1;
	return (l->alloc_bytes < r->alloc_bytes) - (l->alloc_bytes > r->alloc_bytes);
}

/* Count what no member has counted; never decreases. */
static void count_other(struct process *p)
{
	double bytes = p->total.bytes.value, objects = p->total.objects.value;
	const struct member *m;

	vec_each(&p->members, m) {
		bytes -= m->counters.bytes.value;
		objects -= m->counters.objects.value;
	}
	if (bytes > p->other_bytes)
		p->other_bytes = bytes;
	if (objects > p->other_objects)
		p->other_objects = objects;
}

static int write_rows(struct series_table *b, struct process *p, const struct estimate *rest)
{
	const struct member *m;
	int err = 0;

	b->rows.cnt = 0;
	vec_each(&p->members, m) {
		struct series_cell row = {
			.scope = m->scope,
			.pool = m->pool,
			.inuse = m->inuse,
			.alloc_bytes = m->counters.bytes.value,
			.alloc_objects = m->counters.objects.value,
		};

		err = vec_push(&b->rows, row);
		if (err)
			return err;
	}
	if (b->rows.cnt)
		qsort(b->rows.data, b->rows.cnt, sizeof(*b->rows.data), by_inuse);
	if (p->has_other && b->max_cnt) {
		struct series_cell row = {
			.scope = SERIES_OTHER,
			.pool = SERIES_OTHER,
			.inuse = *rest,
		};

		count_other(p);
		row.alloc_bytes = p->other_bytes;
		row.alloc_objects = p->other_objects;
		err = vec_push(&b->rows, row);
	}
	return err;
}

static void sum_up(struct process *p, const struct series_cell *cells, size_t cnt,
		   struct series_cell *ret)
{
	struct series_cell sum = { 0 };

	for (size_t i = 0; i < cnt; i++) {
		estimate_merge(&sum.inuse, &cells[i].inuse);
		sum.alloc_bytes += cells[i].alloc_bytes;
		sum.alloc_objects += cells[i].alloc_objects;
	}
	advance_both(&p->total, sum.alloc_bytes, sum.alloc_objects);
	sum.alloc_bytes = p->total.bytes.value;
	sum.alloc_objects = p->total.objects.value;
	*ret = sum;
}

int series_table_update(struct series_table *b, const struct series_process *process,
			const struct series_cell *cells, size_t cnt, struct series_cell *ret_total,
			const struct series_cell **ret, size_t *ret_cnt)
{
	struct process *p = get_process(b, process);
	struct estimate rest = { 0 };
	bool has_other;
	size_t first = 0;
	int err;

	if (!p)
		return -ENOMEM;
	p->is_seen = true;
	has_other = p->has_other;
	sum_up(p, cells, cnt, ret_total);
	err = sort_out(b, p, cells, cnt, &rest);
	if (!err)
		err = promote(b, p, has_other, &first, &rest);
	if (err)
		return err;
	for (size_t i = first; i < b->outside.cnt; i++)
		estimate_merge(&rest, &b->outside.data[i]->inuse);
	if (first < b->outside.cnt)
		p->has_other = true;
	err = write_rows(b, p, &rest);
	if (err)
		return err;
	*ret = b->rows.data;
	*ret_cnt = b->rows.cnt;
	return 0;
}

void series_table_sweep(struct series_table *b)
{
	VEC(uint32_t) gone = { 0 };
	size_t pos = 0;
	const void *key;
	uint64_t value;

	while (hmap_next(&b->by_pid, &pos, &key, &value)) {
		struct process *p = (struct process *)(uintptr_t)value;

		/* Without memory, forget it later. */
		if (!p->is_seen && !vec_push(&gone, (uint32_t)p->id.pid))
			process_free(p);
		else
			p->is_seen = false;
	}
	for (size_t i = 0; i < gone.cnt; i++)
		hmap_del(&b->by_pid, &gone.data[i]);
	vec_release(&gone);
}
