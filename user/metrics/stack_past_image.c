/* SPDX-License-Identifier: MIT */
/*
 * stack_past_image.c - brings the past of one image up to a moment; see stack_past.c. Internal to it.
 *
 * Each stack is built anew from what is kept of it and what is live now. Then those that fit are chosen, and the
 * others are added to the rest, of which only sums are kept: what is live, by the moment since when, and what has
 * ended, at each moment. So all that was held at a moment is the sum of what is kept, whatever was chosen.
 *
 * A stack that was in the rest is taken up as if it had begun now: its live part ends in the rest.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "metrics/stack_past_priv.h"

/* What a stack held counts half after some 40 minutes, with moments every ten seconds. */
#define RANK_KEPT 0.997F

/* A row being made. */
struct draft {
	struct past_row row;
	bool is_new, is_folded;
	double now_bytes;
	size_t life_first; /* index in the lives of struct work */
	const struct past_cell *cells;
	size_t cell_cnt;
};

/* The rows of one stack. */
struct group {
	size_t first, cnt;
	float rank_bytes;
};

struct work {
	struct past_image *im;
	uint8_t now;
	VEC(struct draft) drafts;
	VEC(struct past_life) lives;
	VEC(struct group) groups;
	struct past_sums
		rest_before[STACK_PAST_MOMENTS_CAP]; /* live at the previous moment, by begin */
	struct past_sums rest_live[STACK_PAST_MOMENTS_CAP];
	struct past_sums rest_ended[STACK_PAST_MOMENTS_CAP]; /* was live at that moment, and ended */
};

static void add_sums(struct past_sums *to, const struct past_sums *s)
{
	to->samples += s->samples;
	to->bytes += s->bytes;
	to->variance += s->variance;
	to->objects += s->objects;
}

static struct past_sums sums_of(const struct past_life *l)
{
	return (struct past_sums){ l->samples, l->bytes, (double)l->variance, (double)l->objects };
}

static struct past_life life_of(size_t first, size_t last, const struct past_sums *s)
{
	return (struct past_life){ .first = (uint8_t)first,
				   .last = (uint8_t)last,
				   .samples = (uint32_t)s->samples,
				   .bytes = s->bytes,
				   .variance = (float)s->variance,
				   .objects = (float)s->objects };
}

/* Return in ret what has ended of `before`. The count of samples shows when that is nothing; floating point does
 * not. */
static bool has_ended(const struct past_sums *before, const struct past_sums *now,
		      struct past_sums *ret)
{
	if (before->samples <= now->samples)
		return false;
	*ret = (struct past_sums){
		before->samples - now->samples,
		before->bytes > now->bytes ? before->bytes - now->bytes : 0,
		before->variance > now->variance ? before->variance - now->variance : 0,
		before->objects > now->objects ? before->objects - now->objects : 0,
	};
	return true;
}

static bool is_of(const struct past_cell *c, const struct past_row *row)
{
	return c->key.stack_id == row->stack_id && c->key.context_id == row->context_id;
}

static uint8_t begin_of(const struct past_cell *c, const struct past_row *row)
{
	return c->key.first > row->known ? (uint8_t)c->key.first : row->known;
}

static int put_live(struct work *w, struct draft *d, uint8_t first, const struct past_sums *s)
{
	d->now_bytes += s->bytes;
	return s->samples ? vec_push(&w->lives, life_of(first, PAST_OPEN, s)) : 0;
}

/* Add an open life: the part that has ended, and the part that lives on. */
static int put_both(struct work *w, struct draft *d, const struct past_life *before,
		    const struct past_sums *now)
{
	struct past_sums was = sums_of(before), gone;
	int err = 0;

	if (before->first < w->now && has_ended(&was, now, &gone))
		err = vec_push(&w->lives, life_of(before->first, w->now - 1U, &gone));
	return err ? err : put_live(w, d, before->first, now);
}

/* Build the lives of d from those until now, and from its cells; *cell is then behind these cells. */
static int build_lives(struct work *w, struct draft *d, const struct past_life *lives,
		       const struct past_cell **cell, const struct past_cell *end)
{
	const struct past_cell *c = *cell;
	int err = 0;

	for (uint32_t i = 0; i < d->row.life_cnt && !err; i++) {
		struct past_sums now = { 0 };

		if (lives[i].last != PAST_OPEN) {
			err = vec_push(&w->lives, lives[i]);
			continue;
		}
		for (;
		     c < end && is_of(c, &d->row) && begin_of(c, &d->row) < lives[i].first && !err;
		     c++)
			err = put_live(w, d, begin_of(c, &d->row), &c->sums);
		for (; c < end && is_of(c, &d->row) && begin_of(c, &d->row) == lives[i].first; c++)
			add_sums(&now, &c->sums);
		if (!err)
			err = put_both(w, d, &lives[i], &now);
	}
	for (; c < end && is_of(c, &d->row) && !err; c++)
		err = put_live(w, d, begin_of(c, &d->row), &c->sums);
	*cell = c;
	return err;
}

static int build_row(struct work *w, struct draft *d, const struct past_life *lives,
		     const struct past_cell **cell, const struct past_cell *end)
{
	int err;

	d->life_first = w->lives.cnt;
	d->cells = *cell;
	err = build_lives(w, d, lives, cell, end);
	d->cell_cnt = (size_t)(*cell - d->cells);
	if (err)
		return err;
	d->row.life_cnt =
		(uint32_t)past_tidy(w->lives.data + d->life_first, w->lives.cnt - d->life_first);
	w->lives.cnt = d->life_first + d->row.life_cnt;
	if (!d->row.life_cnt) /* it holds nothing, and held nothing at any remaining moment */
		return 0;
	d->row.rank_bytes *= RANK_KEPT;
	return vec_push(&w->drafts, *d);
}

static int compare_keys(const struct past_row *row, const struct past_cell *c)
{
	if (row->stack_id != c->key.stack_id)
		return row->stack_id < c->key.stack_id ? -1 : 1;
	return (row->context_id > c->key.context_id) - (row->context_id < c->key.context_id);
}

/* Merge what is kept and what is live. *cell is then at the cells of the rest. */
static int build_rows(struct work *w, const struct past_cell **cell, const struct past_cell *end)
{
	const struct past_image *im = w->im;
	const struct past_life *lives = im->lives;
	size_t i = 0;
	int err = 0;

	while (!err) {
		const struct past_row *row = &im->rows[i];
		bool has_row = i < im->row_cnt && row->stack_id != STACK_PAST_REST;
		bool has_cell = *cell < end && (*cell)->key.stack_id != STACK_PAST_REST;
		struct draft d = { 0 };

		if (!has_row && !has_cell)
			break;
		if (has_row && (!has_cell || compare_keys(row, *cell) <= 0)) {
			d.row = *row;
			i++;
		} else {
			d.is_new = true;
			d.row = (struct past_row){ .stack_id = (*cell)->key.stack_id,
						   .context_id = (*cell)->key.context_id,
						   .known = im->first };
		}
		err = build_row(w, &d, lives, cell, end);
		lives += d.is_new ? 0 : row->life_cnt;
	}
	return err;
}

static int group_rows(struct work *w)
{
	for (size_t i = 0, cnt; i < w->drafts.cnt; i += cnt) {
		struct group g = { .first = i };
		double now_bytes = 0;

		for (cnt = 0; i + cnt < w->drafts.cnt; cnt++) {
			const struct draft *d = &w->drafts.data[i + cnt];

			if (d->row.stack_id != w->drafts.data[i].row.stack_id)
				break;
			now_bytes += d->now_bytes;
			if (d->row.rank_bytes > g.rank_bytes)
				g.rank_bytes = d->row.rank_bytes;
		}
		g.cnt = cnt;
		if ((double)g.rank_bytes < now_bytes)
			g.rank_bytes = (float)now_bytes;
		if (vec_push(&w->groups, g))
			return -ENOMEM;
	}
	return 0;
}

static int compare_groups(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	if (x->rank_bytes != y->rank_bytes)
		return x->rank_bytes > y->rank_bytes ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

static size_t entries_of(const struct work *w, const struct group *g)
{
	size_t cnt = g->cnt;

	for (size_t i = g->first; i < g->first + g->cnt; i++)
		cnt += w->drafts.data[i].row.life_cnt;
	return cnt;
}

static void add_ended(struct past_sums *ended, const struct past_life *life)
{
	const struct past_sums s = sums_of(life);

	for (size_t at = life->first; at <= life->last; at++)
		add_sums(&ended[at], &s);
}

/* Turn the ended lives of a row into single moments, if these are fewer. */
static void flatten(struct work *w, struct draft *d)
{
	struct past_sums ended[STACK_PAST_MOMENTS_CAP] = { 0 };
	struct past_life *lives = w->lives.data + d->life_first;
	size_t open_cnt = 0, single_cnt = 0;

	for (uint32_t i = 0; i < d->row.life_cnt; i++)
		if (lives[i].last != PAST_OPEN)
			add_ended(ended, &lives[i]);
	for (size_t at = 0; at < w->now; at++)
		single_cnt += ended[at].samples > 0;
	for (uint32_t i = 0; i < d->row.life_cnt; i++)
		open_cnt += lives[i].last == PAST_OPEN;
	if (open_cnt + single_cnt >= d->row.life_cnt)
		return;
	open_cnt = 0;
	for (uint32_t i = 0; i < d->row.life_cnt; i++)
		if (lives[i].last == PAST_OPEN)
			lives[open_cnt++] = lives[i];
	for (size_t at = 0; at < w->now; at++)
		if (ended[at].samples)
			lives[open_cnt++] = life_of(at, at, &ended[at]);
	d->row.life_cnt = (uint32_t)past_tidy(lives, open_cnt);
	d->row.is_flat = true;
}

/* Keep the stacks that hold most, as long as there is room; mark the others as folded. */
static void choose(struct work *w, size_t cap)
{
	size_t rest_most = 2U * (w->now + 1U) + 1, used = 0;
	struct group *g;

	vec_each(&w->groups, g)
		used += entries_of(w, g);
	if (!used || used + (w->im->has_rest ? rest_most : 0) <= cap)
		return;
	cap = cap > rest_most ? cap - rest_most : 0;
	qsort(w->groups.data, w->groups.cnt, sizeof(*w->groups.data), compare_groups);
	used = 0;
	vec_each(&w->groups, g) {
		if (used + entries_of(w, g) > cap)
			for (size_t i = g->first; i < g->first + g->cnt; i++)
				flatten(w, &w->drafts.data[i]);
		if (used + entries_of(w, g) <= cap) {
			used += entries_of(w, g);
			continue;
		}
		for (size_t i = g->first; i < g->first + g->cnt; i++)
			w->drafts.data[i].is_folded = true;
	}
}

static void read_rest(struct work *w)
{
	const struct past_image *im = w->im;
	const struct past_row *row = im->row_cnt ? &im->rows[im->row_cnt - 1] : NULL;
	const struct past_life *life = im->lives + im->life_cnt;

	if (!row || row->stack_id != STACK_PAST_REST)
		return;
	for (uint32_t i = 0; i < row->life_cnt; i++) {
		const struct past_sums s = sums_of(--life);

		if (life->last == PAST_OPEN)
			add_sums(&w->rest_before[life->first], &s);
		else
			add_ended(w->rest_ended, life);
	}
}

static void subtract(struct past_sums *from, const struct past_sums *s)
{
	struct past_sums left = { 0 };

	(void)has_ended(from, s, &left);
	*from = left;
}

/* Add a row to the rest. What was in the rest before the row was taken up counted as ended there; now it has been
 * there all the time. */
static void fold(struct work *w, const struct draft *d)
{
	const struct past_life *life = w->lives.data + d->life_first;
	const struct past_cell *c = d->cells;

	for (uint32_t i = 0; i < d->row.life_cnt; i++)
		if (life[i].last != PAST_OPEN)
			add_ended(w->rest_ended, &life[i]);
	for (; c < d->cells + d->cell_cnt; c++) {
		add_sums(&w->rest_live[c->key.first], &c->sums);
		for (size_t at = c->key.first; at < d->row.known && !d->is_new; at++)
			subtract(&w->rest_ended[at], &c->sums);
	}
}

/*
 * Make the rest. New stacks may have been in it until now, and others may have left it: what was live in it and is
 * not any more has ended there. Then add stacks that were kept until now.
 */
static void make_rest(struct work *w, const struct past_cell *cell, const struct past_cell *end)
{
	const struct draft *d;
	struct past_sums gone;

	read_rest(w);
	for (; cell < end; cell++)
		add_sums(&w->rest_live[cell->key.first], &cell->sums);
	vec_each(&w->drafts, d)
		if (d->is_folded && d->is_new)
			fold(w, d);
	for (size_t first = 0; first < w->now; first++)
		if (has_ended(&w->rest_before[first], &w->rest_live[first], &gone))
			for (size_t at = first; at < w->now; at++)
				add_sums(&w->rest_ended[at], &gone);
	vec_each(&w->drafts, d)
		if (d->is_folded && !d->is_new)
			fold(w, d);
}

/* Let a row begin now that may have been in the rest until now. */
static void begin_now(struct work *w, struct draft *d)
{
	struct past_life *lives = w->lives.data + d->life_first;

	for (uint32_t i = 0; i < d->row.life_cnt; i++)
		lives[i].first = w->now;
	d->row.life_cnt = (uint32_t)past_tidy(lives, d->row.life_cnt);
	d->row.known = w->now;
}

static size_t rest_cnt(const struct work *w)
{
	size_t cnt = 0;

	for (size_t at = 0; at <= w->now; at++)
		cnt += (w->rest_live[at].samples > 0) + (w->rest_ended[at].samples > 0);
	return cnt;
}

static void emit_rest(const struct work *w, struct past_image *im)
{
	struct past_life *lives = im->lives + im->life_cnt;
	size_t cnt = 0;

	for (size_t at = 0; at <= w->now; at++) {
		if (w->rest_ended[at].samples)
			lives[cnt++] = life_of(at, at, &w->rest_ended[at]);
		if (w->rest_live[at].samples)
			lives[cnt++] = life_of(at, PAST_OPEN, &w->rest_live[at]);
	}
	im->rows[im->row_cnt++] = (struct past_row){ .stack_id = STACK_PAST_REST,
						     .life_cnt = (uint32_t)cnt,
						     .known = im->first,
						     .is_flat = true };
	im->life_cnt += (uint32_t)cnt;
}

/* Store the result in memory of exactly its size. */
static int emit(struct work *w)
{
	struct past_image made = *w->im;
	size_t row_cnt = 0, life_cnt = 0, rest = rest_cnt(w);
	struct draft *d;

	vec_each(&w->drafts, d) {
		if (d->is_folded)
			continue;
		if (d->is_new && w->im->has_rest)
			begin_now(w, d);
		row_cnt++;
		life_cnt += d->row.life_cnt;
	}
	made.rows = calloc(row_cnt + 1, sizeof(*made.rows));
	made.lives = calloc(life_cnt + rest + 1, sizeof(*made.lives));
	if (!made.rows || !made.lives) {
		free(made.rows);
		free(made.lives);
		return -ENOMEM;
	}
	made.row_cnt = made.life_cnt = 0;
	vec_each(&w->drafts, d) {
		if (d->is_folded)
			continue;
		memcpy(made.lives + made.life_cnt, w->lives.data + d->life_first,
		       d->row.life_cnt * sizeof(*made.lives));
		made.life_cnt += d->row.life_cnt;
		made.rows[made.row_cnt++] = d->row;
	}
	made.has_rest = rest > 0;
	if (rest)
		emit_rest(w, &made);
	free(w->im->rows);
	free(w->im->lives);
	*w->im = made;
	return 0;
}

int past_image_update(struct past_image *im, const struct past_cell *cells, size_t cell_cnt,
		      uint8_t now, size_t cap)
{
	const struct past_cell *cell = cells, *end = cells + cell_cnt;
	struct work *w = calloc(1, sizeof(*w));
	const struct group *g;
	int err;

	if (!w)
		return -ENOMEM;
	w->im = im;
	w->now = now;
	err = build_rows(w, &cell, end);
	if (!err)
		err = group_rows(w);
	if (!err) {
		vec_each(&w->groups, g)
			for (size_t i = g->first; i < g->first + g->cnt; i++)
				w->drafts.data[i].row.rank_bytes = g->rank_bytes;
		choose(w, cap);
		make_rest(w, cell, end);
		err = emit(w);
	}
	vec_release(&w->drafts);
	vec_release(&w->lives);
	vec_release(&w->groups);
	free(w);
	return err;
}

void past_image_release(struct past_image *im)
{
	free(im->rows);
	free(im->lives);
	im->rows = NULL;
	im->lives = NULL;
	im->row_cnt = im->life_cnt = 0;
}

const struct past_row *past_image_row(const struct past_image *im, uint64_t stack_id,
				      uint32_t context_id)
{
	const struct past_cell key = { .key = { .stack_id = stack_id, .context_id = context_id } };
	size_t low = 0, high = im->row_cnt;

	while (low < high) {
		size_t mid = (low + high) / 2;
		int order = compare_keys(&im->rows[mid], &key);

		if (!order)
			return &im->rows[mid];
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}
