/* SPDX-License-Identifier: MIT */
/* stack_past_read.c - reads the past; see stack_past.h. It changes nothing. */
#include <errno.h>

#include "metrics/stack_past_priv.h"

size_t stack_past_moments(const struct stack_past *p, uint64_t image,
			  const struct stack_past_moment **ret)
{
	const struct past_image *im = past_find(p, image);

	if (!im)
		return 0;
	*ret = p->moments + im->first;
	return p->moment_cnt - im->first;
}

static int put_row(struct history *h, const struct past_image *im, const struct past_row *row,
		   const struct past_life *lives, size_t from, size_t last)
{
	const struct history_key key = { .stack_id = row->stack_id,
					 .image = im->image,
					 .context_id = row->context_id };
	int err = 0;

	for (uint32_t i = 0; i < row->life_cnt && !err; i++) {
		struct history_life life = {
			.first = lives[i].first > from ? (uint32_t)(lives[i].first - from) : 0,
			.last = (uint32_t)((lives[i].last == PAST_OPEN ? last : lives[i].last) -
					   from),
			.samples = lives[i].samples,
			.bytes = lives[i].bytes,
			.variance = (double)lives[i].variance,
		};

		if (lives[i].last >= from)
			err = history_put_life(h, &key, &life);
	}
	return err;
}

int stack_past_history(const struct stack_past *p, uint64_t image, uint64_t from_ns,
		       struct history **ret, bool *ret_is_partial)
{
	const struct past_image *im = past_find(p, image);
	const struct past_life *lives;
	struct history *h = NULL;
	size_t from;
	int err;

	if (!im)
		return -ENOENT;
	for (from = im->first; from < p->moment_cnt && p->moments[from].time_ns < from_ns;)
		from++;
	if (from == p->moment_cnt)
		return -ENOENT;
	err = history_new(p->interval_ns, &h);
	for (size_t i = from; i < p->moment_cnt && !err; i++)
		err = history_put_moment(h, p->moments[i].time_ns);
	*ret_is_partial = false;
	lives = im->lives;
	for (uint32_t i = 0; i < im->row_cnt && !err; lives += im->rows[i++].life_cnt) {
		if (im->rows[i].is_flat || im->rows[i].known > from)
			*ret_is_partial = true;
		else
			err = put_row(h, im, &im->rows[i], lives, from, p->moment_cnt - 1);
	}
	if (err)
		history_free(h);
	else
		*ret = h;
	return err;
}

static void add_life(struct estimate at[2], const struct past_life *life, size_t before,
		     size_t after)
{
	bool has[2] = { life->first <= before && before <= life->last,
			life->first <= after && after <= life->last };

	for (int i = 0; i < 2; i++) {
		if (!has[i])
			continue;
		at[i].samples += life->samples;
		at[i].bytes += life->bytes;
		at[i].objects += (double)life->objects;
		if (!has[!i] || before == after)
			at[i].bytes_variance += (double)life->variance;
	}
}

int stack_past_compare(const struct stack_past *p, uint64_t image, size_t before, size_t after,
		       stack_past_pair_fn fn, void *ctx)
{
	struct history_key key = { .image = image, .stack_id = STACK_PAST_REST };
	const struct past_image *im = past_find(p, image);
	struct estimate rest[2] = { 0 };
	const struct past_life *lives;
	int err = 0;

	if (!im)
		return -ENOENT;
	before += im->first;
	after += im->first;
	lives = im->lives;
	for (uint32_t i = 0; i < im->row_cnt && !err; lives += im->rows[i++].life_cnt) {
		const struct past_row *row = &im->rows[i];
		bool is_rest = row->known > before || row->stack_id == STACK_PAST_REST;
		const struct history_key of = { .image = image,
						.stack_id = row->stack_id,
						.context_id = row->context_id };
		struct estimate at[2] = { 0 };

		for (uint32_t k = 0; k < row->life_cnt; k++)
			add_life(is_rest ? rest : at, &lives[k], before, after);
		if (!is_rest && (at[0].samples || at[1].samples))
			err = fn(ctx, &of, at);
	}
	if (!err && (rest[0].samples || rest[1].samples))
		err = fn(ctx, &key, rest);
	return err;
}

size_t stack_past_bytes(const struct stack_past *p)
{
	return sizeof(*p) + p->images.cap * sizeof(*p->images.data) +
	       p->entry_cnt * STACK_PAST_ENTRY_BYTES;
}
