/* SPDX-License-Identifier: MIT */
/*
 * estimate.c - the statistics of sampled allocations.
 *
 * Each allocation of n bytes is kept with p(n) = 1 - exp(-n/R), independently of all others. That is the chance that a
 * Poisson process with one point per R bytes has a point inside the allocation: large blocks are nearly always seen,
 * small ones about once per R bytes, and no size is favoured.
 *
 * Estimator (Horvitz and Thompson 1952): a kept allocation stands for 1/p objects and n/p bytes. E[sum over kept of
 * n/p] = sum over all of p * n/p = sum over all of n, whatever p was for each of them. So p may differ from sample to
 * sample (rate changes, table rounding) as long as each sample carries the p it was kept with. Weights are applied per
 * sample and then summed: scaling a sum afterwards by an average p is biased when sizes are mixed.
 *
 * Table: a 32-bit random number is compared with the threshold of the size's bucket. Buckets are log-linear: sizes
 * below 64 have a bucket each, and each octave from 64 on has 64 buckets (HT_SUB_BITS), so sizes up to 127 are exact
 * too. p of a bucket is that of its middle. So the table rounds p(n), but not the estimate: the threshold that was used
 * is stored with the sample, and p = threshold / 2^32 exactly.
 *
 * Variance: the variance of the sum is the sum over all of n^2 (1-p)/p; its unbiased estimate from what was kept is sum
 * over kept of n^2 (1-p)/p^2.
 *
 * Interval. The unknown is how much was missed, and the chance of missing falls with size: a row of large blocks and a
 * few small ones has a tiny variance, and yet the small ones may be many. So the count that decides is V / R^2, where V
 * is the variance and R the weight of a small allocation: for small sizes it is the number of samples, for large sizes
 * about the number of misses. From 30 on (and B^2 / V from 30 on) the normal interval B +- 1.96 sqrt(V) holds. Below 30
 * the sum is a Poisson count times weights, far from symmetric. Fay and Feuer (1997) give the interval for weighted
 * Poisson counts from two gamma distributions of the truth, one for each end. With w the weight of one more
 * observation:
 *   low  = V / (2B)           * chi2(0.025, 2 B^2 / V)
 *   high = (V+w^2) / (2(B+w)) * chi2(0.975, 2 (B+w)^2 / (V+w^2))
 * For small sizes, whose weights are all R, it is the exact Poisson interval. "Exact" means that every truth is covered
 * in at least 95 %; counts are whole numbers, so nearly all are covered in more: 97.4 and 98.2 % for the rows with under
 * 30 samples in the two coverage tests of tests/unit/test_estimate.c. That is wider than 95 % needs. So both ends come
 * from the even mixture of the two distributions, the mid-P interval of Fay and Kim (2017, "Confidence intervals for
 * directly standardized rates using mid-p gamma intervals"): 95.8 and 97.3 %. w is the weight of an allocation that was
 * NOT seen, R. (With the mean weight V / B of the seen ones, rows of mixed sizes and few samples were covered in only 75 to
 * 90 %.) So rows of equally large blocks are covered more often than promised.
 *
 * Only rows with a sample are shown. That condition matters when there is one sample: of many call sites that each
 * allocate far less than R, now and then one gets a row with B = R, and an interval that begins at a few hundredths of
 * R is then always wrong. The only certain thing is the block itself, n = B - V / B (from B = n/p and V = n^2
 * (1-p)/p^2), and that is the low end. From two samples on the usual bound holds.
 *
 * A row may be shown for what it allocated although nothing that it holds was sampled. Then it may still hold
 * something: without a sample, the distribution of the high end is that of the one more observation alone, so the
 * interval ends at R ln 20, three times R (at R ln(1 / (2 tail)) with another confidence). A row that holds next to
 * nothing is always covered, which cannot be avoided. Coverage by kind of row is checked in the tests.
 */
#include "profile/estimate.h"

#include "heaptap/abi.h"

#define NORMAL_FROM_SAMPLES 30
#define SERIES_UP_TO_SHAPE 400
#define WEAK_BELOW_SAMPLES 4

double estimate_probability(uint64_t size_bytes, uint64_t rate_bytes)
{
	if (rate_bytes <= 1)
		return 1;
	return -expm1(-(double)(size_bytes ? size_bytes : 1) / rate_bytes);
}

uint32_t estimate_threshold(double p)
{
	double t = round(p * 0x1p32);

	if (t >= HT_KEEP_ALWAYS)
		return HT_KEEP_ALWAYS;
	return t < 1 ? 1 : t;
}

double estimate_threshold_probability(uint32_t threshold)
{
	return threshold == HT_KEEP_ALWAYS ? 1 : threshold * 0x1p-32;
}

uint32_t estimate_bucket(uint64_t size_bytes)
{
	uint32_t octave;

	if (size_bytes < 1 << HT_SUB_BITS)
		return size_bytes ? size_bytes : 1;
	if (size_bytes >> 48)
		return HT_BUCKET_CNT - 1;
	octave = 63 - __builtin_clzll(size_bytes);
	return ((octave - HT_SUB_BITS + 1) << HT_SUB_BITS) +
	       ((size_bytes >> (octave - HT_SUB_BITS)) & ((1 << HT_SUB_BITS) - 1));
}

void estimate_bucket_range(uint32_t bucket, uint64_t *ret_low, uint64_t *ret_high)
{
	uint32_t shift, sub = bucket & ((1 << HT_SUB_BITS) - 1);

	if (bucket < 1 << HT_SUB_BITS) {
		*ret_low = *ret_high = bucket;
		return;
	}
	shift = (bucket >> HT_SUB_BITS) - 1;
	*ret_low = (uint64_t)(sub + (1 << HT_SUB_BITS)) << shift;
	*ret_high = *ret_low + (1ULL << shift) - 1;
}

void estimate_add(struct estimate *e, uint64_t size_bytes, double p)
{
	double n = size_bytes;

	e->samples++;
	if (p >= 1) { /* stands for itself, without variance */
		e->objects++;
		e->bytes += n;
		return;
	}
	e->objects += 1 / p;
	e->bytes += n / p;
	e->objects_variance += (1 - p) / (p * p);
	e->bytes_variance += n * n * (1 - p) / (p * p);
	e->rate_bytes = fmax(e->rate_bytes, -(n > 0 ? n : 1) / log1p(-p));
}

void estimate_merge(struct estimate *e, const struct estimate *other)
{
	e->samples += other->samples;
	e->objects += other->objects;
	e->bytes += other->bytes;
	e->objects_variance += other->objects_variance;
	e->bytes_variance += other->bytes_variance;
	e->rate_bytes = fmax(e->rate_bytes, other->rate_bytes);
}

/* Differences may be below 0: the counters of a sum are read one after another, and floating point rounds. */
void estimate_subtract(struct estimate *e, const struct estimate *earlier)
{
	e->samples -= e->samples < earlier->samples ? e->samples : earlier->samples;
	e->objects -= earlier->objects;
	e->bytes -= earlier->bytes;
	e->objects_variance = fmax(e->objects_variance - earlier->objects_variance, 0);
	e->bytes_variance = fmax(e->bytes_variance - earlier->bytes_variance, 0);
}

double estimate_variance_from_sums(double bytes, double objects, uint64_t rate_bytes)
{
	double mean;

	if (rate_bytes <= 1 || objects <= 0 || bytes <= 0)
		return 0;
	mean = bytes / objects;
	return bytes * mean / expm1(mean / rate_bytes);
}

/* Regularised lower incomplete gamma function P(a, x): series below the mean, continued fraction
 * (modified Lentz) above. Numerical Recipes' choice of where each converges fast. */
static double gamma_p(double a, double x)
{
	double scale = exp(-x + a * log(x) - lgamma(a)), term, sum, b, c, d, h;

	if (x < a + 1) {
		term = sum = 1 / a;
		for (int i = 1; i < 500 && fabs(term) > fabs(sum) * 1e-12; i++) {
			term *= x / (a + i);
			sum += term;
		}
		return sum * scale;
	}
	b = x + 1 - a;
	c = 1e300;
	d = 1 / b;
	h = d;
	for (int i = 1; i < 500; i++) {
		double an = -i * (i - a), delta;

		b += 2;
		d = 1 / (fabs(an * d + b) < 1e-300 ? 1e-300 : an * d + b);
		c = fabs(b + an / c) < 1e-300 ? 1e-300 : b + an / c;
		delta = d * c;
		h *= delta;
		if (fabs(delta - 1) < 1e-12)
			break;
	}
	return 1 - scale * h;
}

/* A gamma distribution of mean shape * scale. */
struct gamma {
	double shape;
	double scale;
};

static struct gamma gamma_of_moments(double mean, double variance)
{
	return (struct gamma){ .shape = mean * mean / variance, .scale = variance / mean };
}

/* Large shapes: the cube root of a gamma variate is nearly normal (Wilson and Hilferty 1931). Error
 * of a limit below 1e-5 of it. */
static double gamma_cdf(const struct gamma *g, double x)
{
	double a = g->shape;

	if (x <= 0)
		return 0;
	if (a > SERIES_UP_TO_SHAPE)
		return erfc(-(cbrt(x / g->scale / a) - 1 + 1 / (9 * a)) * 3 * sqrt(a / 2)) / 2;
	return gamma_p(a, x / g->scale);
}

/* A value far above every quantile that is asked for. */
static double gamma_far(const struct gamma *g)
{
	return g->scale * (g->shape + 10 * sqrt(g->shape) + 20);
}

/* x such that the even mixture of both is below x with probability p. By bisection: no hot path. */
static double mixture_quantile(const struct gamma *a, const struct gamma *b, double p)
{
	double low = 0, high = fmax(gamma_far(a), gamma_far(b));

	for (int i = 0; i < 60; i++) {
		double mid = (low + high) / 2;

		if (gamma_cdf(a, mid) + gamma_cdf(b, mid) < 2 * p)
			low = mid;
		else
			high = mid;
	}
	return (low + high) / 2;
}

/* The value that a standard normal variate exceeds with probability tail: 1.96 for 0.025. */
static double normal_quantile(double tail)
{
	double low = 0, high = 40;

	for (int i = 0; i < 60; i++) {
		double mid = (low + high) / 2;

		if (erfc(mid / sqrt(2)) / 2 > tail)
			low = mid;
		else
			high = mid;
	}
	return (low + high) / 2;
}

void estimate_interval(const struct estimate *e, double *ret_low, double *ret_high)
{
	estimate_interval_at(e, ESTIMATE_TAIL_95, ret_low, ret_high);
}

void estimate_interval_at(const struct estimate *e, double tail, double *ret_low, double *ret_high)
{
	double bytes = e->bytes, variance = e->bytes_variance, mean_weight, weight, reach;
	struct gamma seen, one_more;

	*ret_low = *ret_high = bytes;
	if (!e->samples && bytes <= 0 && e->rate_bytes > 1)
		*ret_high = -log(2 * tail) * e->rate_bytes;
	if (variance <= 0 || bytes <= 0)
		return;
	mean_weight = variance / bytes;
	weight = fmax(e->rate_bytes, mean_weight);
	if (bytes / mean_weight >= NORMAL_FROM_SAMPLES &&
	    (e->rate_bytes <= 0 || variance / (weight * weight) >= NORMAL_FROM_SAMPLES)) {
		reach = normal_quantile(tail) * sqrt(variance);
		*ret_low = bytes - reach;
		*ret_high = bytes + reach;
		return;
	}
	seen = gamma_of_moments(bytes, variance);
	one_more = gamma_of_moments(bytes + weight, variance + weight * weight);
	if (e->samples == 1)
		*ret_low = fmax(bytes - mean_weight, 0);
	else
		*ret_low = mixture_quantile(&seen, &one_more, tail);
	*ret_high = mixture_quantile(&seen, &one_more, 1 - tail);
}

bool estimate_is_weak(const struct estimate *e)
{
	return e->samples < WEAK_BELOW_SAMPLES && e->bytes_variance > 0;
}
