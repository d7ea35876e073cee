/* SPDX-License-Identifier: MIT */
/*
 * map_walk.h - reads a hash map back, in batches.
 *
 * A walk is not a moment in time: entries that come or go meanwhile may or may not be seen; entries that stay
 * are seen once.
 */
#ifndef HT_KERNEL_MAP_WALK_H
#define HT_KERNEL_MAP_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_walk;

struct map_walk {
	int fd;
	size_t key_bytes, value_bytes;
	/* A non-zero result stops the walk, which returns it. */
	int (*fn)(void *ctx, const void *key, const void *value);
	void *ctx;
};
int map_walk_all(const struct map_walk *w);

/* A walk that may be interrupted between two batches: initialise with zeros, continue until at_end. */
struct map_cursor {
	uint64_t position[8]; /* the kernel's; of a hash, it begins with a bucket's index */
	bool has_begun, at_end;
	uint32_t read_cnt; /* entries read so far */
	uint32_t batch_cnt;
	char *keys, *values;
};
/* Read one batch. */
int map_cursor_next(struct map_cursor *c, const struct map_walk *w);
void map_cursor_release(struct map_cursor *c);

/* Deletes many entries of a hash map in one system call. */

/*
 * Delete cnt entries, whose keys lie one behind the other. on_deleted is called once for each entry that was there and
 * that this call took out; a key without an entry is no error.
 */
typedef void (*map_deleted_fn)(void *ctx, const void *key);
int map_delete_keys(int fd, const void *keys, size_t key_bytes, size_t cnt,
		    map_deleted_fn on_deleted, void *ctx);

/*
 * map_walk_all() for a map that may be large: several threads read it.
 *
 * The promise is the same: entries that stay are seen once, others once or not at all. Any of the threads calls
 * fn, one at a time.
 */

struct map_ranges_options {
	uint32_t entries_cap; /* the map's max_entries */
	uint32_t shared_least; /* with fewer entries the caller reads the map alone */
	unsigned reader_cap; /* threads, including the caller; never more than CPUs */
	uint32_t range_buckets; /* buckets that a reader takes at a time */
	uint32_t batch_cnt; /* entries that a reader asks for at a time */
	uint32_t gap_cnt; /* entries at the end of a range that may be left for later */
};

int map_ranges_walk(const struct map_walk *w, const struct map_ranges_options *opts);

#endif
