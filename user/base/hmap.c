/* SPDX-License-Identifier: MIT */
/*
 * hmap.c - see hmap.h. Linear probing; deletion moves the following entries back, so there are no tombstones and a
 * look-up never gets slower with age.
 */
#include "base/hmap.h"

#include <pthread.h>
#include <sys/auxv.h>
#include <sys/random.h>

/* Multiply and fold, eight bytes at a time. */
uint64_t hash_bytes(const void *p, size_t n)
{
	const uint64_t k = 0x9e3779b97f4a7c15ULL;
	const uint8_t *s = p;
	uint64_t h = n * k, word;

	for (; n >= 8; n -= 8, s += 8) {
		memcpy(&word, s, 8);
		h = (h ^ word) * k;
		h ^= h >> 32;
	}
	if (n) {
		word = 0;
		memcpy(&word, s, n);
		h = (h ^ word) * k;
		h ^= h >> 32;
	}
	return h ^ (h >> 29);
}

void hmap_init(struct hmap *m, size_t key_bytes)
{
	memset(m, 0, sizeof(*m));
	m->key_bytes = key_bytes;
}

void hmap_release(struct hmap *m)
{
	free(m->keys);
	free(m->vals);
	free(m->used);
	hmap_init(m, m->key_bytes);
}

static uint8_t *key_at(const struct hmap *m, size_t i)
{
	return m->keys + i * m->key_bytes;
}

/* The slot of key, or the empty slot where it belongs. cap is a power of two, never full. */
static size_t find_slot(const struct hmap *m, const void *key)
{
	size_t i = keyed_hash(key, m->key_bytes) & (m->cap - 1);

	while (m->used[i] && memcmp(key_at(m, i), key, m->key_bytes) != 0)
		i = (i + 1) & (m->cap - 1);
	return i;
}

static void set_slot(struct hmap *m, size_t i, const void *key, uint64_t val)
{
	memcpy(key_at(m, i), key, m->key_bytes);
	m->vals[i] = val;
	m->used[i] = 1;
}

static int grow(struct hmap *m)
{
	struct hmap bigger = { .key_bytes = m->key_bytes, .cap = m->cap ? m->cap * 2 : 16 };

	bigger.keys = calloc(bigger.cap, m->key_bytes);
	bigger.vals = calloc(bigger.cap, sizeof(*bigger.vals));
	bigger.used = calloc(bigger.cap, 1);
	if (!bigger.keys || !bigger.vals || !bigger.used) {
		hmap_release(&bigger);
		return -ENOMEM;
	}
	for (size_t i = 0; i < m->cap; i++)
		if (m->used[i])
			set_slot(&bigger, find_slot(&bigger, key_at(m, i)), key_at(m, i),
				 m->vals[i]);
	bigger.cnt = m->cnt;
	hmap_release(m);
	*m = bigger;
	return 0;
}

uint64_t *hmap_get(const struct hmap *m, const void *key)
{
	size_t i;

	if (!m->cap)
		return NULL;
	i = find_slot(m, key);
	return m->used[i] ? &m->vals[i] : NULL;
}

int hmap_put(struct hmap *m, const void *key, uint64_t val)
{
	size_t i;

	if ((m->cnt + 1) * 4 > m->cap * 3) {
		int err = grow(m);

		if (err)
			return err;
	}
	i = find_slot(m, key);
	m->cnt += !m->used[i];
	set_slot(m, i, key, val);
	return 0;
}

int hmap_add(struct hmap *m, const void *key, uint64_t val, uint64_t *ret)
{
	const uint64_t *known = hmap_get(m, key);

	*ret = known ? *known : val;
	return known ? 0 : hmap_put(m, key, val);
}

/* Move back every entry that the hole would hide from a search. */
static void empty_slot(struct hmap *m, size_t hole)
{
	size_t i, mask = m->cap - 1;

	for (i = (hole + 1) & mask; m->used[i]; i = (i + 1) & mask) {
		size_t home = keyed_hash(key_at(m, i), m->key_bytes) & mask;

		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		set_slot(m, hole, key_at(m, i), m->vals[i]);
		hole = i;
	}
	m->used[hole] = 0;
	m->cnt--;
}

bool hmap_del(struct hmap *m, const void *key)
{
	size_t i = m->cap ? find_slot(m, key) : 0;

	if (!m->cap || !m->used[i])
		return false;
	empty_slot(m, i);
	return true;
}

bool hmap_next(const struct hmap *m, size_t *pos, const void **ret_key, uint64_t *ret_val)
{
	for (size_t i = *pos; i < m->cap; i++) {
		if (!m->used[i])
			continue;
		*ret_key = key_at(m, i);
		*ret_val = m->vals[i];
		*pos = i + 1;
		return true;
	}
	return false;
}

void *hmap_record(const struct hmap *m, const void *key)
{
	const uint64_t *known = hmap_get(m, key);

	return known ? (void *)(uintptr_t)*known : NULL;
}

void *hmap_add_record(struct hmap *m, const void *key, size_t bytes)
{
	void *record = calloc(1, bytes);

	if (!record || !hmap_put(m, key, (uintptr_t)record))
		return record;
	free(record);
	return NULL;
}

void hmap_keep_records(struct hmap *m, bool (*keeps)(void *record, const void *ctx),
		       const void *ctx)
{
	for (size_t i = 0; i < m->cap; i++) {
		void *record = m->used[i] ? (void *)(uintptr_t)m->vals[i] : NULL;

		if (!record || (keeps && keeps(record, ctx)))
			continue;
		free(record);
		m->vals[i] = 0;
	}
	/* Only now, because this moves entries. */
	for (size_t i = 0; i < m->cap;)
		if (m->used[i] && !m->vals[i])
			empty_slot(m, i);
		else
			i++;
}

static uint64_t process_key[2];
static pthread_once_t has_key = PTHREAD_ONCE_INIT;

/* The kernel gives each program 16 random bytes as well, even where a filter forbids the call. */
static void make_key(void)
{
	const void *given = (const void *)getauxval(AT_RANDOM);

	if (getrandom(process_key, sizeof(process_key), GRND_NONBLOCK) != sizeof(process_key) &&
	    given)
		memcpy(process_key, given, sizeof(process_key));
}

static inline uint64_t rotate(uint64_t x, unsigned int bits)
{
	return x << bits | x >> (64 - bits);
}

static inline void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[0] = rotate(v[0], 32);
	v[2] += v[3];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[2] = rotate(v[2], 32);
}

uint64_t siphash13(const uint64_t key[2], const void *p, size_t n)
{
	uint64_t v[4] = { key[0] ^ 0x736f6d6570736575ULL, key[1] ^ 0x646f72616e646f6dULL,
			  key[0] ^ 0x6c7967656e657261ULL, key[1] ^ 0x7465646279746573ULL };
	uint64_t word, last = (uint64_t)n << 56;
	const uint8_t *s = p;

	for (; n >= 8; n -= 8, s += 8) {
		memcpy(&word, s, 8);
		v[3] ^= word;
		sip_round(v);
		v[0] ^= word;
	}
	word = 0;
	if (n)
		memcpy(&word, s, n);
	last |= word;
	v[3] ^= last;
	sip_round(v);
	v[0] ^= last;
	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t keyed_hash(const void *p, size_t n)
{
	pthread_once(&has_key, make_key);
	return siphash13(process_key, p, n);
}
