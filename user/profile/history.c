/* SPDX-License-Identifier: MIT */
/*
 * history.c - see history.h.
 *
 * Each key has open lives, by first moment: the samples that were live at the last moment. When the next moment has
 * been read, the samples that are missing from an open life ended at the moment before, and become a closed life. Both
 * kinds are few: there are no more open lives than moments, and a key that only churns has one closed life for each
 * moment.
 *
 * A block whose malloc began before a moment and returned after it is not seen at that moment although it is older. It
 * is taken as live since its first moment, like all blocks of its age.
 *
 * Moments at equal distances would see a program that works in steps of about the same length always in another phase,
 * and take that for growth. So each moment is shifted by a random part of the distance.
 */
#include "profile/history.h"

#include "base/hmap.h"
#include "base/vec.h"

/* Reading all that is live may take one CPU's time divided by this: in the first seconds, when moments are close
 * together. With less, a short recording would have no moment in one of the windows of growth.h. */
#define COST_PART 50
/* With fewer moments, none are dropped to make room for lives. */
#define MOMENTS_LEAST 12

struct sums {
	uint64_t samples;
	double bytes, variance;
};

struct open_life {
	uint32_t first;
	struct sums before; /* at the last moment */
	struct sums now; /* at the moment that is being read */
};

struct row {
	VEC(struct open_life) open;
	VEC(struct history_life) closed;
};

struct history {
	struct history_moments moments;
	uint64_t interval_ns, seed;
	struct hmap row_by_key;
	VEC(struct row) rows;
	size_t life_cnt; /* of all rows, open and closed */
	bool is_open; /* between history_begin() and history_end() */
};

int history_new(uint64_t interval_ns, struct history **ret)
{
	struct history *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->interval_ns = interval_ns ? interval_ns : 1;
	h->seed = 0x9e3779b97f4a7c15ULL;
	hmap_init(&h->row_by_key, sizeof(struct history_key));
	*ret = h;
	return 0;
}

void history_free(struct history *h)
{
	struct row *row;

	if (!h)
		return;
	vec_each(&h->rows, row) {
		vec_release(&row->open);
		vec_release(&row->closed);
	}
	vec_release(&h->rows);
	hmap_release(&h->row_by_key);
	free(h);
}

static void add_sums(struct sums *to, const struct sums *s)
{
	to->samples += s->samples;
	to->bytes += s->bytes;
	to->variance += s->variance;
}

/* Merge lives of a row that have become equal; drop those that last for no remaining moment. */
static void tidy_closed(struct row *row)
{
	size_t kept = 0;

	for (size_t i = 0; i < row->closed.cnt; i++) {
		struct history_life *life = &row->closed.data[i];
		size_t k = 0;

		if (life->last == UINT32_MAX || life->first > life->last) /* no moment remains */
			continue;
		while (k < kept && (row->closed.data[k].first != life->first ||
				    row->closed.data[k].last != life->last))
			k++;
		if (k == kept) {
			row->closed.data[kept++] = *life;
			continue;
		}
		row->closed.data[k].samples += life->samples;
		row->closed.data[k].bytes += life->bytes;
		row->closed.data[k].variance += life->variance;
	}
	row->closed.cnt = kept;
}

static void tidy_open(struct row *row)
{
	size_t kept = 0;

	for (size_t i = 0; i < row->open.cnt; i++) {
		struct open_life *life = &row->open.data[i];
		size_t k = 0;

		while (k < kept && row->open.data[k].first != life->first)
			k++;
		if (k < kept)
			add_sums(&row->open.data[k].before, &life->before);
		else
			row->open.data[kept++] = *life;
	}
	row->open.cnt = kept;
}

static void tidy(struct history *h)
{
	struct row *row;

	h->life_cnt = 0;
	vec_each(&h->rows, row) {
		tidy_closed(row);
		tidy_open(row);
		h->life_cnt += row->open.cnt + row->closed.cnt;
	}
}

/* Drop every second moment: 0, 2, 4. A life then begins at the next remaining moment and ends at the one before. */
static void thin(struct history *h)
{
	struct history_life *closed;
	struct open_life *open;
	struct row *row;

	vec_each(&h->rows, row) {
		vec_each(&row->closed, closed) {
			closed->first /= 2;
			closed->last = (closed->last + 1) / 2 - 1; /* UINT32_MAX: no moment */
		}
		vec_each(&row->open, open)
			open->first /= 2;
	}
	for (uint32_t i = 1; i < h->moments.cnt; i += 2)
		h->moments.ns[i / 2] = h->moments.ns[i];
	h->moments.cnt /= 2;
	h->interval_ns *= 2;
	tidy(h);
}

void history_begin(struct history *h, uint64_t time_ns)
{
	struct open_life *open;
	struct row *row;

	while (h->life_cnt > HISTORY_LIVES_CAP && h->moments.cnt > MOMENTS_LEAST)
		thin(h);
	if (h->moments.cnt == HISTORY_MOMENTS_CAP)
		thin(h);
	h->moments.ns[h->moments.cnt++] = time_ns;
	vec_each(&h->rows, row)
		vec_each(&row->open, open)
			open->now = (struct sums){ 0 };
	h->is_open = true;
}

/* The first moment at or after the allocation. */
static uint32_t first_moment(const struct history *h, uint64_t alloc_ns)
{
	return (uint32_t)sorted_find(h->moments.ns, h->moments.cnt, sizeof(*h->moments.ns), 0,
				     alloc_ns, false);
}

/* NULL: no room; or no memory, with *ret_err set. */
static struct row *get_row(struct history *h, const struct history_key *key, int *ret_err)
{
	const uint64_t *known = hmap_get(&h->row_by_key, key);

	if (known)
		return &h->rows.data[*known];
	if (h->rows.cnt >= HISTORY_ROWS_CAP || h->life_cnt > 2 * HISTORY_LIVES_CAP) {
		h->moments.lost_cnt++;
		return NULL;
	}
	if (vec_push(&h->rows, (struct row){ 0 }) ||
	    hmap_put(&h->row_by_key, key, h->rows.cnt - 1)) {
		*ret_err = -ENOMEM;
		return NULL;
	}
	return &h->rows.data[h->rows.cnt - 1];
}

/* From the end, because most samples are young. */
static struct open_life *get_open(struct history *h, struct row *row, uint32_t first)
{
	for (size_t i = row->open.cnt; i--;)
		if (row->open.data[i].first == first)
			return &row->open.data[i];
	if (vec_push(&row->open, (struct open_life){ .first = first }))
		return NULL;
	h->life_cnt++;
	return &row->open.data[row->open.cnt - 1];
}

int history_add(struct history *h, const struct history_key *key, uint64_t alloc_ns,
		uint64_t size_bytes, double p)
{
	uint32_t first = first_moment(h, alloc_ns);
	struct open_life *life;
	struct row *row;
	int err = 0;
	double n = (double)size_bytes;

	if (!h->is_open || first >= h->moments.cnt)
		return 0;
	row = get_row(h, key, &err);
	if (!row)
		return err;
	life = get_open(h, row, first);
	if (!life)
		return -ENOMEM;
	life->now.samples++;
	life->now.bytes += n / p;
	life->now.variance += n * n * (1 - p) / (p * p);
	return 0;
}

/* Close lives: missing samples were there up to the moment before. The sums are differences of floating point, so
 * the count tells when nothing is left. */
static int close_lives(struct history *h, struct row *row)
{
	bool has_before = h->moments.cnt > 1;
	uint32_t last = h->moments.cnt - 2;
	size_t kept = 0;

	for (size_t i = 0; i < row->open.cnt; i++) {
		struct open_life life = row->open.data[i];

		if (has_before && life.before.samples > life.now.samples && life.first <= last) {
			struct history_life ended = {
				.first = life.first,
				.last = last,
				.samples = life.before.samples - life.now.samples,
				.bytes = life.before.bytes - life.now.bytes,
				.variance = life.before.variance - life.now.variance,
			};

			ended.bytes = ended.bytes > 0 ? ended.bytes : 0;
			ended.variance = ended.variance > 0 ? ended.variance : 0;
			if (vec_push(&row->closed, ended))
				return -ENOMEM;
			h->life_cnt++;
		}
		if (!life.now.samples) {
			h->life_cnt--;
			continue;
		}
		life.before = life.now;
		row->open.data[kept++] = life;
	}
	row->open.cnt = kept;
	return 0;
}

static uint64_t draw(struct history *h)
{
	h->seed ^= h->seed << 13;
	h->seed ^= h->seed >> 7;
	h->seed ^= h->seed << 17;
	return h->seed >> 16;
}

int history_end(struct history *h, uint64_t took_ns)
{
	uint64_t interval_ns = h->interval_ns;
	struct row *row;
	int err = 0;

	h->is_open = false;
	vec_each(&h->rows, row) {
		err = close_lives(h, row);
		if (err)
			return err;
	}
	if (took_ns * COST_PART > interval_ns)
		interval_ns = took_ns * COST_PART;
	h->moments.due_ns = h->moments.ns[h->moments.cnt - 1] + interval_ns - interval_ns / 4 +
			    draw(h) % (interval_ns / 2 + 1);
	return 0;
}

int history_finish(struct history *h)
{
	const struct open_life *open;
	struct row *row;

	vec_each(&h->rows, row) {
		vec_each(&row->open, open) {
			const struct history_life life = { open->first, h->moments.cnt - 1,
							   open->before.samples, open->before.bytes,
							   open->before.variance };

			if (life.first <= life.last && vec_push(&row->closed, life))
				return -ENOMEM;
		}
		row->open.cnt = 0;
	}
	return 0;
}

const struct history_life *history_lives(const struct history *h, const struct history_key *key,
					 size_t *ret_cnt)
{
	const uint64_t *known = hmap_get(&h->row_by_key, key);

	if (!known || !h->rows.data[*known].closed.cnt)
		return NULL;
	*ret_cnt = h->rows.data[*known].closed.cnt;
	return h->rows.data[*known].closed.data;
}

const struct history_moments *history_moments(const struct history *h)
{
	return &h->moments;
}

int history_put_moment(struct history *h, uint64_t time_ns)
{
	if (h->moments.cnt == HISTORY_MOMENTS_PUT_CAP)
		return -ENOSPC;
	h->moments.ns[h->moments.cnt++] = time_ns;
	return 0;
}

int history_put_life(struct history *h, const struct history_key *key,
		     const struct history_life *life)
{
	struct row *row;
	int err = 0;

	row = get_row(h, key, &err);
	return !row ? err : vec_push(&row->closed, *life);
}
