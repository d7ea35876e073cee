/* SPDX-License-Identifier: MIT */
/* snapshot.c - see snapshot.h. */
#include "snapshot/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hmap.h"
#include "kernel/engine.h"

struct row_key {
	uint64_t stack_id;
	uint32_t context_id;
	uint32_t tgid; /* for context 0, which says nothing */
	uint32_t generation;
	uint32_t reserved;
};

struct builder {
	struct snapshot *s;
	struct hmap contexts; /* id -> index in context */
	VEC(struct ht_context) context;
	struct hmap rows; /* struct row_key -> index in s->rows */
};

static int on_context(void *ctx, const struct ht_context *k, uint32_t id)
{
	struct builder *b = ctx;
	int err = vec_push(&b->context, *k);

	return err ? err : hmap_put(&b->contexts, &id, b->context.cnt - 1);
}

static const struct ht_context *context_by_id(const struct builder *b, uint32_t id)
{
	const uint64_t *idx = hmap_get(&b->contexts, &id);

	return idx ? &b->context.data[*idx] : NULL;
}

/* The row of a key, made when it is new. NULL: out of memory. */
static struct snapshot_row *get_row(struct builder *b, const struct row_key *key)
{
	const struct ht_context *context = context_by_id(b, key->context_id);
	const uint64_t *idx = hmap_get(&b->rows, key);
	struct snapshot_row row = { .stack_id = key->stack_id, .pid = key->tgid };

	if (idx)
		return &b->s->rows.data[*idx];
	row.generation = key->generation;
	if (context)
		memcpy(row.comm, context->comm, sizeof(row.comm));
	if (vec_push(&b->s->rows, row) || hmap_put(&b->rows, key, b->s->rows.cnt - 1))
		return NULL;
	return &b->s->rows.data[b->s->rows.cnt - 1];
}

static int on_live(void *ctx, const struct ht_live_key *k, const struct ht_live *v)
{
	struct builder *b = ctx;
	struct row_key key = { .stack_id = v->stack_id, .context_id = v->context_id };
	struct snapshot_row *row;
	double p = estimate_threshold_probability(v->threshold);

	key.tgid = k->tgid;
	key.generation = k->generation;
	row = get_row(b, &key);
	if (!row)
		return -ENOMEM;
	estimate_add(&row->inuse, v->size_bytes, p);
	estimate_add(&b->s->inuse, v->size_bytes, p);
	b->s->live_cnt++;
	return 0;
}

static int on_total(void *ctx, const struct ht_total_key *k, const struct ht_total *v)
{
	struct builder *b = ctx;
	const struct ht_context *context = context_by_id(b, k->context_id);
	struct row_key key = { .stack_id = k->stack_id, .context_id = k->context_id };
	struct snapshot_row *row;

	if (context) {
		key.tgid = context->tgid;
		key.generation = context->generation;
	}
	row = get_row(b, &key);
	if (!row)
		return -ENOMEM;
	row->alloc_samples += v->alloc_samples;
	row->alloc_objects += v->alloc_objects_16 / 65536.0;
	row->alloc_bytes += v->alloc_bytes_8 / 256.0;
	return 0;
}

int snapshot_take(struct engine *e, struct snapshot **ret)
{
	struct builder b = { .s = calloc(1, sizeof(*b.s)) };
	int err;

	if (!b.s)
		return -ENOMEM;
	hmap_init(&b.contexts, sizeof(uint32_t));
	hmap_init(&b.rows, sizeof(struct row_key));

	/* A context that is made after this is of samples that are newer than the snapshot. */
	err = engine_each_context(e, on_context, &b);
	if (!err)
		err = engine_each_live(e, on_live, &b);
	if (!err)
		err = engine_each_total(e, on_total, &b);
	if (!err)
		err = engine_read_stats(e, b.s->stats);
	if (!err) {
		b.s->taken_ns = now_ns();
		*ret = b.s;
		b.s = NULL;
	}
	snapshot_free(b.s);
	hmap_release(&b.contexts);
	hmap_release(&b.rows);
	vec_release(&b.context);
	return err;
}

void snapshot_free(struct snapshot *s)
{
	if (!s)
		return;
	vec_release(&s->rows);
	free(s);
}
