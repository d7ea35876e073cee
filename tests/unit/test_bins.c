/* SPDX-License-Identifier: MIT */
/*
 * test_bins.c - bins and their names; the interval of a share against simulated samples; and reports by lifetime, by
 * size and by what is temporary, of a profile that was written and read again.
 */
#include "made_profile.h"
#include "profile/bins.h"
#include "profile/estimate.h"
#include "profile/moment.h"
#include "report/report_rows.h"

#define MS 1000000ULL

TEST(test_bounds)
{
	for (uint32_t bin = 0; bin < HT_BIN_CNT; bin++) {
		bool is_life = bin >= HT_BIN_LIFE;
		uint32_t (*bin_of)(uint64_t) = is_life ? bin_of_life : bin_of_size;

		assert_true(bin_from(bin) < bin_to(bin));
		assert_int_equal(bin_of(bin_from(bin)), bin);
		if (bin_to(bin) == UINT64_MAX)
			continue;
		assert_int_equal(bin_of(bin_to(bin) - 1), bin);
		assert_int_equal(bin_of(bin_to(bin)), bin + 1);
		assert_int_equal(bin_from(bin + 1), bin_to(bin));
	}
	assert_int_equal(bin_to(HT_BIN_LIFE - 1), UINT64_MAX);
	assert_int_equal(bin_of_size(UINT64_MAX), HT_BIN_LIFE - 1);
	assert_int_equal(bin_of_life(1ULL << 59), HT_BIN_CNT - 1);
	/* what is called temporary ends at a bound */
	assert_int_equal(bin_from(bin_of_life(BIN_TEMPORARY_NS)), BIN_TEMPORARY_NS);
}

TEST(test_names)
{
	static const struct {
		uint64_t bytes;
		const char *name;
	} sizes[] = { { 0, "0 B" },
		      { 1, "1 B" },
		      { 3, "2 B to 3 B" },
		      { 64, "64 B to 127 B" },
		      { 1023, "512 B to 1023 B" },
		      { 1024, "1 KiB to 2 KiB" },
		      { 4096, "4 KiB to 8 KiB" },
		      { 1000000, "512 KiB to 1024 KiB" },
		      { 1 << 20, "1 MiB to 2 MiB" },
		      { 1ULL << 40, "1 GiB or more" } };
	static const struct {
		uint64_t ns;
		const char *name;
	} lives[] = { { 0, "under 0.977 us" },
		      { 1000, "0.977 us to 1.95 us" },
		      { 300000, "250 us to 500 us" },
		      { 999999, "500 us to 1 ms" },
		      { MS, "1 ms to 2 ms" },
		      { 50 * MS, "32 ms to 64 ms" },
		      { 1000 * MS, "512 ms to 1.02 s" },
		      { 100000 * MS, "65.5 s to 2.18 min" },
		      { 1ULL << 43, "69.9 min or more" } };
	char buf[BIN_NAME_BUF];

	each_case(c, sizes)
		assert_string_equal(bin_name(bin_of_size(c->bytes), buf), c->name);
	each_case(c, lives)
		assert_string_equal(bin_name(bin_of_life(c->ns), buf), c->name);
}

static struct bin_part part_of(uint32_t bin, uint64_t samples, double objects, double bytes)
{
	return (struct bin_part){ bin, samples, objects, bytes, 10 };
}

TEST(test_share_exact)
{
	const struct bin_part size = part_of(bin_of_size(100), 1000, 1000, 100000);
	struct bin_sums sums = { 0 };
	struct bin_share s;

	assert_false(bin_share(&sums, 0, &s));
	bin_sums_add(&sums, &size);
	assert_true(bin_share(&sums, 250, &s));
	assert_true(s.share == 0.25 && s.low == 0.25 && s.high == 0.25);
	/* none or all of a few samples is no certainty */
	memset(&sums, 0, sizeof(sums));
	bin_sums_add(&sums, &(struct bin_part){ .bin = 7, .samples = 5, .objects = 5000 });
	assert_true(bin_share(&sums, 0, &s));
	assert_true(s.share == 0 && s.low == 0 && s.high > 0.3);
	assert_true(bin_share(&sums, 5000, &s));
	assert_true(s.share == 1 && s.high == 1 && s.low < 0.7);
	/* of somebody else's file */
	bin_sums_add(&sums, &(struct bin_part){ .bin = 8, .samples = 1, .objects = 1e300 });
	assert_false(bin_share(&sums, 1, &s));
}

static double draw(void)
{
	return drand48();
}

/* cnt blocks of one size, of which a part is temporary. */
static void sample_blocks(uint64_t size_bytes, unsigned cnt, double part, double rate_bytes,
			  struct bin_sums *sums)
{
	double p = estimate_probability(size_bytes, (uint64_t)rate_bytes);
	uint64_t samples = 0, temporary = 0;

	for (unsigned i = 0; i < cnt; i++) {
		bool is_temporary = i < part * cnt;

		if (draw() >= p)
			continue;
		samples++;
		temporary += is_temporary;
	}
	if (!samples)
		return;
	bin_sums_add(sums, &(struct bin_part){ .bin = bin_of_size(size_bytes),
					       .samples = samples,
					       .objects = (double)samples / p });
	bin_sums_add(sums, &(struct bin_part){ .bin = bin_of_life(1000),
					       .samples = temporary,
					       .objects = (double)temporary / p });
}

/* The interval has the truth as often as it says, or more often; the share is not off. */
TEST(test_share_covers)
{
	static const struct {
		unsigned small_cnt, large_cnt;
		double small_part, large_part, rate_bytes;
	} cases[] = {
		{ 20000, 0, 0.5, 0, 16384 }, /* one size */
		{ 20000, 0, 0.99, 0, 16384 },
		{ 2000, 0, 0.3, 0, 128 }, /* half of all is kept */
		{ 20000, 2000, 0.7, 0.7, 16384 }, /* two sizes, alike */
		{ 20000, 4000, 0.9, 0.2, 16384 }, /* and not */
		{ 20000, 4000, 0.2, 0.9, 16384 },
	};

	srand48(4711);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		double all = cases[i].small_cnt + cases[i].large_cnt, sum = 0, squares = 0;
		double truth = (cases[i].small_part * cases[i].small_cnt +
				cases[i].large_part * cases[i].large_cnt) /
			       all;
		unsigned runs = 400, covered = 0;

		for (unsigned run = 0; run < runs; run++) {
			struct bin_sums sums = { 0 };
			struct bin_share s;

			sample_blocks(100, cases[i].small_cnt, cases[i].small_part,
				      cases[i].rate_bytes, &sums);
			sample_blocks(5000, cases[i].large_cnt, cases[i].large_part,
				      cases[i].rate_bytes, &sums);
			assert_true(bin_share(&sums, bin_temporary_objects(&sums), &s));
			covered += s.low <= truth && truth <= s.high;
			sum += s.share;
			squares += s.share * s.share;
		}
		print_message("# case %zu: %u of %u, mean %.4f of %.4f\n", i, covered, runs,
			      sum / runs, truth);
		assert_true(covered >= 365); /* 380 are wanted, 4.4 is their standard error */
		/* a ratio is off by a part of 1/n, with some 100 samples */
		assert_true(fabs(sum / runs - truth) <
			    4 * sqrt((squares / runs - pow(sum / runs, 2)) / runs) + 0.01);
	}
}

struct made_part {
	uint64_t n; /* bytes or ns */
	uint64_t samples;
	double objects, bytes;
};

static void add_sample(struct profile *p, const char *function, const struct made_part *sizes,
		       size_t size_cnt, const struct made_part *lives, size_t life_cnt,
		       double unseen)
{
	double objects = 0, bytes = 0, freed = unseen, freed_bytes = 100 * unseen;
	uint32_t loc = made_function(p, function);
	int64_t values[PROFILE_VALUE_CNT];
	struct profile_sample *s;

	for (size_t i = 0; i < size_cnt; i++) {
		objects += sizes[i].objects;
		bytes += sizes[i].bytes;
	}
	for (size_t i = 0; i < life_cnt; i++) {
		freed += lives[i].objects;
		freed_bytes += lives[i].bytes;
	}
	values[PROFILE_ALLOC_OBJECTS] = llround(objects);
	values[PROFILE_ALLOC_SPACE] = llround(bytes);
	values[PROFILE_INUSE_OBJECTS] = llround(objects - freed);
	values[PROFILE_INUSE_SPACE] = llround(bytes - freed_bytes);
	assert_int_equal(profile_add_sample(p, &loc, 1, values, NULL, 0, &s), 0);
	s->has_error = true;
	s->inuse_samples = 1;
	s->alloc_samples = size_cnt;
	s->alloc_bytes_variance = 10. * (double)size_cnt;
	s->freed_objects = freed;
	s->freed_bytes = freed_bytes;
	for (size_t i = 0; i < size_cnt; i++) {
		struct bin_part part = part_of(bin_of_size(sizes[i].n), sizes[i].samples,
					       sizes[i].objects, sizes[i].bytes);

		assert_int_equal(profile_add_bin(p, &part), 0);
	}
	for (size_t i = 0; i < life_cnt; i++) {
		struct bin_part part = part_of(bin_of_life(lives[i].n), lives[i].samples,
					       lives[i].objects, lives[i].bytes);

		assert_int_equal(profile_add_bin(p, &part), 0);
	}
}

/* As it comes out of a file. Halves, which no row may lose. */
static struct profile *record(bool has_bins, enum recording_inuse inuse)
{
	static const struct made_part churn_sizes[] = { { 64, 5, 100.5, 6400.25 },
							{ 4096, 1, 2.25, 9216.5 } };
	static const struct made_part churn_lives[] = { { 1000, 4, 90.25, 5700.25 },
							{ 50 * MS, 1, 5, 3000.5 } };
	static const struct made_part cache_sizes[] = { { 100, 3, 50, 5000.5 } };
	static const struct made_part cache_lives[] = { { 2000, 1, 1, 100 } };
	struct profile *p = made_profile(4096);

	p->time_ns = 1000000000000;
	p->recording = RECORDING_NONE;
	p->recording.is_known = true;
	p->recording.inuse = inuse;
	p->recording.duration_ns = 1000000000;
	p->has_bins = has_bins;
	add_sample(p, "churn", churn_sizes, has_bins ? 2 : 0, churn_lives, has_bins ? 2 : 0,
		   has_bins ? 3 : 0);
	add_sample(p, "cache", cache_sizes, has_bins, cache_lives, has_bins, 0);
	return reread(p);
}

struct expected {
	const char *name;
	int64_t objects;
	uint64_t samples;
};

static void check_rows(enum report_by by, const struct expected *expected, size_t cnt,
		       enum recording_inuse inuse)
{
	struct report_options opts = { .by = by, .format = REPORT_JSON };
	struct profile *p = record(true, inuse);
	int64_t bytes = 0, objects = 0;
	struct report *r = open_report(p, &opts);

	assert_int_equal(r->rows.cnt, cnt);
	for (size_t i = 0; i < cnt; i++) {
		const struct report_row *row = &r->rows.data[i];

		assert_string_equal(strset_get(r->names, row->name), expected[i].name);
		assert_true(llabs(row->objects - expected[i].objects) <= 1);
		assert_int_equal(row->estimate.samples, expected[i].samples);
		bytes += row->value;
		objects += row->objects;
	}
	assert_true(r->is_alloc);
	assert_int_equal(bytes, r->total.value);
	assert_int_equal(objects, r->total.objects);
	assert_int_equal(r->total.objects, 103 + 50);
}

TEST(test_by_size)
{
	static const struct expected rows[] = { { "64 B to 127 B", 150, 8 },
						{ "4 KiB to 8 KiB", 2, 1 } };

	check_rows(REPORT_BY_SIZE, rows, 2, RECORDING_INUSE_ALL);
	/* frees need not be known for that */
	check_rows(REPORT_BY_SIZE, rows, 2, RECORDING_INUSE_UNKNOWN);
}

TEST(test_by_lifetime)
{
	static const struct expected all[] = { { "0.977 us to 1.95 us", 90, 4 },
					       { "1.95 us to 3.91 us", 1, 1 },
					       { "32 ms to 64 ms", 5, 1 },
					       { "(not freed)", 54, 0 },
					       { "(not known)", 3, 0 } };
	/* some frees went unseen: what is left may be freed */
	static const struct expected since[] = { { "0.977 us to 1.95 us", 90, 4 },
						 { "1.95 us to 3.91 us", 1, 1 },
						 { "32 ms to 64 ms", 5, 1 },
						 { "(not known)", 57, 0 } };

	check_rows(REPORT_BY_LIFETIME, all, 5, RECORDING_INUSE_ALL);
	check_rows(REPORT_BY_LIFETIME, since, 4, RECORDING_INUSE_SINCE);
}

TEST(test_json)
{
	struct report_options opts = { .by = REPORT_BY_FUNCTION,
				       .format = REPORT_JSON,
				       .sort = REPORT_SORT_TEMPORARY };
	struct profile *p = record(true, RECORDING_INUSE_ALL);
	char *text = report_text(p, &opts);

	assert_says(text, "\"freed_bytes\":9001,\"freed_objects\":98,\"temporary_objects\":90,"
			  "\"temporary_share\":0.87");
	assert_says(text, "\"lifetimes\":[{\"from_ns\":977,\"to_ns\":1954,\"objects\":90},"
			  "{\"from_ns\":32000000,\"to_ns\":64000000,\"objects\":5}]");
	assert_says(text, "\"sizes\":[{\"from_bytes\":64,\"to_bytes\":128,\"objects\":50}]");
	assert_true(strstr(text, "\"name\":\"churn\"") < strstr(text, "\"name\":\"cache\""));

	p = record(true, RECORDING_INUSE_UNKNOWN);
	text = report_text(p, &opts);
	assert_says(text, "\"temporary_share\":null,\"temporary_share_low\":null,"
			  "\"temporary_share_high\":null,\"lifetimes\":null,\"sizes\":[{");
	assert_says(text, "\"freed_bytes\":null,\"freed_objects\":null,\"temporary_objects\":null");

	/* how many there were is known, but not of how many */
	p = record(true, RECORDING_INUSE_SINCE);
	text = report_text(p, &opts);
	assert_says(text, "\"temporary_objects\":90,\"temporary_share\":null");

	p = record(false, RECORDING_INUSE_ALL);
	text = report_text(p, &opts);
	assert_says(text, "\"lifetimes\":null,\"sizes\":null");
}

TEST(test_text)
{
	struct report_options opts = {
		.format = REPORT_TEXT, .sort = REPORT_SORT_TEMPORARY, .row_cap = 1, .columns = 100
	};
	struct profile *p = record(true, RECORDING_INUSE_ALL);
	char *text = report_text(p, &opts);

	assert_says(text, "TEMPORARY OF ALL 95 %            MOST HAVE      ALLOCATED WHERE\n");
	assert_says(text, "       90  87.8% 46.1% to 98.4%  64 B");
	assert_says(text, "  64 B to 127 B   15.3 KiB churn\n");
	assert_says(text, " and 1 more: --top 0\n");
	opts = (struct report_options){ .format = REPORT_TEXT, .shows_stacks = true };
	text = report_text(p, &opts);
	assert_says(
		text,
		"        103 allocated blocks: 87.8% lived under 1 ms, most have 64 B to 127 B\n");
	p = record(false, RECORDING_INUSE_ALL);
	text = report_text(p, &opts);
	assert_omits(text, "allocated block");
	/* a table without rows has no head */
	opts = (struct report_options){ .format = REPORT_TEXT, .sort = REPORT_SORT_TEMPORARY };
	text = report_text(p, &opts);
	assert_says(text, "No sampled block was freed within 1 ms.\n");
	assert_omits(text, "WHERE");
}

static void unknown(bool has_bins, enum recording_inuse inuse, struct report_options opts,
		    const char *says)
{
	struct profile *p = record(has_bins, inuse);
	struct err why;

	if (says) {
		assert_int_equal(report_check(p, &opts, &why), -ENODATA);
		assert_says(why.text, says);
	} else {
		assert_int_equal(report_check(p, &opts, &why), 0);
	}
}

TEST(test_unknown)
{
	const struct report_options by_life = { .by = REPORT_BY_LIFETIME };
	const struct report_options by_size = { .by = REPORT_BY_SIZE };
	const struct report_options sorted = { .sort = REPORT_SORT_TEMPORARY };
	struct profile *p = record(true, RECORDING_INUSE_ALL);

	unknown(true, RECORDING_INUSE_ALL, by_life, NULL);
	unknown(false, RECORDING_INUSE_ALL, by_life,
		"the lifetimes of its blocks are unknown: only");
	unknown(false, RECORDING_INUSE_ALL, sorted,
		"the lifetimes of its blocks are unknown: only");
	unknown(false, RECORDING_INUSE_ALL, by_size, "the sizes of its blocks are unknown: only");
	unknown(true, RECORDING_INUSE_UNKNOWN, by_size, NULL);
	unknown(true, RECORDING_INUSE_UNKNOWN, by_life, "because frees were not tracked");
	unknown(true, RECORDING_INUSE_UNKNOWN, sorted, "because frees were not tracked");
	/* of a part of what is in use nothing of it is said */
	assert_int_equal(profile_keep_older(p, 1), -ENODATA);
	assert_true(p->has_bins);
}

RUN_TESTS()
