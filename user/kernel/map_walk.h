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

#endif
