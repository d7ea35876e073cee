/* SPDX-License-Identifier: MIT */
/*
 * estimate.h - from samples to unbiased sums with their standard error.
 *
 * An allocation of n bytes was kept with probability p; it stands for 1/p objects and n/p bytes
 * (Horvitz-Thompson). Sums are unbiased whatever p each sample had. The variance of a sum is
 * estimated by sum of n^2 (1-p) / p^2 over the samples that were kept.
 */
#ifndef HT_PROFILE_ESTIMATE_H
#define HT_PROFILE_ESTIMATE_H

#include "base/std.h"

struct estimate {
	uint64_t samples;
	double objects;
	double bytes;
	double objects_variance;
	double bytes_variance;
	/* The coarsest R among the samples: the weight of a small allocation that was not seen. 0 = not
	 * known, or everything was kept. */
	double rate_bytes;
};

/* p(n) = 1 - exp(-n/R); size 0 counts as 1 byte; R <= 1 keeps all. */
double estimate_probability(uint64_t size_bytes, uint64_t rate_bytes);
/* Threshold of the sampling table <-> probability (see struct ht_rate in abi.h). */
uint32_t estimate_threshold(double p);
double estimate_threshold_probability(uint32_t threshold);
/* Bucket of a size, and the range of sizes in a bucket: [*ret_low, *ret_high]. The BPF side has the same function
 * (bpf/sample.bpf.h); a test compares the two. */
uint32_t estimate_bucket(uint64_t size_bytes);
void estimate_bucket_range(uint32_t bucket, uint64_t *ret_low, uint64_t *ret_high);

void estimate_add(struct estimate *e, uint64_t size_bytes, double p);
void estimate_merge(struct estimate *e, const struct estimate *other);
/* Subtract an earlier reading of the same growing sum. The variance is the difference of both, because what was
 * added later does not depend on what was there. */
void estimate_subtract(struct estimate *e, const struct estimate *earlier);
/*
 * Estimate the variance of a row that has sums only (a profile of another tool): assume that all objects have the row's
 * mean size. v = bytes * m / (exp(m/R) - 1), m = bytes / objects.
 */
double estimate_variance_from_sums(double bytes, double objects, uint64_t rate_bytes);
/*
 * 95 % interval of the bytes of a row. It never begins below the bytes of a single sample. It is not symmetric while
 * few allocations were missed, and normal when many were. It is exact (both ends = bytes) when there are samples and
 * their variance is 0. Without a sample it goes from 0 to what may have been missed, if rate_bytes is set. So set
 * rate_bytes in an estimate that was not made by estimate_add() (read from a file), too.
 */
void estimate_interval(const struct estimate *e, double *ret_low, double *ret_high);
/* The same with another confidence: `tail` is the chance, on each side, that the truth lies beyond. */
void estimate_interval_at(const struct estimate *e, double tail, double *ret_low, double *ret_high);
#define ESTIMATE_TAIL_95 0.025
/* Fewer than 4 samples, and not exact: too few to say much. Reports mark such rows. */
bool estimate_is_weak(const struct estimate *e);

#endif
