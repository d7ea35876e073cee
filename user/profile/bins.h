/* SPDX-License-Identifier: MIT */
/*
 * bins.h - classes of blocks: of sizes and lifetimes, in powers of two; of ages.
 *
 * The bins are those of BPF (struct ht_bin_key in abi.h): allocated blocks by size, freed blocks by lifetime. A bin
 * begins at a bound and ends before the next one.
 */
#ifndef HT_PROFILE_BINS_H
#define HT_PROFILE_BINS_H

#include "base/std.h"
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

/*
 * Ages of what is in use.
 *
 * A class begins at a bound and ends at the next one: 0, 0.1 s, 0.2 s, 0.5 s, 1 s, 2 s, 3 s, 5 s, ... 7 days. The
 * values of a profile's sample are divided into the classes by the age of its blocks at the end.
 */
#define AGE_CLASS_CNT 38

struct age_part {
	uint32_t age_class;
	uint64_t samples; /* like the other members, as in struct estimate */
	double bytes, bytes_variance;
	double objects, objects_variance;
};

uint32_t age_class_of(uint64_t age_ns);
/* The bound where a class begins; for AGE_CLASS_CNT: UINT64_MAX. */
uint64_t age_bound_ns(uint32_t age_class);
/* "10 min" */
#define AGE_NAME_BUF 48
char *age_bound_name(uint32_t age_class, char buf[AGE_NAME_BUF]);
/* "10 min to 15 min", "under 0.1 s", "7 d or more" */
char *age_class_name(uint32_t age_class, char buf[AGE_NAME_BUF]);

/* Bytes in each class, summed up for one row of a report. */
struct age_sums {
	float bytes[AGE_CLASS_CNT];
	uint64_t oldest_ns; /* of the oldest block; 0: not known */
};
void age_merge(struct age_sums *sums, const struct age_sums *other);
/* *ret: half of the bytes are older, if the bytes of a class are spread evenly over it. false: nothing is known. */
bool age_median_s(const struct age_sums *sums, double *ret);

#endif
