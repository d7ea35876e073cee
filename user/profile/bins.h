/* SPDX-License-Identifier: MIT */
/*
 * bins.h - how large blocks were, and how long they lived, in powers of two.
 *
 * The bins are those of BPF (struct ht_bin_key in abi.h): of what was allocated by size, of what was freed by
 * lifetime. A bin begins at a bound and ends before the next one.
 */
#ifndef HT_PROFILE_BINS_H
#define HT_PROFILE_BINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heaptap/abi.h"

/* Of a sample of a profile: what fell into one bin. */
struct bin_part {
	uint32_t bin; /* as in struct ht_bin_key */
	uint64_t samples; /* as in struct estimate, and so are the others */
	double objects, bytes, bytes_variance;
};

/* The bin of a size, or of a lifetime. */
uint32_t bin_of_size(uint64_t bytes);
uint32_t bin_of_life(uint64_t ns);
/* Bytes or ns. The last bin of either kind ends at UINT64_MAX. */
uint64_t bin_from(uint32_t bin);
uint64_t bin_to(uint32_t bin);
/* "64 to 127 B", "4 to 8 KiB"; "250 us to 500 us", "under 0.977 us", "69.9 min or more" */
#define BIN_NAME_BUF 48
char *bin_name(uint32_t bin, char buf[BIN_NAME_BUF]);

/* Blocks that lived for less are temporary: a bound of the lifetimes. */
#define BIN_TEMPORARY_NS 1000000

/* All bins of a row that was added up. Rows are many: their bytes are left to reports by lifetime and size. */
struct bin_sums {
	bool is_known;
	double objects[HT_BIN_CNT];
	double freed_objects, freed_bytes; /* also those whose lifetime is not known */
	double square; /* see bin_share() */
};

void bin_sums_merge(struct bin_sums *sums, const struct bin_sums *other);
double bin_temporary_objects(const struct bin_sums *sums);
/* The size that most objects have; HT_BIN_SIZE_CNT: none is known. */
uint32_t bin_most_size(const struct bin_sums *sums);

/* One part of a sample. */
void bin_sums_add(struct bin_sums *sums, const struct bin_part *part);

/* What was allocated, as far as its size is known. */
double bin_sized_objects(const struct bin_sums *sums);
/* A part of that with its 95 % interval, all from 0 to 1. */
struct bin_share {
	double share, low, high;
};
/* false: of nothing the size is known. */
bool bin_share(const struct bin_sums *sums, double part_objects, struct bin_share *ret);

#endif
