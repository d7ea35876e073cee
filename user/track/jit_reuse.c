/* SPDX-License-Identifier: MIT */
/* jit_reuse.c - see jit_code_priv.h. */
#include "track/jit_code_priv.h"

#include <errno.h>
#include <stdlib.h>

#define UNIT_SHIFT 3
#define CHUNK_SHIFT 20
#define CHUNK_UNITS (1U << (CHUNK_SHIFT - UNIT_SHIFT))
#define CHUNKS_CAP 1024 /* 16 MiB, for 1 GiB of code */
#define CODE_BYTES_CAP (64ULL << 20) /* no compiler makes larger pieces, so they are not believed */

void jit_reuse_init(struct jit_reuse *r)
{
	*r = (struct jit_reuse){ 0 };
	hmap_init(&r->idx, sizeof(uint64_t));
}

void jit_reuse_release(struct jit_reuse *r)
{
	uint8_t **chunk;

	vec_each(&r->chunk, chunk)
		free(*chunk);
	vec_release(&r->chunk);
	hmap_release(&r->idx);
}

static uint8_t *find_chunk(const struct jit_reuse *r, uint64_t unit)
{
	uint64_t key = unit / CHUNK_UNITS;
	const uint64_t *idx = hmap_get(&r->idx, &key);

	return idx ? r->chunk.data[*idx] : NULL;
}

/* NULL with *ret_err 0: CHUNKS_CAP is reached. */
static uint8_t *get_chunk(struct jit_reuse *r, uint64_t unit, int *ret_err)
{
	uint64_t key = unit / CHUNK_UNITS;
	uint8_t *chunk = find_chunk(r, unit);

	*ret_err = 0;
	if (chunk || r->chunk.cnt >= CHUNKS_CAP)
		return chunk;
	chunk = calloc(1, CHUNK_UNITS / 8);
	*ret_err = chunk ? vec_push(&r->chunk, chunk) : -ENOMEM;
	if (*ret_err) {
		free(chunk);
		return NULL;
	}
	*ret_err = hmap_put(&r->idx, &key, r->chunk.cnt - 1);
	return *ret_err ? NULL : chunk;
}

/* Whole units only, because two small pieces may share one. */
static bool units_of(uint64_t start_addr, uint64_t end_addr, uint64_t *ret_first, uint64_t *ret_end)
{
	if (end_addr - start_addr > CODE_BYTES_CAP || start_addr >> 63)
		return false;
	*ret_first = (start_addr + (1 << UNIT_SHIFT) - 1) >> UNIT_SHIFT;
	*ret_end = end_addr >> UNIT_SHIFT;
	return true;
}

bool jit_reuse_has(const struct jit_reuse *r, uint64_t start_addr, uint64_t end_addr)
{
	const uint8_t *chunk = NULL;
	uint64_t unit, first, end;

	if (!units_of(start_addr, end_addr, &first, &end))
		return false;
	for (unit = first; unit < end; unit++) {
		if (unit == first || unit % CHUNK_UNITS == 0)
			chunk = find_chunk(r, unit);
		if (chunk && chunk[unit % CHUNK_UNITS / 8] & 1 << unit % 8)
			return true;
	}
	return false;
}

int jit_reuse_add(struct jit_reuse *r, uint64_t start_addr, uint64_t end_addr)
{
	uint8_t *chunk = NULL;
	uint64_t unit, first, end;
	int err = 0;

	if (!units_of(start_addr, end_addr, &first, &end))
		return 0;
	for (unit = first; unit < end; unit++) {
		if (unit == first || unit % CHUNK_UNITS == 0)
			chunk = get_chunk(r, unit, &err);
		if (err)
			return err;
		if (chunk)
			chunk[unit % CHUNK_UNITS / 8] |= (uint8_t)(1 << unit % 8);
	}
	return 0;
}
