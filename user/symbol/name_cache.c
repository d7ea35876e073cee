/* SPDX-License-Identifier: MIT */
/*
 * name_cache.c - see symbol.h.
 *
 * A table of slots with open addressing, and behind it the entries, one after the other. A slot is published by its
 * hash, which is written last. A process that is killed in between leaves an unused slot.
 */
#include "symbol/symbol.h"

#include <stdatomic.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/hmap.h"
#include "symbol/symbol_wire.h"

#define SLOT_CNT 65536U
#define SLOT_TRIES 16U
#define AREA_BYTES (8U << 20)
#define AREA_NS (600 * NS_PER_S)
#define HASH_NONE 0 /* of a slot */
#define HASH_TAKEN 1

struct slot {
	_Atomic uint64_t hash;
	uint32_t at, bytes; /* of the entry, in area */
};

struct shared {
	_Atomic uint32_t used_bytes;
	struct slot slots[SLOT_CNT];
	uint8_t area[AREA_BYTES];
};

struct name_cache {
	struct shared *shared;
	uint64_t begin_ns;
};

/* What an entry is of: without padding, as it is hashed and compared. */
struct entry_key {
	uint64_t ino;
	int64_t changed_ns;
	uint64_t vaddr;
	uint32_t dev;
	uint32_t options;
};

/* Then frame_cnt times struct entry_frame with its three strings, each with its 0. */
struct entry {
	struct entry_key key;
	uint32_t source; /* enum wire_source; 0: it has no name */
	uint32_t flags; /* of WIRE_DONE */
	uint32_t frame_cnt;
};

struct entry_frame {
	uint32_t line, start_line;
};

static struct shared *map_shared(void)
{
	void *p = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

int name_cache_new(struct name_cache **ret)
{
	struct name_cache *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->shared = map_shared();
	if (!c->shared) {
		free(c);
		return -ENOMEM;
	}
	c->begin_ns = now_ns();
	keyed_hash("", 0); /* the key is the same in all that are forked */
	*ret = c;
	return 0;
}

void name_cache_free(struct name_cache *c)
{
	if (!c)
		return;
	if (c->shared)
		munmap(c->shared, sizeof(*c->shared));
	free(c);
}

void name_cache_renew(struct name_cache *c)
{
	if (c->shared && c->shared->used_bytes < AREA_BYTES && now_ns() - c->begin_ns < AREA_NS)
		return;
	if (c->shared)
		munmap(c->shared, sizeof(*c->shared));
	c->shared = map_shared();
	c->begin_ns = now_ns();
}

void name_cache_hide(struct name_cache *c)
{
	if (c && c->shared)
		madvise(c->shared, sizeof(*c->shared), MADV_DONTFORK);
}

static bool is_usable(const struct name_cache *c, const struct name_cache_query *q)
{
	return c && c->shared && (q->key.dev || q->key.ino || q->key.changed_ns);
}

static struct entry_key key_of(const struct name_cache_query *q, size_t i)
{
	return (struct entry_key){ .ino = q->key.ino,
				   .changed_ns = q->key.changed_ns,
				   .vaddr = q->vaddr[i],
				   .dev = q->key.dev,
				   .options = (uint32_t)q->lines * 2 + q->demangle };
}

static uint64_t hash_of(const struct entry_key *key)
{
	uint64_t hash = keyed_hash(key, sizeof(*key));

	return hash > HASH_TAKEN ? hash : hash + 2;
}

static struct slot *slot_at(struct shared *s, uint64_t hash, uint32_t try)
{
	return &s->slots[(hash + try) % SLOT_CNT];
}

static const struct entry *find(struct shared *s, const struct entry_key *key, uint32_t *ret_bytes)
{
	const uint64_t hash = hash_of(key);

	for (uint32_t try = 0; try < SLOT_TRIES; try++) {
		struct slot *slot = slot_at(s, hash, try);
		uint64_t there = atomic_load_explicit(&slot->hash, memory_order_acquire);
		const struct entry *e = (const struct entry *)(s->area + slot->at);

		if (there == HASH_NONE)
			return NULL;
		if (there != hash || memcmp(&e->key, key, sizeof(*key)) != 0)
			continue;
		*ret_bytes = slot->bytes;
		return e;
	}
	return NULL;
}

static int take_frames(const struct entry *e, uint32_t bytes, struct wire_reader *r)
{
	const uint8_t *at = (const uint8_t *)(e + 1), *end = (const uint8_t *)e + bytes;

	for (uint32_t i = 0; i < e->frame_cnt; i++) {
		struct symbol_frame f = { 0 };
		const char **text[] = { &f.name, &f.system_name, &f.file };
		struct entry_frame head;

		memcpy(&head, at, sizeof(head));
		at += sizeof(head);
		for (size_t k = 0; k < 3; k++) {
			*text[k] = strset_keep(r->strings, (const char *)at);
			at += strnlen((const char *)at, (size_t)(end - at)) + 1;
		}
		f.line = head.line;
		f.start_line = head.start_line;
		if (!f.name || !f.system_name || !f.file || vec_push(&r->frames, f))
			return -ENOMEM;
	}
	return 0;
}

static bool take(const struct entry *e, uint32_t bytes, struct wire_reader *r, size_t i)
{
	const size_t first = r->frames.cnt;

	if (take_frames(e, bytes, r)) {
		r->frames.cnt = first;
		return false;
	}
	r->answers[i] = (struct wire_answer){ .first = (uint32_t)first,
					      .cnt = e->frame_cnt,
					      .source = e->source };
	r->dwarf_cnt += e->source == WIRE_FROM_DWARF;
	r->symbol_cnt += e->source == WIRE_FROM_SYMBOL;
	return true;
}

size_t name_cache_get(struct name_cache *c, const struct name_cache_query *q, struct wire_reader *r,
		      uint32_t *ret_flags)
{
	size_t cnt = 0;

	*ret_flags = 0;
	for (size_t i = 0; is_usable(c, q) && i < q->vaddr_cnt; i++) {
		const struct entry_key key = key_of(q, i);
		uint32_t bytes;
		const struct entry *e = find(c->shared, &key, &bytes);

		if (!e || !take(e, bytes, r, i))
			continue;
		*ret_flags |= e->flags;
		cnt++;
	}
	return cnt;
}

static uint32_t bytes_of(const struct wire_reader *r, const struct wire_answer *a)
{
	size_t bytes = sizeof(struct entry);

	for (uint32_t i = 0; i < a->cnt; i++) {
		const struct symbol_frame *f = &r->frames.data[a->first + i];

		bytes += sizeof(struct entry_frame) + strlen(f->name) + strlen(f->system_name) +
			 strlen(f->file) + 3;
	}
	bytes = (bytes + 7) & ~(size_t)7;
	return bytes > AREA_BYTES ? AREA_BYTES + 1 : (uint32_t)bytes; /* then it fits nowhere */
}

static void write_entry(uint8_t *at, const struct entry *e, const struct symbol_frame *frames)
{
	memcpy(at, e, sizeof(*e));
	at += sizeof(*e);
	for (uint32_t i = 0; i < e->frame_cnt; i++) {
		const struct symbol_frame *f = &frames[i];
		const char *text[] = { f->name, f->system_name, f->file };
		const struct entry_frame head = { f->line, f->start_line };

		memcpy(at, &head, sizeof(head));
		at += sizeof(head);
		for (size_t k = 0; k < 3; k++)
			at = (uint8_t *)stpcpy((char *)at, text[k]) + 1;
	}
}

/* false: there is no room. Two processes may add the same: the second entry is never found. */
static bool add(struct shared *s, const struct entry *e, uint32_t bytes,
		const struct symbol_frame *frames)
{
	const uint64_t hash = hash_of(&e->key);
	uint32_t at = atomic_load(&s->used_bytes);

	do {
		if (at + bytes > AREA_BYTES) {
			atomic_store(&s->used_bytes, AREA_BYTES); /* see name_cache_renew() */
			return false;
		}
	} while (!atomic_compare_exchange_weak(&s->used_bytes, &at, at + bytes));
	write_entry(s->area + at, e, frames);
	for (uint32_t try = 0; try < SLOT_TRIES; try++) {
		struct slot *slot = slot_at(s, hash, try);
		uint64_t there = HASH_NONE;

		if (!atomic_compare_exchange_strong(&slot->hash, &there, HASH_TAKEN))
			continue;
		slot->at = at;
		slot->bytes = bytes;
		atomic_store_explicit(&slot->hash, hash, memory_order_release);
		return true;
	}
	return true;
}

void name_cache_put(struct name_cache *c, const struct name_cache_query *q,
		    const struct wire_reader *r)
{
	for (size_t i = 0; is_usable(c, q) && i < q->vaddr_cnt; i++) {
		const struct wire_answer *a = &r->answers[i];
		const struct entry e = { .key = key_of(q, i),
					 .source = a->source,
					 .flags = r->done_flags,
					 .frame_cnt = a->cnt };
		uint32_t bytes;

		if (find(c->shared, &e.key, &bytes))
			continue;
		bytes = bytes_of(r, a);
		if (bytes <= AREA_BYTES && !add(c->shared, &e, bytes, r->frames.data + a->first))
			return;
	}
}
