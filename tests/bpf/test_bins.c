/* SPDX-License-Identifier: MIT */
/*
 * test_bins.c - sizes and lifetimes: exact at rate 1, unbiased at another, bounded, and what finds no room is counted.
 * A right program fails one of the checks of a rate in one of some 1000 runs.
 */
#include "rig.h"

#include "heaptap/sum.h"
#include "profile/bins.h"
#include "profile/estimate.h"

#define STACK_CAP 16
#define BIN_CAP (8 * STACK_CAP) /* engine.h: so many bins a stack */
#define SIZE_CNT 20
#define RATE_BYTES 65536

static void *(*volatile do_malloc)(size_t) = malloc;
static void *(*volatile do_realloc)(void *, size_t) = realloc;
static void (*volatile do_free)(void *) = free;

static void *held[512];

struct sums {
	uint64_t entries, samples[HT_BIN_CNT];
	double objects[HT_BIN_CNT], bytes[HT_BIN_CNT];
	uint64_t size_samples, life_samples;
};

static int add_bin(void *ctx, const struct ht_bin_key *k, const struct ht_bin *v)
{
	struct sums *s = ctx;

	assert_true(k->bin < HT_BIN_CNT);
	s->entries++;
	s->samples[k->bin] += v->samples;
	s->objects[k->bin] += ht_sum_value(&v->objects_16, 16);
	s->bytes[k->bin] += ht_sum_value(&v->bytes_8, 8);
	*(k->bin < HT_BIN_LIFE ? &s->size_samples : &s->life_samples) += v->samples;
	return 0;
}

static struct sums bins(struct rig *rig)
{
	struct sums s = { 0 };

	assert_int_equal(engine_each_bin(rig->engine, add_bin, &s), 0);
	return s;
}

/* 2^i - 1 and 2^i of each power: the ends of the bins. */
static void step_sizes(volatile uint64_t *out)
{
	for (int i = 0; i < SIZE_CNT; i++) {
		held[2 * i] = do_malloc((1UL << i) - 1);
		held[2 * i + 1] = do_malloc(1UL << i);
	}
}

static void step_free_sizes(volatile uint64_t *out)
{
	for (int i = 0; i < 2 * SIZE_CNT; i++)
		do_free(held[i]);
}

static void check_sizes(struct rig *rig)
{
	struct ht_total total;
	struct sums s;

	rig_do(rig, step_sizes);
	s = bins(rig);
	total = rig_totals(rig);
	assert_int_equal(s.samples[HT_BIN_SIZE], 1); /* 0 bytes */
	assert_int_equal(s.samples[HT_BIN_SIZE + SIZE_CNT], 1);
	for (int i = 1; i < SIZE_CNT; i++) {
		uint64_t low = 1UL << (i - 1), high = (1UL << i) - 1;

		assert_int_equal(s.samples[HT_BIN_SIZE + i], 2);
		assert_true(s.bytes[HT_BIN_SIZE + i] == (double)(low + high));
		assert_int_equal(bin_of_size(low), HT_BIN_SIZE + i);
		assert_int_equal(bin_of_size(high), HT_BIN_SIZE + i);
	}
	assert_int_equal(s.size_samples, total.alloc_samples);
	assert_int_equal(s.life_samples, 0); /* what lives has no lifetime */

	rig_do(rig, step_free_sizes);
	s = bins(rig);
	total = rig_totals(rig);
	assert_int_equal(total.free_samples, 2 * SIZE_CNT);
	assert_int_equal(s.life_samples, total.free_samples);
	assert_int_equal(rig_stat(rig, HT_STAT_BINS_FULL), 0);
}

/* out[0]: us to live */
static void step_live(volatile uint64_t *out)
{
	void *block = do_malloc(64);

	usleep((useconds_t)out[0]);
	do_free(block);
	block = do_malloc(64);
	usleep((useconds_t)out[0]);
	do_free(do_realloc(block, 100)); /* a free, and a block that lives for next to nothing */
}

/* Lifetimes are at least what the program slept, and hardly longer. */
static void check_lifetimes(struct rig *rig, uint64_t sleep_us)
{
	uint32_t first = bin_of_life(sleep_us * 1000);
	struct sums before = bins(rig), after;
	uint64_t shorter = 0, longer = 0;

	rig->out[0] = sleep_us;
	rig_do(rig, step_live);
	after = bins(rig);
	for (uint32_t k = HT_BIN_LIFE; k < HT_BIN_CNT; k++)
		*(k < first ? &shorter : &longer) += after.samples[k] - before.samples[k];
	assert_int_equal(longer, 2);
	assert_int_equal(shorter, 1);
	/* on a machine that others use it may be woken up late, but not by many seconds */
	for (uint32_t k = bin_of_life(20000000000ULL); k < HT_BIN_CNT; k++)
		assert_int_equal(after.samples[k], 0);
}

static void step_take(volatile uint64_t *out)
{
	held[0] = do_malloc(1009);
}

static void step_give(volatile uint64_t *out)
{
	do_free(held[0]);
}

/* Freed out of sight: it is known to be free when its address comes again, but not since when. */
static void check_unseen(struct rig *rig)
{
	const struct ht_target off = { .flags = HT_TARGET_OFF };
	uint64_t life_samples = bins(rig).life_samples;
	uint64_t free_samples = rig_totals(rig).free_samples;
	struct ht_target on;

	rig_do(rig, step_take);
	assert_int_equal(engine_get_target(rig->engine, rig->pid, &on), 0);
	assert_int_equal(engine_put_target(rig->engine, rig->pid, &off), 0);
	rig_do(rig, step_give);
	assert_int_equal(engine_put_target(rig->engine, rig->pid, &on), 0);
	rig_do(rig, step_take);
	assert_int_equal(rig_stat(rig, HT_STAT_MISSED_FREE), 1);
	assert_int_equal(rig_totals(rig).free_samples, free_samples + 1);
	assert_int_equal(bins(rig).life_samples, life_samples);
}

TEST(test_exact)
{
	struct rig *rig = rig_open(rig_mode(state), 1, 4096, 1024);

	check_sizes(rig);
	check_lifetimes(rig, 3000);
	check_lifetimes(rig, 50000);
	check_lifetimes(rig, 300000);
	check_unseen(rig);
}

static void hold(volatile uint64_t *out, int cnt)
{
	for (int i = 0; i < cnt; i++) {
		char name[HT_COMM_BYTES];

		/* a context of its own for each */
		snprintf(name, sizeof(name), "name-%d", i);
		prctl(PR_SET_NAME, name);
		held[i] = do_malloc((size_t)100 << i % 3);
	}
}

/* Fewer contexts than totals have room for, times as many bins as a context has sizes. */
static void step_many(volatile uint64_t *out)
{
	for (int i = 0; i < 3; i++) {
		hold(out, 4 * STACK_CAP);
		for (int k = 0; k < 4 * STACK_CAP; k++) {
			do_free(held[k]);
			held[k] = NULL;
		}
	}
	/* three sizes more for each */
	for (int i = 0; i < 4 * STACK_CAP; i++) {
		char name[HT_COMM_BYTES];

		snprintf(name, sizeof(name), "name-%d", i);
		prctl(PR_SET_NAME, name);
		for (int k = 0; k < 3; k++)
			do_free(do_malloc((size_t)10000 << k));
	}
}

/* A sum that is there loses nothing when the map is full; each sample that finds no room is counted. */
TEST(test_full)
{
	struct ht_total total;
	struct sums s;
	struct rig *rig = rig_open(rig_mode(state), 1, 4096, STACK_CAP);

	rig_do(rig, step_many);
	s = bins(rig);
	total = rig_totals(rig);
	assert_int_equal(total.alloc_samples, total.free_samples);
	assert_int_equal(total.alloc_samples + rig_stat(rig, HT_STAT_TOTALS_FULL) / 2,
			 6 * 4 * STACK_CAP);
	assert_int_equal(s.entries, BIN_CAP);
	assert_true(rig_stat(rig, HT_STAT_BINS_FULL) > 0);
	assert_int_equal(s.size_samples + s.life_samples + rig_stat(rig, HT_STAT_BINS_FULL),
			 total.alloc_samples + total.free_samples);
	assert_int_equal(rig_live(rig).cnt, 0);
}

/* The same of a process that has a share: there is room left, and what it was refused is counted for it. */
TEST(test_share)
{
	const struct rig_options opts = { rig_mode(state), 1, 4096, STACK_CAP, true };
	struct ht_image image;
	struct ht_target target;
	struct ht_total total;
	struct sums s;
	struct rig *rig = rig_open_with(&opts);

	rig_do(rig, step_many);
	s = bins(rig);
	total = rig_totals(rig);
	assert_int_equal(engine_get_target(rig->engine, rig->pid, &target), 0);
	assert_int_equal(engine_get_image(rig->engine, rig->pid, target.generation, &image), 0);
	assert_true(s.entries > BIN_CAP / 2 && s.entries < BIN_CAP * 3 / 4);
	assert_int_equal(image.used[HT_SHARED_BINS], s.entries);
	assert_true(image.refused[HT_SHARED_BINS] > 0);
	assert_int_equal(rig_stat(rig, HT_STAT_SHARE_BINS), image.refused[HT_SHARED_BINS]);
	assert_int_equal(s.size_samples + s.life_samples + image.refused[HT_SHARED_BINS],
			 total.alloc_samples + total.free_samples);
}

#define SMALL_CNT 100000
#define LARGE_CNT 4000

/* Small ones are gone at once, large ones live a while. */
static void step_mix(volatile uint64_t *out)
{
	static void *large[LARGE_CNT];

	for (int i = 0; i < SMALL_CNT; i++)
		do_free(do_malloc(100));
	for (int i = 0; i < LARGE_CNT; i++)
		large[i] = do_malloc(5000);
	usleep(20000);
	for (int i = 0; i < LARGE_CNT; i++)
		do_free(large[i]);
}

static void within(const char *what, double got, double cnt, uint64_t size_bytes)
{
	double p = estimate_probability(size_bytes, RATE_BYTES);
	double error = sqrt(cnt * (1 - p) / p);

	if (fabs(got - cnt) > 4 * error)
		fail_msg("%s: %.0f objects, %.0f true, standard error %.0f", what, got, cnt, error);
}

TEST(test_rate)
{
	double small_life = 0, large_life = 0;
	struct kernel_features features;
	enum attach_mode best;
	struct ht_total total;
	struct sums s;
	struct rig *rig;

	assert_int_equal(kernel_features_probe(&features), 0);
	assert_int_equal(kernel_features_choose_mode(&features, ATTACH_AUTO, &best), 0);
	if (rig_mode(state) != best) /* all that could differ comes before */
		return;
	rig = rig_open(best, RATE_BYTES, 8192, 1024);
	rig_do(rig, step_mix);
	s = bins(rig);
	total = rig_totals(rig);
	within("small", s.objects[bin_of_size(100)], SMALL_CNT, 100);
	within("large", s.objects[bin_of_size(5000)], LARGE_CNT, 5000);
	for (uint32_t k = HT_BIN_LIFE; k < HT_BIN_CNT; k++)
		*(k < bin_of_life(16000000) ? &small_life : &large_life) += s.objects[k];
	within("small, freed", small_life, SMALL_CNT, 100);
	within("large, freed", large_life, LARGE_CNT, 5000);
	/* no sample is there twice, none is missing */
	assert_int_equal(s.size_samples, total.alloc_samples);
	assert_int_equal(s.life_samples, total.free_samples);
	assert_true(small_life + large_life == ht_sum_value(&total.free_objects_16, 16));
}

RUN_RIG_TESTS()
