/* SPDX-License-Identifier: MIT */
/*
 * test_sampling.c - known sums, sampled: the estimates are within four standard errors.
 *
 * N blocks of n bytes, each kept with p: the estimate n * samples / p has the standard error
 * n * sqrt(N * (1 - p) / p). A right program fails one of the checks in one of 1000 runs. In the
 * best mode only, because the draw comes before all in which they differ.
 */
#include "rig.h"

#include "heaptap/sum.h"
#include "profile/estimate.h"

#define RATE_BYTES 65536
#define SAMPLE_CNT 400 /* wanted of each size */
#define BLOCKS_CAP (1 << 21)

static void *(*volatile do_malloc)(size_t) = malloc;
static void (*volatile do_free)(void *) = free;

static void **blocks; /* of the child */

/* out[0]: size, out[1]: how many */
static void step_alloc(volatile uint64_t *out)
{
	if (!blocks)
		blocks = mmap(NULL, BLOCKS_CAP * sizeof(*blocks), PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (uint64_t i = 0; i < out[1]; i++)
		blocks[i] = do_malloc(out[0]);
}

static void step_free_half(volatile uint64_t *out)
{
	for (uint64_t i = 0; i < out[1]; i += 2)
		do_free(blocks[i]);
}

static void step_free_rest(volatile uint64_t *out)
{
	for (uint64_t i = 1; i < out[1]; i += 2)
		do_free(blocks[i]);
}

static int add_weight(void *ctx, const struct ht_live_key *k, const struct ht_live *v)
{
	double *objects = ctx;

	*objects += 1 / estimate_threshold_probability(v->threshold);
	return 0;
}

/* p with which a block of this size is kept: that of the middle of its bucket. */
static double probability(uint64_t size_bytes)
{
	uint64_t low, high;

	estimate_bucket_range(estimate_bucket(size_bytes), &low, &high);
	return estimate_threshold_probability(
		estimate_threshold(estimate_probability(low + (high - low) / 2, RATE_BYTES)));
}

static void check_estimate(const char *what, uint64_t size_bytes, double objects, double cnt)
{
	double p = probability(size_bytes), error = sqrt(cnt * (1 - p) / p);

	/* one more for the sizes that are nearly always kept */
	if (fabs(objects - cnt) > 4 * error + 1)
		fail_msg("%s, %llu bytes: %.1f objects estimated, %.0f true, standard error %.1f",
			 what, (unsigned long long)size_bytes, objects, cnt, error);
}

/* What BPF says of the error of its sum is that of so many samples of this size. */
static void check_variance(const struct rig *rig, uint64_t size_bytes,
			   const struct ht_total *before, const struct ht_total *after)
{
	double p = probability(size_bytes), n = (double)size_bytes;
	double samples = (double)(after->alloc_samples - before->alloc_samples);
	double expected = samples * n * n * (1 - p) / (p * p);
	double got = engine_variance(rig->engine, &after->alloc_variance) -
		     engine_variance(rig->engine, &before->alloc_variance);

	/* one unit a sample: what is nearly always kept has hardly an error */
	if (fabs(got - expected) > 0.01 * expected + samples * pow(RATE_BYTES / 1024., 2))
		fail_msg("%llu bytes: variance %g, must be %g", (unsigned long long)size_bytes, got,
			 expected);
	assert_true((got > 0) == (p < 1));
}

static void check_size(struct rig *rig, uint64_t size_bytes)
{
	uint64_t cnt = (uint64_t)(SAMPLE_CNT / probability(size_bytes)) & -2UL;
	struct ht_total before = rig_totals(rig), after;
	double objects = 0;

	assert_true(cnt <= BLOCKS_CAP);
	rig->out[0] = size_bytes;
	rig->out[1] = cnt;
	rig_do(rig, step_alloc);
	after = rig_totals(rig);
	check_estimate("allocated", size_bytes,
		       ht_sum_value(&after.alloc_objects_16, 16) -
			       ht_sum_value(&before.alloc_objects_16, 16),
		       (double)cnt);
	check_estimate(
		"allocated bytes", size_bytes,
		(ht_sum_value(&after.alloc_bytes_8, 8) - ht_sum_value(&before.alloc_bytes_8, 8)) /
			(double)size_bytes,
		(double)cnt);
	check_variance(rig, size_bytes, &before, &after);
	rig_do(rig, step_free_half);
	assert_int_equal(engine_each_live(rig->engine, add_weight, &objects), 0);
	check_estimate("in use", size_bytes, objects, (double)cnt / 2);

	rig_do(rig, step_free_rest);
	after = rig_totals(rig);
	assert_int_equal(after.alloc_samples, after.free_samples);
	assert_int_equal(rig_live(rig).cnt, 0);
}

TEST(test_estimates)
{
	static const uint64_t sizes[] = { 16, 100, 1000, 10000, 65536, 300000, 1000000 };
	enum attach_mode best = rig_best_mode();
	struct rig *rig = rig_open(best, RATE_BYTES, 65536, 4096);

	/* millions of the smallest take too long on an emulated machine */
	for (size_t i = getenv("HEAPTAP_VM") ? 2 : 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		check_size(rig, sizes[i]);
	assert_int_equal(rig_stat(rig, HT_STAT_MISSED_FREE), 0);
	assert_int_equal(rig_stat(rig, HT_STAT_LIVE_FULL), 0);
}

/* The budget made the rate much coarser: another unit. Beyond that a sum could overflow. */
TEST(test_coarser_rate)
{
	struct ht_total before, after;
	enum attach_mode best = rig_best_mode();
	struct ht_target t;
	double p, got;
	struct rig *rig = rig_open(best, 2, 65536, 4096);

	assert_int_equal(engine_set_rate(rig->engine, 2, 1ULL << 60, UINT64_MAX), -ERANGE);
	assert_int_equal(engine_set_rate(rig->engine, 1, RATE_BYTES, UINT64_MAX), 0);
	assert_int_equal(engine_get_target(rig->engine, rig->pid, &t), 0);
	t.rate_idx = 1;
	assert_int_equal(engine_put_target(rig->engine, rig->pid, &t), 0);
	before = rig_totals(rig);
	rig->out[0] = 1000;
	rig->out[1] = 65536;
	rig_do(rig, step_alloc);
	after = rig_totals(rig);
	p = probability(1000);
	assert_true(after.alloc_variance.coarse > before.alloc_variance.coarse);
	got = (engine_variance(rig->engine, &after.alloc_variance) -
	       engine_variance(rig->engine, &before.alloc_variance)) /
	      (double)(after.alloc_samples - before.alloc_samples);
	if (fabs(got * p * p / (1e6 * (1 - p)) - 1) > 0.01)
		fail_msg("variance %g, must be %g", got, 1e6 * (1 - p) / (p * p));
}

/* The table that is in use gets another rate: each sample has what it was drawn with, and so have the sums. */
TEST(test_changed_rate)
{
	static const uint64_t rates[] = { 65536, 4096 };
	const double cnt = 65536, size = 1000;
	double objects = 0, variance = 0, error = 0, samples = 0;
	struct ht_total before, after;
	enum attach_mode best = rig_best_mode();
	struct rig *rig = rig_open(best, 4096, 65536, 4096); /* the finest: units are of it */

	before = rig_totals(rig);
	rig->out[0] = (uint64_t)size;
	rig->out[1] = (uint64_t)cnt;
	for (int i = 0; i < 2; i++) {
		uint64_t low, high;
		double p;

		assert_int_equal(engine_change_rate(rig->engine, 0, rates[i]), 0);
		estimate_bucket_range(estimate_bucket((uint64_t)size), &low, &high);
		p = estimate_probability(low + (high - low) / 2, rates[i]);
		rig_do(rig, step_alloc);
		after = rig_totals(rig);
		variance +=
			(double)(after.alloc_samples - before.alloc_samples - (uint64_t)samples) *
			size * size * (1 - p) / (p * p);
		samples = (double)(after.alloc_samples - before.alloc_samples);
		error += cnt * (1 - p) / p;
	}
	objects = ht_sum_value(&after.alloc_objects_16, 16) -
		  ht_sum_value(&before.alloc_objects_16, 16);
	if (fabs(objects - 2 * cnt) > 4 * sqrt(error))
		fail_msg("%.0f objects estimated, %.0f true", objects, 2 * cnt);
	assert_true(samples > cnt * 0.2); /* the finer one was in force */
	if (fabs((engine_variance(rig->engine, &after.alloc_variance) -
		  engine_variance(rig->engine, &before.alloc_variance)) /
			 variance -
		 1) > 0.01)
		fail_msg("variance %g, must be %g",
			 engine_variance(rig->engine, &after.alloc_variance) -
				 engine_variance(rig->engine, &before.alloc_variance),
			 variance);
}

RUN_TESTS()
