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

#include <stdbool.h>
#include <stdint.h>

struct estimate {
	uint64_t samples;
	double objects;
	double bytes;
	double objects_variance;
	double bytes_variance;
	/* The coarsest R that a sample was drawn with: the weight of a small allocation that was
	 * not seen. 0 = not known, or everything was kept. */
	double rate_bytes;
};

/* p(n) = 1 - exp(-n/R); size 0 counts as 1 byte; R <= 1 keeps all. */
double estimate_probability(uint64_t size_bytes, uint64_t rate_bytes);
/* Thresholds of the sampling table <-> probability (see struct ht_rate in abi.h). */
uint32_t estimate_threshold(double p);
double estimate_threshold_probability(uint32_t threshold);
/* Bucket of a size, and the sizes a bucket holds: [*ret_low, *ret_high]. The BPF side has the same
 * function (bpf/sample.bpf.h); a test compares the two. */
uint32_t estimate_bucket(uint64_t size_bytes);
void estimate_bucket_range(uint32_t bucket, uint64_t *ret_low, uint64_t *ret_high);

void estimate_add(struct estimate *e, uint64_t size_bytes, double p);
void estimate_merge(struct estimate *e, const struct estimate *other);
/* Of two moments of one growing sum: what was added in between. Its variance is the difference of both,
 * because nothing that was added later depends on what was there. */
void estimate_subtract(struct estimate *e, const struct estimate *earlier);
/*
 * Variance of a row of which only sums are left (a profile some other tool wrote): all objects
 * are taken to have the row's mean size. v = bytes * m / (exp(m/R) - 1), m = bytes / objects.
 */
double estimate_variance_from_sums(double bytes, double objects, uint64_t rate_bytes);
/*
 * 95 % interval of the bytes of a row. Never below the bytes of a single sample, not symmetric while few
 * allocations were missed, normal when many were. Exact (both ends = bytes) when the variance of some
 * samples is 0. Without a sample it begins at 0 and ends at what may have been missed, if rate_bytes is set. An
 * estimate that is not made by estimate_add() (read from a file) should have rate_bytes set too.
 */
void estimate_interval(const struct estimate *e, double *ret_low, double *ret_high);
/* The same with another confidence: tail is the chance of a truth beyond it, on each side. */
void estimate_interval_at(const struct estimate *e, double tail, double *ret_low, double *ret_high);
#define ESTIMATE_TAIL_95 0.025
/* Fewer than 4 samples and not exact: too few to say much; reports mark such rows. */
bool estimate_is_weak(const struct estimate *e);

#endif
