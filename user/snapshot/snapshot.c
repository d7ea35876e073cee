/* SPDX-License-Identifier: MIT */
/* snapshot.c - see snapshot.h. */
#include "snapshot/snapshot.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/engine.h"

struct row_key {
	uint64_t stack_id;
	uint32_t context_id;
	uint32_t tgid; /* for context 0, which says nothing */
	uint32_t generation;
	uint32_t reserved;
	uint64_t instance;
};

struct builder {
	struct engine *engine;
	struct snapshot *s;
	struct hmap contexts; /* id -> index in context */
	VEC(struct ht_context) context;
	struct hmap rows; /* struct row_key -> index in s->rows */
	bool has_stacks; /* rows are told apart by stack and task, too */
};

static int on_context(void *ctx, const struct ht_context *k, const struct ht_context_value *v)
{
	struct builder *b = ctx;
	int err = vec_push(&b->context, *k);

	b->s->context_cnt++;
	return err ? err : hmap_put(&b->contexts, &v->id, b->context.cnt - 1);
}

static const struct ht_context *context_by_id(const struct builder *b, uint32_t id)
{
	const uint64_t *idx = hmap_get(&b->contexts, &id);

	return idx ? &b->context.data[*idx] : NULL;
}

/* The row of a key, made when it is new. NULL: out of memory. */
static struct snapshot_row *get_row(struct builder *b, const struct row_key *key)
{
	const uint64_t *idx = hmap_get(&b->rows, key);
	struct snapshot_row row = { .stack_id = key->stack_id, .pid = key->tgid };
	const struct ht_context *context;

	if (idx)
		return &b->s->rows.data[*idx];
	context = context_by_id(b, key->context_id);
	row.generation = key->generation;
	row.instance = key->instance;
	row.source = HT_SOURCE_OTHER;
	if (context) {
		memcpy(row.comm, context->comm, sizeof(row.comm));
		row.source = context->source;
		row.node = context->node;
		row.labels_id = context->labels_id;
	}
	if (vec_push(&b->s->rows, row) || hmap_put(&b->rows, key, b->s->rows.cnt - 1))
		return NULL;
	return &b->s->rows.data[b->s->rows.cnt - 1];
}

static int on_live(void *ctx, const struct ht_live_key *k, const struct ht_live *v)
{
	struct builder *b = ctx;
	struct row_key key = { .context_id = v->context_id };
	struct snapshot_row *row;
	double p = estimate_threshold_probability(v->threshold);

	b->s->live_cnt++;
	key.tgid = k->tgid;
	key.generation = k->generation;
	if (b->has_stacks) {
		key.stack_id = v->stack_id;
		key.instance = v->instance;
	}
	row = get_row(b, &key);
	if (!row)
		return -ENOMEM;
	estimate_add(&row->inuse, v->size_bytes, p);
	return 0;
}

static int on_total(void *ctx, const struct ht_total_key *k, const struct ht_total *v)
{
	struct builder *b = ctx;
	const struct ht_context *context = context_by_id(b, k->context_id);
	struct row_key key = { .context_id = k->context_id };
	struct snapshot_row *row;

	b->s->total_cnt++;
	if (b->has_stacks)
		key.stack_id = k->stack_id;
	if (context) {
		key.tgid = context->tgid;
		key.generation = context->generation;
	}
	row = get_row(b, &key);
	if (!row)
		return -ENOMEM;
	row->alloc_objects += v->alloc_objects_16 / 65536.0;
	row->alloc_bytes += v->alloc_bytes_8 / 256.0;
	return 0;
}

static int on_scope(void *ctx, const struct ht_scope_key *k, const struct ht_scope *v)
{
	struct builder *b = ctx;
	struct snapshot *s = b->s;
	struct snapshot_scope scope = { .key = *k, .scope = *v };
	int err = engine_get_scope_sums(b->engine, v->slot, &scope.sums);

	if (err) /* a slot beyond the map: the object is broken */
		return err;
	err = vec_push(&s->scopes, scope);
	if (!err)
		err = hmap_put(&s->scope_by_key, k, s->scopes.cnt - 1);
	return err ? err : hmap_put(&s->scope_by_slot, &v->slot, s->scopes.cnt - 1);
}

static int on_instance(void *ctx, const struct ht_instance_key *k, const struct ht_instance *v)
{
	struct builder *b = ctx;
	struct snapshot_instance instance = { .key = *k, .sums = *v };
	int err = vec_push(&b->s->instances, instance);

	return err ? err : hmap_put(&b->s->instance_by_key, k, b->s->instances.cnt - 1);
}

static int take(struct engine *e, bool has_stacks, struct snapshot **ret)
{
	struct builder b = { .engine = e, .s = calloc(1, sizeof(*b.s)), .has_stacks = has_stacks };
	const struct snapshot_row *row;
	int err;

	if (!b.s)
		return -ENOMEM;
	hmap_init(&b.contexts, sizeof(uint32_t));
	hmap_init(&b.rows, sizeof(struct row_key));
	hmap_init(&b.s->scope_by_key, sizeof(struct ht_scope_key));
	hmap_init(&b.s->scope_by_slot, sizeof(uint32_t));
	hmap_init(&b.s->instance_by_key, sizeof(struct ht_instance_key));

	/* A context that is made after this is of samples that are newer than the snapshot. Its
	 * scope was there before it. */
	err = engine_each_context(e, on_context, &b);
	if (!err)
		err = engine_each_scope(e, on_scope, &b);
	if (!err)
		err = engine_each_live(e, on_live, &b);
	if (!err)
		err = engine_each_total(e, on_total, &b);
	if (!err && has_stacks)
		err = engine_each_instance(e, on_instance, &b);
	if (!err)
		err = engine_read_stats(e, b.s->stats);
	vec_each(&b.s->rows, row)
		estimate_merge(&b.s->inuse, &row->inuse);
	if (!err) {
		*ret = b.s;
		b.s = NULL;
	}
	snapshot_free(b.s);
	hmap_release(&b.contexts);
	hmap_release(&b.rows);
	vec_release(&b.context);
	return err;
}

int snapshot_take(struct engine *e, struct snapshot **ret)
{
	return take(e, true, ret);
}

int snapshot_take_contexts(struct engine *e, struct snapshot **ret)
{
	return take(e, false, ret);
}

void snapshot_free(struct snapshot *s)
{
	if (!s)
		return;
	vec_release(&s->rows);
	vec_release(&s->scopes);
	vec_release(&s->instances);
	hmap_release(&s->scope_by_key);
	hmap_release(&s->scope_by_slot);
	hmap_release(&s->instance_by_key);
	free(s);
}

const struct snapshot_scope *snapshot_scope(const struct snapshot *s,
					    const struct ht_scope_key *key)
{
	const uint64_t *idx = hmap_get(&s->scope_by_key, key);

	return idx ? &s->scopes.data[*idx] : NULL;
}

const struct snapshot_scope *snapshot_scope_at(const struct snapshot *s, uint32_t slot)
{
	const uint64_t *idx = hmap_get(&s->scope_by_slot, &slot);

	return idx ? &s->scopes.data[*idx] : NULL;
}

const struct snapshot_instance *snapshot_instance(const struct snapshot *s, uint32_t task_slot,
						  uint64_t instance)
{
	const struct ht_instance_key key = { .task_slot = task_slot, .instance = instance };
	const uint64_t *idx = hmap_get(&s->instance_by_key, &key);

	return idx ? &s->instances.data[*idx] : NULL;
}
