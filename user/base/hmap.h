/* SPDX-License-Identifier: MIT */
/*
 * hmap.h - hash map from a fixed-size key (compared byte by byte) to a 64-bit value.
 *
 * Open addressing, grows at 3/4 full. Keys are copied in. The value is usually an index into a
 * vector that the caller keeps. Keys may be hostile (keyed_hash()), and are walked in another order in each process.
 */
#ifndef HT_BASE_HMAP_H
#define HT_BASE_HMAP_H

#include "base/std.h"

struct hmap {
	size_t key_bytes;
	size_t cnt, cap;
	uint8_t *keys;
	uint64_t *vals;
	uint8_t *used;
};

void hmap_init(struct hmap *m, size_t key_bytes);
void hmap_release(struct hmap *m);
/* Pointer to the value of key, or NULL. Valid until the next insertion. */
uint64_t *hmap_get(const struct hmap *m, const void *key);
/* Insert or overwrite. 0 or -ENOMEM. */
int hmap_put(struct hmap *m, const void *key, uint64_t val);
/* Insert unless it is there; *ret: the value that key has then. 0 or -ENOMEM. */
int hmap_add(struct hmap *m, const void *key, uint64_t val, uint64_t *ret);
/* Remove; false when it was not there. */
bool hmap_del(struct hmap *m, const void *key);
/* Walk: start with *pos = 0, until false. */
bool hmap_next(const struct hmap *m, size_t *pos, const void **ret_key, uint64_t *ret_val);

/*
 * Records: memory that the map owns, one piece for each key. All values of such a map are records.
 */

/* NULL: there is none. */
void *hmap_record(const struct hmap *m, const void *key);
/* Add one, zeroed, for a key that has none. NULL: no memory. */
void *hmap_add_record(struct hmap *m, const void *key, size_t bytes);
/* Free the records for which `keeps` returns false, once it has released what they contain; NULL: all. It is asked once
 * for each. */
void hmap_keep_records(struct hmap *m, bool (*keeps)(void *record, const void *ctx),
		       const void *ctx);

/* The same in every process, for what is kept or compared; not for tables of keys that others choose. */
uint64_t hash_bytes(const void *p, size_t n);

/*
 * A hash for tables whose keys come from files and processes.
 *
 * Who chooses the keys must not be able to make them meet in one slot: 40 000 such ids took five seconds instead of a
 * fiftieth of one. So the hash has a key of its own in each process, which nobody outside knows. It differs from run to
 * run: nothing that is written may depend on it.
 */
uint64_t keyed_hash(const void *p, size_t n);

/* SipHash-1-3 (Aumasson and Bernstein 2012), for keyed_hash() and its test. */
uint64_t siphash13(const uint64_t key[2], const void *p, size_t n);

#endif
