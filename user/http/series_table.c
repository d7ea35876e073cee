/* SPDX-License-Identifier: MIT */
/* series_table.c - see series.h. */

#include "base/hmap.h"
#include "base/vec.h"
#include "http/series.h"

struct member {
	struct series_cell cell; /* of the program that runs now */
	double before_bytes, before_objects; /* allocated by the programs before */
};

struct process {
	struct series_process id;
	VEC(struct member) members; /* sorted by names */
	struct member other;
	bool has_other;
	bool is_seen; /* since the last sweep */
};

struct series_table {
	size_t max_cnt;
	struct hmap by_pid; /* uint32_t -> struct process, a record */
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
	free((char *)m->cell.scope);
	free((char *)m->cell.pool);
}

static void process_release(struct process *p)
{
	struct member *m;

	vec_each(&p->members, m)
		member_release(m);
	vec_release(&p->members);
}

static bool is_none_kept(void *record, const void *ctx)
{
	(void)ctx;
	process_release(record);
	return false;
}

void series_table_free(struct series_table *b)
{
	if (!b)
		return;
	hmap_keep_records(&b->by_pid, is_none_kept, NULL);
	hmap_release(&b->by_pid);
	vec_release(&b->outside);
	vec_release(&b->rows);
	free(b);
}

static void restart(struct member *m)
{
	m->before_bytes += m->cell.alloc_bytes;
	m->before_objects += m->cell.alloc_objects;
	m->cell.alloc_bytes = m->cell.alloc_objects = 0;
}

/* Return the process as it was; its counters are ready for the values of its current program. */
static struct process *get_process(struct series_table *b, const struct series_process *id)
{
	uint32_t key = (uint32_t)id->pid;
	struct process *p = hmap_record(&b->by_pid, &key);
	struct member *m;

	if (p && p->id.start != id->start) {
		process_release(p);
		*p = (struct process){ .id = *id };
		return p;
	}
	if (!p) {
		p = hmap_add_record(&b->by_pid, &key, sizeof(*p));
		if (p)
			p->id = *id;
		return p;
	}
	if (p->id.generation != id->generation) {
		restart(&p->other);
		vec_each(&p->members, m)
			restart(m);
		p->id.generation = id->generation;
	}
	return p;
}

static void set_member(struct member *m, const struct series_cell *cell)
{
	m->cell.inuse = cell->inuse;
	/* Sums of the same numbers in another order may differ in the last digit. */
	m->cell.alloc_bytes = fmax(m->cell.alloc_bytes, cell->alloc_bytes);
	m->cell.alloc_objects = fmax(m->cell.alloc_objects, cell->alloc_objects);
}

static int by_names(const void *a, const void *b)
{
	const struct series_cell *l = a, *r = b;
	int order = strcmp(l->scope, r->scope);

	return order ? order : strcmp(l->pool, r->pool);
}

/* Members begin with their cells. */
static struct member *find_member(const struct process *p, const struct series_cell *cell)
{
	return p->members.cnt ? bsearch(cell, p->members.data, p->members.cnt,
					sizeof(*p->members.data), by_names) :
				NULL;
}

static void add_cell(struct series_cell *to, const struct series_cell *cell)
{
	estimate_merge(&to->inuse, &cell->inuse);
	to->alloc_bytes += cell->alloc_bytes;
	to->alloc_objects += cell->alloc_objects;
}

/* A scope and a thread of that name cannot be told from the rest. */
static bool is_named_other(const struct series_cell *cell)
{
	return !strcmp(cell->scope, SERIES_OTHER) && !strcmp(cell->pool, SERIES_OTHER);
}

/* Give cells to their members; the others go to b->outside. */
static int sort_out(struct series_table *b, struct process *p, const struct series_cell *cells,
		    size_t cnt)
{
	struct member *m;
	int err = 0;

	b->outside.cnt = 0;
	vec_each(&p->members, m)
		memset(&m->cell.inuse, 0, sizeof(m->cell.inuse));
	for (size_t i = 0; i < cnt && !err; i++) {
		m = find_member(p, &cells[i]);
		if (m)
			set_member(m, &cells[i]);
		else
			err = vec_push(&b->outside, &cells[i]);
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

static int add_member(struct process *p, const struct series_cell *cell)
{
	struct member m = { .cell = *cell };

	m.cell.scope = strdup(cell->scope);
	m.cell.pool = strdup(cell->pool);
	if (!m.cell.scope || !m.cell.pool || vec_push(&p->members, m)) {
		member_release(&m);
		return -ENOMEM;
	}
	return 0;
}

/* While there is room, those of b->outside get a series, the largest first; all others are the rest. */
static int admit(struct series_table *b, struct process *p)
{
	struct series_cell rest = { 0 };
	int err = 0;

	if (b->outside.cnt)
		qsort(b->outside.data, b->outside.cnt, sizeof(*b->outside.data), by_size);
	for (size_t i = 0; i < b->outside.cnt && !err; i++) {
		const struct series_cell *cell = b->outside.data[i];

		if (p->members.cnt < b->max_cnt && !is_named_other(cell)) {
			err = add_member(p, cell);
			continue;
		}
		add_cell(&rest, cell);
		p->has_other = true;
	}
	set_member(&p->other, &rest);
	if (p->members.cnt)
		qsort(p->members.data, p->members.cnt, sizeof(*p->members.data), by_names);
	return err;
}

static int by_inuse(const void *a, const void *b)
{
	const struct series_cell *l = a, *r = b;

	return by_size(&l, &r);
}

static struct series_cell row_of(const struct member *m)
{
	struct series_cell row = m->cell;

	row.alloc_bytes += m->before_bytes;
	row.alloc_objects += m->before_objects;
	return row;
}

static int write_rows(struct series_table *b, const struct process *p,
		      struct series_cell *ret_total)
{
	struct series_cell other = row_of(&p->other);
	const struct member *m;
	int err = 0;

	b->rows.cnt = 0;
	*ret_total = other;
	vec_each(&p->members, m) {
		const struct series_cell row = row_of(m);

		add_cell(ret_total, &row);
		if (!err)
			err = vec_push(&b->rows, row);
	}
	if (b->rows.cnt)
		qsort(b->rows.data, b->rows.cnt, sizeof(*b->rows.data), by_inuse);
	other.scope = other.pool = SERIES_OTHER;
	if (!err && p->has_other && b->max_cnt)
		err = vec_push(&b->rows, other);
	return err;
}

int series_table_update(struct series_table *b, const struct series_process *process,
			const struct series_cell *cells, size_t cnt, struct series_cell *ret_total,
			const struct series_cell **ret, size_t *ret_cnt)
{
	struct process *p = get_process(b, process);
	int err;

	if (!p)
		return -ENOMEM;
	p->is_seen = true;
	err = sort_out(b, p, cells, cnt);
	if (!err)
		err = admit(b, p);
	if (!err)
		err = write_rows(b, p, ret_total);
	if (err)
		return err;
	*ret = b->rows.data;
	*ret_cnt = b->rows.cnt;
	return 0;
}

static bool was_seen(void *record, const void *ctx)
{
	struct process *p = record;
	bool is_seen = p->is_seen;

	(void)ctx;
	p->is_seen = false;
	if (!is_seen)
		process_release(p);
	return is_seen;
}

void series_table_sweep(struct series_table *b)
{
	hmap_keep_records(&b->by_pid, was_seen, NULL);
}
