/* SPDX-License-Identifier: MIT */
/*
 * explain/pymalloc.c - what pymalloc, CPython's allocator of objects up to 512 bytes, holds: see explain/rows.h.
 *
 * It divides arenas that it maps into pools, and a pool into blocks of one size. A pool is at a multiple of its own size
 * (16 KiB, before Python 3.10 4 KiB) and begins with a header (Objects/obmalloc.c, struct pool_header; the same from 3.7
 * to 3.13). A piece of memory is believed to be one only if
 *
 *	the size class, the pool's size and the offset of the last block agree,
 *	the next block that was never used begins where a block of that size does, and
 *	the list of freed blocks is one: it goes from block to block, none twice, and has as many as the header leaves free.
 *
 * A pool that another thread changes meanwhile is read again; one that is swapped out in part is not believed, and stays
 * with its mapping. Arenas have no header, so what is not yet a pool of them stays, too.
 */

#include "explain/rows.h"

#define HEAD_BYTES 48
#define ALIGNMENT 16
#define CLASS_CNT 32 /* up to 512 bytes */
#define POOL_BYTES_MAX 16384
#define POOL_BYTES_OLD 4096
#define BLOCKS_MAX (POOL_BYTES_MAX / ALIGNMENT)
#define TRIES 3

struct head {
	uint32_t used_cnt, unused;
	uint64_t freed; /* the first block of the list */
	uint64_t next, before; /* pools of the size class, or empty ones */
	uint32_t arena, size_class, next_off, last_off;
};
_Static_assert(sizeof(struct head) == HEAD_BYTES, "as CPython has it");

struct pool {
	uint64_t addr;
	struct head head;
	uint32_t bytes, block_bytes, carved_cnt; /* blocks that were used once, or more often */
	bool is_free[BLOCKS_MAX];
	char content[POOL_BYTES_MAX];
};

/* Does the header agree with itself? */
static bool check_head(struct pool *p)
{
	const struct head *h = &p->head;

	if (h->size_class >= CLASS_CNT || h->unused || h->last_off >= POOL_BYTES_MAX)
		return false;
	p->block_bytes = (h->size_class + 1) * ALIGNMENT;
	p->bytes = h->last_off + p->block_bytes;
	if ((p->bytes != POOL_BYTES_MAX && p->bytes != POOL_BYTES_OLD) || p->addr % p->bytes ||
	    h->next_off < HEAD_BYTES || h->next_off > p->bytes ||
	    (h->next_off - HEAD_BYTES) % p->block_bytes)
		return false;
	p->carved_cnt = (h->next_off - HEAD_BYTES) / p->block_bytes;
	return p->carved_cnt && h->used_cnt <= p->carved_cnt;
}

/* Does the list of freed blocks have as many as there must be? */
static bool check_list(struct pool *p)
{
	uint64_t block = p->head.freed;
	uint32_t cnt = p->carved_cnt - p->head.used_cnt;

	memset(p->is_free, 0, sizeof(p->is_free));
	for (; block && cnt; cnt--) {
		uint64_t off = block - p->addr - HEAD_BYTES, i = off / p->block_bytes;

		if (block < p->addr + HEAD_BYTES || off % p->block_bytes || i >= p->carved_cnt ||
		    p->is_free[i])
			return false;
		p->is_free[i] = true;
		memcpy(&block, p->content + HEAD_BYTES + off, sizeof(block));
	}
	return !block && !cnt;
}

static bool read_pool(struct memory *m, uint64_t addr, struct pool *p)
{
	uint32_t read_bytes;

	p->addr = addr;
	for (int i = 0; i < TRIES; i++) {
		if (memory_read(m, addr, &p->head, sizeof(p->head)) || !check_head(p))
			return false;
		read_bytes = p->head.next_off;
		if (memory_read(m, addr, p->content, read_bytes))
			return false;
		memcpy(&p->head, p->content, sizeof(p->head));
		if (check_head(p) && p->head.next_off <= read_bytes && check_list(p))
			return true;
	}
	return false;
}

/* Divide its resident pages. */
static void add_pool(struct memory *m, struct mapping *map, const struct pool *p,
		     struct python_pools *ret)
{
	uint64_t live[POOL_BYTES_MAX / MEMORY_PAGE] = { 0 };

	for (uint32_t i = 0; i < p->carved_cnt; i++) {
		uint64_t at = HEAD_BYTES + (uint64_t)i * p->block_bytes, end = at + p->block_bytes;

		for (; !p->is_free[i] && at < end; at = (at / MEMORY_PAGE + 1) * MEMORY_PAGE) {
			uint64_t page_end = (at / MEMORY_PAGE + 1) * MEMORY_PAGE;

			live[at / MEMORY_PAGE] += (page_end < end ? page_end : end) - at;
		}
	}
	ret->pool_cnt++;
	ret->live_cnt += p->head.used_cnt;
	for (uint32_t i = 0; i < p->bytes / MEMORY_PAGE; i++) {
		if (m->page(m->ctx, p->addr + i * MEMORY_PAGE) != PAGE_RESIDENT ||
		    map->taken_bytes + MEMORY_PAGE > map->rss_bytes)
			continue;
		map->taken_bytes += MEMORY_PAGE;
		ret->live += live[i];
		ret->free += MEMORY_PAGE - live[i];
	}
}

/* All pools of a process have one size: *pool_bytes, once it is known. */
static void read_mapping(struct memory *m, struct mapping *map, uint64_t *pool_bytes,
			 struct python_pools *ret)
{
	struct pool pool;
	uint64_t addr = map->map.start_addr;

	while (addr < map->map.end_addr && !memory_is_late(m)) {
		uint64_t step = *pool_bytes ? *pool_bytes : MEMORY_PAGE;

		if (addr % step == 0 && read_pool(m, addr, &pool) &&
		    addr + pool.bytes <= map->map.end_addr) {
			add_pool(m, map, &pool, ret);
			*pool_bytes = step = pool.bytes;
		}
		addr += step - addr % step;
	}
}

/* A program or module of it. Others are not searched. */
static bool has_python(const struct mappings *maps)
{
	const struct mapping *map;

	vec_each(&maps->list, map)
		if (strstr(map->map.path, "python"))
			return true;
	return false;
}

void python_pools_read(struct memory *m, struct mappings *maps, struct python_pools *ret)
{
	struct mapping *map;
	uint64_t pool_bytes = 0;

	memset(ret, 0, sizeof(*ret));
	if (!has_python(maps))
		return;
	vec_each(&maps->list, map)
		if (!map->map.path[0] && map->map.is_read && map->map.is_write && !map->is_shared)
			read_mapping(m, map, &pool_bytes, ret);
}
