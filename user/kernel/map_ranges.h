/* SPDX-License-Identifier: MIT */
/*
 * map_ranges.h - map_walk_all() for a map that may be large: several threads read it.
 *
 * The promise is the same: entries that stay are seen once, others once or not at all. Any of the threads calls
 * fn, one at a time.
 */
#ifndef HT_KERNEL_MAP_RANGES_H
#define HT_KERNEL_MAP_RANGES_H

#include <stdint.h>

struct map_walk;

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
