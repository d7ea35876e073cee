/* SPDX-License-Identifier: MIT */
/*
 * bins.h - sizes and lifetimes of blocks, counted in powers of two.
 *
 * The bins are those of BPF (struct ht_bin_key in abi.h): allocated blocks by size, freed blocks by lifetime. A bin
 * begins at a bound and ends before the next one.
 */
#ifndef HT_PROFILE_BINS_H
#define HT_PROFILE_BINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heaptap/abi.h"

/* The part of a profile's sample that falls into one bin. */
struct bin_part {
	uint32_t bin; /* as in struct ht_bin_key */
	uint64_t samples; /* like the other members, as in struct estimate */
	double objects, bytes, bytes_variance;
};

/* Return the bin of a size, or of a lifetime. */
uint32_t bin_of_size(uint64_t bytes);
uint32_t bin_of_life(uint64_t ns);
/* Bytes or ns: first value of a bin, first one after it. The last bin of either kind ends at UINT64_MAX. */
uint64_t bin_from(uint32_t bin);
uint64_t bin_to(uint32_t bin);
/* "64 to 127 B", "4 to 8 KiB"; "250 us to 500 us", "under 0.977 us", "69.9 min or more" */
#define BIN_NAME_BUF 48
char *bin_name(uint32_t bin, char buf[BIN_NAME_BUF]);

/* Blocks that lived for less are temporary. It is a bound of the lifetime bins. */
#define BIN_TEMPORARY_NS 1000000

/* All bins of a row, summed up, without bytes: there are many rows, so only reports by lifetime and size have bytes. */
struct bin_sums {
	bool is_known;
	double objects[HT_BIN_CNT];
	double freed_objects, freed_bytes; /* including those whose lifetime is not known */
	double square; /* see bin_share() */
};

void bin_sums_merge(struct bin_sums *sums, const struct bin_sums *other);
double bin_temporary_objects(const struct bin_sums *sums);
/* The bin of the size that most objects have; HT_BIN_SIZE_CNT: no size is known. */
uint32_t bin_most_size(const struct bin_sums *sums);

/* Add one part of a sample. */
void bin_sums_add(struct bin_sums *sums, const struct bin_part *part);

/* Allocated objects whose size is known. */
double bin_sized_objects(const struct bin_sums *sums);
/* A share of these objects with its 95 % interval, all from 0 to 1. */
struct bin_share {
	double share, low, high;
};
/* false: no sizes are known. */
bool bin_share(const struct bin_sums *sums, double part_objects, struct bin_share *ret);

#endif
