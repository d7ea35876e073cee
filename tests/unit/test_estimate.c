/* SPDX-License-Identifier: MIT */
/* test_estimate.c - the estimator: buckets, known values, bias, and coverage of its intervals. */
#include "unit.h"

#include "heaptap/abi.h"
#include "heaptap/variance.h"
#include "profile/estimate.h"
#include "random.h"
#include "whole.h"

#define RATE 65536
#define SITE_CNT 200
#define RUN_CNT 50

static void near(double got, double expected, double relative)
{
	if (fabs(got - expected) > relative * fabs(expected))
		fail_msg("%.9g, not %.9g", got, expected);
}

TEST(test_probability)
{
	assert_true(estimate_probability(1, 1) == 1);
	assert_true(estimate_probability(1, 0) == 1);
	near(estimate_probability(RATE, RATE), 0.6321205588, 1e-9);
	near(estimate_probability(16, RATE), 2.4411082e-4, 1e-6);
	assert_true(estimate_probability(0, RATE) == estimate_probability(1, RATE));
	assert_int_equal(estimate_threshold(1), HT_KEEP_ALWAYS);
	assert_true(estimate_threshold_probability(HT_KEEP_ALWAYS) == 1);
	assert_int_equal(estimate_threshold(1e-15), 1); /* never a size that cannot be seen */
	assert_true(estimate_threshold_probability(estimate_threshold(0.25)) == 0.25);
}

TEST(test_buckets)
{
	uint64_t low, high, expected_low = 1;

	assert_int_equal(estimate_bucket(0), 1);
	for (uint32_t b = 1; b < HT_BUCKET_CNT; b++) {
		estimate_bucket_range(b, &low, &high);
		assert_int_equal(low, expected_low); /* no gap, no overlap */
		assert_int_equal(estimate_bucket(low), b);
		assert_int_equal(estimate_bucket(high), b);
		assert_true((double)(high - low) <= low / 64.);
		expected_low = high + 1;
	}
	assert_true(expected_low == 1ULL << 48);
	assert_int_equal(estimate_bucket(UINT64_MAX), HT_BUCKET_CNT - 1);
}

/* As the sampling table is filled: p of a bucket is that of its middle, rounded to 32 bits. */
static uint32_t threshold_of(uint64_t size)
{
	uint64_t low, high;

	estimate_bucket_range(estimate_bucket(size), &low, &high);
	return estimate_threshold(estimate_probability(low + (high - low) / 2, RATE));
}

/* BPF's whole numbers against floating point: all kinds of rate, sizes, and coarser rates meanwhile. */
struct variance_sums {
	struct ht_variance units;
	double exact;
};

static void add_variance(struct variance_sums *s, uint64_t size, uint64_t rate, uint32_t base_log2,
			 uint64_t *seed)
{
	uint64_t low, high, weight_16;
	struct ht_variance v;
	uint32_t threshold;
	double p;

	estimate_bucket_range(estimate_bucket(size), &low, &high);
	threshold = estimate_threshold(estimate_probability(low + (high - low) / 2, rate));
	if (threshold != HT_KEEP_ALWAYS && (uint32_t)(uniform(seed) * 0x1p32) >= threshold)
		return;
	weight_16 = threshold == HT_KEEP_ALWAYS ? 1 << 16 : (1ULL << 48) / threshold;
	v = ht_variance_of(size * weight_16, threshold, base_log2);
	s->units.fine += v.fine;
	s->units.coarse += v.coarse;
	p = estimate_threshold_probability(threshold);
	assert_true((p < 1) == (v.fine + v.coarse > 0)); /* only what was certain is exact */
	s->exact += (double)size * size * (1 - p) / (p * p);
}

static double variance_bytes(const struct variance_sums *s, uint32_t base_log2)
{
	return ldexp(ldexp((double)s->units.fine, -20) + (double)s->units.coarse,
		     2 * (int)base_log2);
}

/* relative: sizes are up to so many times the rate */
static void check_variance(uint64_t base_rate, uint64_t rate, double relative)
{
	uint32_t base_log2 = ht_variance_base_log2(base_rate);
	uint64_t seed = 0x9e3779b97f4a7c15ULL ^ rate;
	struct variance_sums s = { 0 };

	for (int i = 0; i < 20000; i++) {
		double size = relative * (double)rate * pow(0x1p-16, uniform(&seed));

		add_variance(&s, size < 1 ? 1 : (uint64_t)size, rate, base_log2, &seed);
	}
	if (s.exact > 0 && fabs(variance_bytes(&s, base_log2) / s.exact - 1) > 0.01)
		fail_msg("base %llu, rate %llu, sizes to %g R: %.9g, not %.9g",
			 (unsigned long long)base_rate, (unsigned long long)rate, relative,
			 variance_bytes(&s, base_log2), s.exact);
	assert_true(s.units.fine >> 60 == 0 && s.units.coarse >> 60 == 0);
}

TEST(test_whole_numbers)
{
	static const uint64_t rates[] = {
		1, 2, 3, 10, 100, 511, 512, 4097, 65536, 99999, 524288, 1 << 25, 1 << 30, 1ULL << 40
	};

	assert_int_equal(ht_variance_base_log2(1), 0);
	assert_int_equal(ht_variance_base_log2(2), 1);
	assert_int_equal(ht_variance_base_log2(65536), 16);
	assert_int_equal(ht_variance_base_log2(65537), 17);
	each_case(c, rates) {
		check_variance(*c, *c, 1);
		check_variance(*c, *c, 12);
		for (uint64_t coarse = 2; coarse <= 1 << HT_VARIANCE_RANGE_LOG2; coarse *= 2)
			if (*c * coarse <= 1ULL << 46)
				check_variance(*c, *c * coarse, 1);
	}
}

/* The largest numbers of all do not overflow. */
TEST(test_whole_numbers_fit)
{
	for (uint32_t base_log2 = 0; base_log2 <= 40; base_log2++)
		for (uint32_t coarse = 0;
		     coarse <= HT_VARIANCE_RANGE_LOG2 && base_log2 + coarse <= 46; coarse++)
			for (double x = 0x1p-20; x < 23; x *= 1.1) {
				uint64_t rate = 1ULL << (base_log2 + coarse), size = x * rate;
				uint32_t t;
				double p, v, exact;
				struct ht_variance units;

				size = size ? size : 1;
				t = estimate_threshold(estimate_probability(size, rate));
				p = estimate_threshold_probability(t);
				if (p >= 1 || size >> 47) /* an address space */
					continue;
				units = ht_variance_of(size * ((1ULL << 48) / t), t, base_log2);
				v = ldexp(ldexp(units.fine, -20) + units.coarse,
					  2 * (int)base_log2);
				exact = size / p * (size / p) * (1 - p);
				/* and one unit, whose root is at most 1/64 of the weight */
				if (fabs(v - exact) > 0.015 * exact + pow(size / p / 64, 2))
					fail_msg("base 2^%u, rate 2^%u, %g R: %g, not %g",
						 base_log2, base_log2 + coarse, x, v, exact);
				assert_true(v <= 1.1 * rate * rate);
				assert_true(units.fine < 1ULL << 32 && units.coarse < 1ULL << 41);
			}
}

/* A foreign sampler may report any weight up to the cap. What is added stays within the bound that others rely on. */
TEST(test_foreign_weights_fit)
{
	static const uint32_t thresholds[] = { 1, 4096, 1u << 31, HT_KEEP_ALWAYS - 1 };

	for (uint32_t base_log2 = 0; base_log2 <= 40; base_log2++)
		each_case(c, thresholds)
			for (uint32_t bits = 1; bits <= 64; bits++) {
				uint64_t w = UINT64_MAX >> (64 - bits);
				struct ht_variance v = ht_variance_of(w, *c, base_log2);

				assert_true(v.fine < 1ULL << 32 && v.coarse < 1ULL << 41);
				assert_true(v.fine || v.coarse);
			}
}

TEST(test_subtract)
{
	struct estimate e = { 0 }, earlier;

	estimate_add(&e, 100, 0.5);
	earlier = e;
	estimate_add(&e, 300, 0.25);
	estimate_subtract(&e, &earlier);
	assert_int_equal(e.samples, 1);
	assert_true(e.bytes == 1200 && e.objects == 4);
	near(e.bytes_variance, 300. * 300 * 0.75 / 0.0625, 1e-12);
	estimate_subtract(&e, &earlier);
	estimate_subtract(&e, &earlier); /* a reading that is torn is not below 0 */
	assert_int_equal(e.samples, 0);
	e.bytes_variance = 1;
	estimate_subtract(&e, &earlier);
	assert_true(e.bytes_variance == 0);
}

/* The draw of sample_draw() in the BPF object. */
static void draw(struct estimate *e, uint64_t size, uint64_t *seed)
{
	uint32_t threshold = threshold_of(size);

	if (threshold == HT_KEEP_ALWAYS || (uint32_t)(uniform(seed) * 0x1p32) < threshold)
		estimate_add(e, size, estimate_threshold_probability(threshold));
}

/* Sum over i < k of the Poisson probabilities of i, and half that of k itself. */
static double poisson_mid_p(int k, double mean)
{
	double term = exp(-mean), sum = 0;

	for (int i = 0; i < k; i++) {
		sum += term;
		term *= mean / (i + 1);
	}
	return sum + term / 2;
}

/*
 * k samples of tiny allocations: Poisson. The mid-P limits are by definition where the chance of a
 * count beyond k, with half that of k, is 2.5 %. Each lies inside the exact one (Garwood's tables).
 */
TEST(test_poisson_limits)
{
	static const struct {
		int k;
		double exact_low, exact_high;
	} cases[] = {
		{ 2, 0.2422, 7.2247 },	 { 3, 0.6187, 8.7673 },	   { 5, 1.6235, 11.6683 },
		{ 10, 4.7954, 18.3904 }, { 20, 12.2165, 30.8884 }, { 29, 19.4218, 41.6489 },
	};
	struct estimate e;
	double low, high;

	each_case(c, cases) {
		e = (struct estimate){ 0 };
		for (int k = 0; k < c->k; k++)
			estimate_add(&e, 1, 1e-7);
		estimate_interval(&e, &low, &high);
		low /= 1e7;
		high /= 1e7;
		near(1 - poisson_mid_p(c->k, low), 0.025, 1e-3);
		near(poisson_mid_p(c->k, high), 0.025, 1e-3);
		assert_true(c->exact_low < low && low < c->exact_low + 0.7);
		assert_true(c->exact_high - 0.8 < high && high < c->exact_high);
		assert_int_equal(estimate_is_weak(&e), c->k < 4);
	}
	/* one sample: nothing is certain but the block itself */
	e = (struct estimate){ 0 };
	estimate_add(&e, 16, estimate_probability(16, RATE));
	estimate_interval(&e, &low, &high);
	near(low, 16, 1e-6);
	near(poisson_mid_p(1, high / e.bytes), 0.025, 5e-3);
	/* none: P(0 samples) / 2 is 2.5 % there, and it is of no use to say 0 to 0 */
	e = (struct estimate){ .rate_bytes = RATE };
	estimate_interval(&e, &low, &high);
	assert_true(low == 0);
	near(exp(-high / RATE) / 2, 0.025, 1e-9);
	e.rate_bytes = 1; /* every allocation is recorded */
	estimate_interval(&e, &low, &high);
	assert_true(low == 0 && high == 0);
	/* 100: normal */
	e = (struct estimate){ 0 };
	for (int k = 0; k < 100; k++)
		estimate_add(&e, 1, 1e-7);
	estimate_interval(&e, &low, &high);
	near(low / 1e7, 100 - 19.59964, 1e-5);
	near(high / 1e7, 100 + 19.59964, 1e-5);
}

TEST(test_exact_and_merged)
{
	struct estimate a = { 0 }, b = { 0 };
	double low, high;

	estimate_interval(&a, &low, &high);
	assert_true(low == 0 && high == 0);
	estimate_add(&a, 1000, 1);
	estimate_interval(&a, &low, &high);
	assert_true(low == 1000 && high == 1000 && !estimate_is_weak(&a));
	estimate_add(&b, 500, 0.5);
	estimate_merge(&a, &b);
	assert_true(a.samples == 2 && a.objects == 3 && a.bytes == 2000);
	assert_true(a.bytes_variance == 500. * 500 * 0.5 / 0.25);
	assert_true(a.objects_variance == 0.5 / 0.25);
	near(a.rate_bytes, 500 / log(2), 1e-12);
}

/* What is left of a row in somebody else's file must give what the samples would have given. */
TEST(test_variance_from_sums)
{
	struct estimate e = { 0 };

	for (int i = 0; i < 10; i++)
		estimate_add(&e, 4096, estimate_probability(4096, RATE));
	near(estimate_variance_from_sums(e.bytes, e.objects, RATE), e.bytes_variance, 1e-9);
	assert_true(estimate_variance_from_sums(100, 1, 1) == 0);
	assert_true(estimate_variance_from_sums(0, 0, RATE) == 0);
	assert_true(estimate_variance_from_sums(1e9, 1, 1) == 0);
}

/* Large shapes go through Wilson and Hilferty; the two ways must meet. */
TEST(test_interval_is_continuous)
{
	double last_high = 0;

	for (int blocks = 1; blocks < 60; blocks++) {
		struct estimate e = { 0 };
		double low, high;

		for (int i = 0; i < blocks; i++)
			estimate_add(&e, 1 << 18, estimate_probability(1 << 18, RATE));
		estimate_interval(&e, &low, &high);
		assert_true(low < e.bytes && e.bytes < high);
		assert_true(high > last_high);
		/* what may have been missed is of the order of some R beside the spread */
		assert_true(high - e.bytes < 2.3 * sqrt(e.bytes_variance) + 4.2 * RATE);
		last_high = high;
	}
}

struct site {
	uint64_t low_bytes, high_bytes; /* log-uniform sizes */
	uint32_t block_cnt;
};

static uint64_t size_at(const struct site *s, uint64_t *seed)
{
	return s->low_bytes * pow((double)s->high_bytes / s->low_bytes, uniform(seed));
}

/* A third have one size, a third a narrow and a third a wide mixture. The totals run from
 * min_bytes to 512 times that. */
static void make_sites(struct site *sites, double min_bytes)
{
	uint64_t seed = 20240229;

	for (int i = 0; i < SITE_CNT; i++) {
		uint64_t a = 16 * pow(65536, uniform(&seed)), spread = 0;
		double total = min_bytes * pow(512, uniform(&seed));

		spread = i % 3 == 0 ? a : i % 3 == 1 ? 4 * a : 1 << 20;
		sites[i] = (struct site){ a, spread > 1 << 20 ? 1 << 20 : spread, 0 };
		if (sites[i].high_bytes < a)
			sites[i].high_bytes = a;
		sites[i].block_cnt = total / sqrt((double)a * sites[i].high_bytes) + 1;
		if (sites[i].block_cnt > 60000)
			sites[i].block_cnt = 60000;
	}
}

static void check_coverage(double min_bytes, double at_most)
{
	struct site sites[SITE_CNT];
	double covered = 0, shown = 0, weak_covered = 0, weak_shown = 0, error = 0, variance = 0;

	make_sites(sites, min_bytes);
	for (int s = 0; s < SITE_CNT; s += is_whole() ? 1 : 4) {
		struct estimate e[RUN_CNT] = { 0 };
		uint64_t sizes_seed = s + 1, seed = 7777 + s;
		double truth = 0;

		for (uint32_t i = 0; i < sites[s].block_cnt; i++) {
			uint64_t size = size_at(&sites[s], &sizes_seed);

			truth += size;
			for (int run = 0; run < RUN_CNT; run++)
				draw(&e[run], size, &seed);
		}
		for (int run = 0; run < RUN_CNT; run++) {
			double low, high;
			int hit;

			error += e[run].bytes - truth;
			variance += e[run].bytes_variance;
			if (!e[run].samples)
				continue;
			estimate_interval(&e[run], &low, &high);
			hit = low <= truth && truth <= high;
			covered += hit;
			shown++;
			weak_covered += hit && e[run].samples < 30;
			weak_shown += e[run].samples < 30;
		}
	}
	print_message("# covered %.2f %% of %.0f rows (%.2f %% of %.0f with under 30 samples), "
		      "total off by %.2f standard errors\n",
		      100 * covered / shown, shown, 100 * weak_covered / weak_shown, weak_shown,
		      error / sqrt(variance));
	assert_true(covered / shown >= 0.93 && covered / shown <= at_most);
	assert_true(weak_covered / weak_shown >= 0.93);
	assert_true(weak_shown > 500);
	assert_true(fabs(error) < 3 * sqrt(variance));
}

/* Sites that hold eight times the rate and more: as often as promised, and not more. */
TEST(test_coverage)
{
	check_coverage(8 * RATE, 0.97);
}

/* From one times the rate on most rows have a handful of samples, and still. */
TEST(test_coverage_of_small_sites)
{
	check_coverage(RATE, 0.97);
}

RUN_TESTS()
