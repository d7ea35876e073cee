/* SPDX-License-Identifier: MIT */
/*
 * test_growth.c - histories of moments against a list of all blocks; rates and verdicts of simulated
 * programs: the intervals cover the truth, and what does not grow is not said to.
 */
#include "unit.h"

#include "profile/estimate.h"
#include "profile/growth.h"
#include "profile/history.h"
#include "random.h"
#include "whole.h"

#define S_NS 1000000000ULL
#define T0_NS (100 * S_NS)
#define MOMENT_CNT 24 /* two in each window */

static uint64_t seed = 88172645463325252ULL;

struct block {
	uint64_t begin_ns, end_ns; /* live from, and until before */
	uint64_t size;
	double p;
	uint32_t row;
};

static struct history *new_history(uint64_t interval_ns)
{
	struct history *h = NULL;

	assert_int_equal(history_new(interval_ns, &h), 0);
	return h;
}

static struct history_key key_of(uint32_t row)
{
	return (struct history_key){ .stack_id = row + 1, .context_id = row % 3 };
}

static void read_moment(struct history *h, const struct block *b, size_t cnt, uint64_t now_ns)
{
	history_begin(h, now_ns);
	for (size_t i = 0; i < cnt; i++) {
		struct history_key key = key_of(b[i].row);

		if (b[i].begin_ns <= now_ns && now_ns < b[i].end_ns)
			assert_int_equal(history_add(h, &key, b[i].begin_ns, b[i].size, b[i].p), 0);
	}
	assert_int_equal(history_end(h, 0), 0);
}

/* What a row held at two moments, and what was live at both, by the lives and by the list. */
static void check_common(const struct history *h, const struct block *b, size_t cnt, uint32_t row,
			 uint32_t k, uint32_t l)
{
	struct history_key key = key_of(row);
	size_t life_cnt = 0;
	const struct history_life *life = history_lives(h, &key, &life_cnt);
	uint64_t from = history_moments(h)->ns[k], to = history_moments(h)->ns[l], samples = 0;
	double bytes = 0, variance = 0;

	for (size_t i = 0; i < cnt; i++) {
		if (b[i].row != row || b[i].begin_ns > from || b[i].end_ns <= to)
			continue;
		samples++;
		bytes += (double)b[i].size / b[i].p;
		variance +=
			(double)b[i].size * (double)b[i].size * (1 - b[i].p) / (b[i].p * b[i].p);
	}
	for (size_t i = 0; i < life_cnt; i++) {
		if (life[i].first > k || life[i].last < l)
			continue;
		samples -= life[i].samples;
		bytes -= life[i].bytes;
		variance -= life[i].variance;
	}
	assert_int_equal(samples, 0);
	assert_true(fabs(bytes) < 1e-3);
	assert_true(fabs(variance) < 1);
}

/* 200 moments become 25 or fewer; all that can be said of those that are left is as if each had been kept. */
TEST(test_history_is_exact)
{
	enum { CNT = 3000, ROWS = 5 };
	struct block *b = unit_keep(calloc(CNT, sizeof(*b)), free);
	struct history *h = new_history(S_NS / 10);
	size_t moments;

	assert_non_null(b);
	for (size_t i = 0; i < CNT; i++) {
		b[i].begin_ns = T0_NS + (uint64_t)(uniform(&seed) * 20 * S_NS);
		b[i].end_ns =
			b[i].begin_ns + (uint64_t)(-log(uniform(&seed)) * (i % 7 ? 1 : 20) * S_NS);
		b[i].size = 1 + (uint64_t)(uniform(&seed) * 5000);
		b[i].p = i % 11 ? estimate_probability(b[i].size, 4096) : 1;
		b[i].row = (uint32_t)(i % ROWS);
	}
	for (uint64_t i = 1; i <= 200; i++)
		read_moment(h, b, CNT, T0_NS + i * S_NS / 10);
	assert_int_equal(history_finish(h), 0);
	moments = history_moments(h)->cnt;
	assert_true(moments >= HISTORY_MOMENTS_CAP / 2 && moments <= HISTORY_MOMENTS_CAP);
	assert_int_equal(history_moments(h)->ns[moments - 1], T0_NS + 20 * S_NS);
	for (uint32_t row = 0; row < ROWS; row++)
		for (uint32_t k = 0; k < moments; k++)
			for (uint32_t l = k; l < moments; l++)
				check_common(h, b, CNT, row, k, l);
	history_free(h);
}

/* The next moment is due later when reading was dear. */
TEST(test_cost)
{
	struct history *h = new_history(S_NS / 5);

	assert_int_equal(history_moments(h)->due_ns, 0);
	history_begin(h, T0_NS);
	assert_int_equal(history_end(h, S_NS / 10), 0);
	assert_true(history_moments(h)->due_ns - T0_NS >= 3 * S_NS);
	history_free(h);
}

/* What a program does with the blocks of one row. */
struct load {
	const char *name;
	double rate_bytes; /* of sampling */
	double leaks_per_s; /* of 1024 bytes */
	double churns_per_s; /* of churn_bytes */
	uint64_t churn_bytes;
	double churn_s; /* lifetime, on average */
	double before_s; /* it has run for so long when heaptap attaches */
	double warm_blocks; /* of 1024 bytes, in the first tenth of the recording; they stay */
	double swing; /* churn follows a sine of 7 s with this amplitude */
};

#define LEAK(per_s) .leaks_per_s = (per_s)
#define CHURN(per_s, bytes, life_s) \
	.churns_per_s = (per_s), .churn_bytes = (bytes), .churn_s = (life_s)
#define WARM_UP(blocks) .warm_blocks = (blocks)

#define RECORDED_S 30.

#define LIMIT_BYTES_PER_S (500 * 1024 / 60.) /* the default of heaptap check */
#define LIMIT_TAIL 0.01

struct outcome {
	struct growth one, named;
	struct growth_limit limit;
	double truth; /* bytes per second */
	bool is_shown;
};

static void add_block(const struct growth_plan *plan, const int64_t *moment_ns, double begin_s,
		      double life_s, uint64_t size, double rate_bytes, struct growth_sums *sums,
		      struct growth_sums *truth)
{
	struct history_life life = { .samples = 1, .bytes = (double)size };
	double p;
	int64_t begin_ns = (int64_t)(begin_s * 1e9), end_ns = (int64_t)((begin_s + life_s) * 1e9);

	if (begin_s + life_s > 2 * RECORDED_S)
		end_ns = INT64_MAX;
	while (life.first < plan->moment_cnt && moment_ns[life.first] < begin_ns)
		life.first++;
	life.last = life.first;
	while (life.last < plan->moment_cnt && moment_ns[life.last] < end_ns)
		life.last++;
	if (life.first == life.last--)
		return;
	growth_add(plan, truth, &life);
	p = estimate_probability(size, (uint64_t)rate_bytes);
	if (uniform(&seed) >= p)
		return;
	life.bytes = (double)size / p;
	life.variance = (double)size * (double)size * (1 - p) / (p * p);
	growth_add(plan, sums, &life);
}

static double poisson_gap(double per_s)
{
	return -log(1 - uniform(&seed)) / per_s;
}

static double mean_time(const struct growth_plan *p, size_t window)
{
	const double *t = p->time_s + window;

	return (t[0] + t[1] + t[2] + t[3]) / 4;
}

static struct outcome simulate(const struct load *l, size_t row_cnt)
{
	int64_t moment_ns[MOMENT_CNT];
	struct growth_sums sums = { 0 }, truth = { 0 };
	struct growth_plan plan;
	struct outcome o = { 0 };
	double seconds;

	for (int i = 0; i < MOMENT_CNT; i++)
		moment_ns[i] =
			(int64_t)(RECORDED_S * 1e9 *
				  (i + (i < MOMENT_CNT - 1 ? uniform(&seed) : 1)) / MOMENT_CNT);
	growth_plan_init(&plan, moment_ns, MOMENT_CNT, 0, (int64_t)(RECORDED_S * 1e9),
			 l->rate_bytes);
	assert_true(plan.is_known);
	for (double t = l->leaks_per_s ? poisson_gap(l->leaks_per_s) : 1e9; t < RECORDED_S;
	     t += poisson_gap(l->leaks_per_s))
		add_block(&plan, moment_ns, t, 1e9, 1024, l->rate_bytes, &sums, &truth);
	/* what was allocated before is not seen */
	for (double t = l->churns_per_s ? poisson_gap(l->churns_per_s) : 1e9; t < RECORDED_S;
	     t += poisson_gap(l->churns_per_s))
		if (uniform(&seed) * (1 + l->swing) < 1 + l->swing * sin(t * 2 * M_PI / 7))
			add_block(&plan, moment_ns, t, -log(1 - uniform(&seed)) * l->churn_s,
				  l->churn_bytes, l->rate_bytes, &sums, &truth);
	for (double i = 0; i < l->warm_blocks; i++)
		add_block(&plan, moment_ns, uniform(&seed) * RECORDED_S / 10, 1e9, 1024,
			  l->rate_bytes, &sums, &truth);
	growth_judge(&plan, &sums, 1, &o.one);
	/* "cannot say yet" is never said beside an interval above 0 */
	assert_int_equal(o.one.has_grown,
			 o.one.verdict == GROWTH_UNKNOWN && o.one.has_rate && o.one.low > 0);
	growth_judge(&plan, &sums, row_cnt, &o.named);
	growth_compare(&plan, &sums, growth_is_replaced(&sums) ? &(struct growth_sums){ 0 } : &sums,
		       LIMIT_BYTES_PER_S, LIMIT_TAIL, &o.limit);
	seconds = mean_time(&plan, 8) - mean_time(&plan, 2);
	o.truth = (truth.up.bytes - truth.down.bytes) / seconds;
	seconds = mean_time(&plan, 8) - mean_time(&plan, 4);
	if (o.one.is_late)
		o.truth = (truth.late_up.bytes - truth.late_down.bytes) / seconds;
	for (int w = 0; w < GROWTH_WINDOW_CNT; w++)
		o.is_shown |= sums.mean_bytes[w] > 0;
	return o;
}

struct tally {
	int shown, covered, below, above, grows, steady, named;
};

static struct tally run(const struct load *l, int runs, size_t row_cnt)
{
	struct tally t = { 0 };

	for (int i = 0; i < runs; i++) {
		struct outcome o = simulate(l, row_cnt);

		if (!o.is_shown)
			continue;
		t.shown++;
		assert_true(o.one.has_rate);
		assert_true(o.one.low <= o.one.bytes_per_s && o.one.bytes_per_s <= o.one.high);
		t.below += o.truth < o.one.low;
		t.above += o.truth > o.one.high;
		t.grows += o.one.verdict == GROWTH_GROWS;
		t.steady += o.one.verdict == GROWTH_STEADY;
		t.named += o.named.verdict == GROWTH_GROWS;
	}
	t.covered = t.shown - t.below - t.above;
	print_message("%-28s shown %4d covered %5.1f %% (%d below, %d above), grows %5.1f %%, "
		      "steady %5.1f %%, named %5.1f %%\n",
		      l->name, t.shown, 100. * t.covered / t.shown, t.below, t.above,
		      100. * t.grows / t.shown, 100. * t.steady / t.shown,
		      100. * t.named / t.shown);
	return t;
}

/* Rows that sampling explains: leaks, churn, both, few samples and many. */
TEST(test_coverage)
{
	static const struct load loads[] = {
		{ "leak 10/s at 64 KiB", 65536, LEAK(10) },
		{ "leak 10/s at 16 KiB", 16384, LEAK(10) },
		{ "leak 10/s at 4 KiB", 4096, LEAK(10) },
		{ "churn 2 MB/s, 50 ms", 65536, CHURN(500, 4096, 0.05) },
		{ "churn 2 MB/s, 1 s", 65536, CHURN(500, 4096, 1) },
		{ "churn 200 KB/s, 3 s", 16384, CHURN(200, 1024, 3) },
		{ "leak and churn, 16 KiB", 16384, LEAK(10), CHURN(200, 1024, 0.3) },
		{ "large and small blocks", 65536, LEAK(40), CHURN(50, 20000, 0.2) },
	};
	struct tally all = { 0 };

	each_case(c, loads) {
		struct tally t = run(c, runs_of(500), 30);

		all.shown += t.shown;
		all.covered += t.covered;
		assert_true(t.covered > 0.925 * t.shown);
	}
	print_message("all: covered %.1f %%\n", 100. * all.covered / all.shown);
	assert_true(all.covered >= 0.93 * all.shown && all.covered <= 0.97 * all.shown);
}

/* What does not grow is not said to: churn that was there before, caches, warm-up, ups and downs. */
TEST(test_steady)
{
	static const struct load loads[] = {
		{ "churn, 3 s", 16384, CHURN(200, 1024, 3) },
		{ "cache of 10 s", 65536, CHURN(1000, 4096, 10) },
		{ "cache of 20 s", 65536, CHURN(1000, 4096, 20) },
		{ "small cache of 20 s", 65536, CHURN(50, 4096, 20) },
		{ "warm-up", 16384, WARM_UP(5000) },
		{ "warm-up, few", 65536, WARM_UP(500) },
		{ "warm-up and churn", 65536, CHURN(300, 4096, 0.5), WARM_UP(5000) },
		{ "swings", 16384, CHURN(1000, 1024, 0.5), .swing = 0.9 },
		{ "swings, all recorded", 1, CHURN(500, 1024, 0.5), .swing = 0.9 },
	};
	int named = 0, shown = 0;

	each_case(c, loads) {
		struct tally t = run(c, runs_of(300), 30);

		assert_true(t.grows <= 0.05 * t.shown);
		assert_true(t.named <= 0.02 * t.shown);
		named += t.named;
		shown += t.shown;
	}
	assert_true(named <= 0.003 * shown);
}

/* What leaks is found, when it has the samples. */
TEST(test_grows)
{
	static const struct load loads[] = {
		{ "leak of 40 samples", 8192, LEAK(10.7) },
		{ "leak, exactly", 1, LEAK(10) },
		{ "leak after a warm-up", 2048, LEAK(10), WARM_UP(300) },
		{ "leak under a lot of churn", 2048, LEAK(30), CHURN(500, 4096, 0.1) },
	};

	each_case(c, loads) {
		struct tally t = run(c, runs_of(300), 30);

		assert_true(t.grows >= 0.9 * t.shown);
		assert_true(t.named >= 0.85 * t.shown);
	}
}

struct sides {
	int within, beyond, wrong;
};

/* Wrong: against what was leaked in this run, which is a matter of chance, too. */
static struct sides run_limit(const struct load *l, int runs)
{
	struct sides sides = { 0 };

	for (int i = 0; i < runs; i++) {
		struct outcome o = simulate(l, 1);
		bool is_within = o.limit.side == GROWTH_WITHIN;
		bool is_beyond = o.limit.side == GROWTH_BEYOND;

		assert_true(!is_within || o.limit.high <= LIMIT_BYTES_PER_S);
		assert_true(!is_beyond || o.limit.low > LIMIT_BYTES_PER_S);
		sides.within += is_within;
		sides.beyond += is_beyond;
		sides.wrong += o.truth > LIMIT_BYTES_PER_S ? is_within : is_beyond;
	}
	print_message("%-28s %5.1f %% within, %5.1f %% beyond, %5.1f %% wrong\n", l->name,
		      100. * sides.within / runs, 100. * sides.beyond / runs,
		      100. * sides.wrong / runs);
	return sides;
}

/* A limit: what leaks twice as much is beyond it, what holds as much as before is within, and near the limit one of
 * fifty is said to be on the wrong side. */
TEST(test_limit)
{
	const double on_limit = LIMIT_BYTES_PER_S / 1024;
	static const int least[] = { 195, 195, 150 };
	const struct load beyond[] = {
		{ "leak 20 KB/s", 4096, LEAK(19.53) },
		{ "leak 20 KB/s after a warm-up", 4096, LEAK(19.53), WARM_UP(2000) },
		/* whose ups and downs are its own: some are only unsure */
		{ "leak 20 KB/s under churn", 4096, LEAK(19.53), CHURN(1000, 2048, 0.2) },
	};
	const struct load within[] = {
		{ "churn 2 MB/s, 0.2 s", 4096, CHURN(1000, 2048, 0.2) },
		{ "warm-up of 5 MB", 4096, WARM_UP(5000) },
	};
	const struct load neither[] = {
		{ "on the limit", 4096, LEAK(on_limit) },
		{ "cache of 10 s", 65536, CHURN(1000, 4096, 10) },
		{ "cache of 20 s", 4096, CHURN(200, 4096, 20) },
	};

	for (size_t i = 0; i < sizeof(beyond) / sizeof(*beyond); i++)
		assert_true(run_limit(&beyond[i], 200).beyond >= least[i]);
	each_case(c, within)
		assert_true(run_limit(c, 150).within >= 100);
	each_case(c, neither)
		assert_true(run_limit(c, 200).wrong <= 6);
}

RUN_TESTS()
