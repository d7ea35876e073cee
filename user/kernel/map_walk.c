/* SPDX-License-Identifier: MIT */
/*
 * map_walk.c - see map_walk.h. With -ENOSPC (a bucket longer than the batch) the batch is enlarged
 * and the walk goes on where it was.
 */
#include "kernel/map_walk.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Memory of one batch, and limits of its growth. */
#define BATCH_BYTES (256 << 10)
#define BATCH_LEAST 64
#define BATCH_CAP (1 << 20)

void map_cursor_release(struct map_cursor *c)
{
	free(c->keys);
	free(c->values);
	memset(c, 0, sizeof(*c));
}

static int make_room(struct map_cursor *c, const struct map_walk *w)
{
	size_t fitting = BATCH_BYTES / (w->key_bytes + w->value_bytes);

	if (c->keys)
		return 0;
	if (!c->batch_cnt)
		c->batch_cnt = fitting < BATCH_LEAST ? BATCH_LEAST : fitting;
	c->keys = malloc(w->key_bytes * c->batch_cnt);
	c->values = malloc(w->value_bytes * c->batch_cnt);
	return c->keys && c->values ? 0 : -ENOMEM;
}

static int deliver(const struct map_walk *w, const char *keys, const char *values, uint32_t cnt)
{
	int err = 0;

	for (uint32_t i = 0; i < cnt && !err; i++)
		err = w->fn(w->ctx, keys + i * w->key_bytes, values + i * w->value_bytes);
	return err;
}

int map_cursor_next(struct map_cursor *c, const struct map_walk *w)
{
	uint32_t cnt;
	int err = make_room(c, w);

	if (err || c->at_end)
		return err;
	cnt = c->batch_cnt;
	err = bpf_map_lookup_batch(w->fd, c->has_begun ? c->position : NULL, c->position, c->keys,
				   c->values, &cnt, NULL);
	if (err == -ENOSPC && c->batch_cnt < BATCH_CAP) {
		free(c->keys);
		free(c->values);
		c->keys = c->values = NULL;
		c->batch_cnt *= 4;
		return 0;
	}
	c->at_end = err == -ENOENT;
	if (err && !c->at_end)
		return err;
	c->has_begun = true;
	c->read_cnt += cnt;
	return deliver(w, c->keys, c->values, cnt);
}

int map_walk_all(const struct map_walk *w)
{
	struct map_cursor c = { 0 };
	int err = 0;

	while (!c.at_end && !err)
		err = map_cursor_next(&c, w);
	map_cursor_release(&c);
	return err;
}

int map_delete_keys(int fd, const void *keys, size_t key_bytes, size_t cnt,
		    map_deleted_fn on_deleted, void *ctx)
{
	const char *at = keys, *end = at + cnt * key_bytes;

	while (at < end) {
		uint32_t done = (uint32_t)((size_t)(end - at) / key_bytes);
		int err = bpf_map_delete_batch(fd, at, &done, NULL);

		if (err && err != -ENOENT)
			return err;
		for (; done--; at += key_bytes)
			on_deleted(ctx, at);
		if (err)
			at += key_bytes; /* somebody else has deleted it */
	}
	return 0;
}
