/* SPDX-License-Identifier: MIT */
/*
 * test_moment.c - a profile at its peak and at other moments: its values and what belongs to them, through a file; which
 * moment a report shows, and what it says of it.
 */
#include "made_profile.h"
#include "profile/moment.h"
#include "profile/witness.h"
#include "report/report_rows.h"

#define MS_NS 1000000LL
#define MOMENTS 3

struct site {
	const char *function;
	int64_t end_bytes, end_blocks, peak_bytes;
	double peak_blocks;
	struct history_life life; /* .samples 0: none */
};

/* Most of the peak is gone at the end; at 200 ms `parse` holds a part of it. */
static const struct site sites[] = {
	{ "parse", 0, 0, 50000000, 100, { 0, 0, 10, 10000000, 0 } },
	{ "table", 60000, 6, 80000, 8, { 0, 2, 6, 60000, 0 } },
	{ "late", 7000, 7, 0, 0, { 2, 2, 7, 7000, 0 } },
};
#define PEAK_BYTES 50080000
#define END_BYTES 67000
#define EARLY_BYTES 10060000

static void add_site(struct profile *p, const struct site *site, const char *pid)
{
	const struct profile_label labels[] = {
		text_label(p, "pid", pid ? pid : ""),
		text_label(p, "comm", "cc1plus"),
	};
	const int64_t values[PROFILE_VALUE_CAP] = {
		[PROFILE_ALLOC_OBJECTS] = 1000,
		[PROFILE_ALLOC_SPACE] = 60000000,
		[PROFILE_INUSE_OBJECTS] = site->end_blocks,
		[PROFILE_INUSE_SPACE] = site->end_bytes,
		[PROFILE_PEAK_SPACE] = site->peak_bytes,
		[PROFILE_PINNED_SPACE] = 2 * site->end_bytes,
	};
	const struct age_part age = { .samples = 1, .bytes = (double)site->end_bytes };
	uint32_t loc = made_function(p, site->function);
	struct profile_sample *s;

	assert_int_equal(profile_add_sample(p, &loc, 1, values, labels, pid ? 2 : 0, &s), 0);
	s->has_error = true;
	s->inuse_samples = (uint64_t)site->end_blocks;
	s->alloc_samples = 1000;
	s->peak_samples = (uint64_t)site->peak_blocks;
	s->peak_objects = site->peak_blocks;
	if (site->life.samples)
		assert_int_equal(profile_add_lives(p, &site->life, 1), 0);
	if (site->end_bytes)
		assert_int_equal(profile_add_age(p, &age), 0);
}

static struct profile *make(bool has_peak)
{
	static const int64_t moments_ns[MOMENTS] = { 200 * MS_NS, 1000 * MS_NS, 2400 * MS_NS };
	struct profile *p = made_profile(1);

	if (has_peak)
		assert_int_equal(
			profile_add_type(p, "peak_space") | profile_add_type(p, "pinned_space"), 0);
	p->time_ns = 1700000000000000000;
	p->recording.is_known = true;
	p->recording.pid = 14;
	p->recording.process_cnt = 1;
	p->recording.comm_str = profile_str(p, "ffmpeg");
	p->recording.begin_ns = p->time_ns - 2400 * MS_NS;
	p->recording.end_ns = p->time_ns;
	p->recording.duration_ns = p->recording.watched_ns = 2400 * MS_NS;
	p->recording.peak_ns = has_peak ? 410 * MS_NS : 0;
	p->recording.is_from_start = true;
	for (int i = 0; i < MOMENTS; i++)
		assert_int_equal(vec_push(&p->moments_ns, moments_ns[i]), 0);
	each_case(c, sites)
		add_site(p, c, NULL);
	return p;
}

static struct profile *record(bool has_peak, bool has_ended)
{
	struct profile *p = make(has_peak);

	p->recording.has_ended = has_ended;
	if (has_ended)
		snprintf(p->recording.program, sizeof(p->recording.program), "ffmpeg -i x");
	return reread(p);
}

static int64_t sum_of(const struct profile *p, const char *type)
{
	int idx = profile_find_type(p, type);
	const struct profile_sample *s;
	int64_t sum = 0;

	assert_true(idx >= 0);
	vec_each(&p->samples, s)
		sum += p->values.data[s->value_first + (size_t)idx];
	return sum;
}

TEST(test_peak)
{
	struct profile *p = record(true, false);
	struct estimate peak;
	struct witness w;

	assert_int_equal(p->types.cnt, PROFILE_VALUE_CAP);
	assert_int_equal(p->recording.peak_ns, 410 * MS_NS);
	assert_true(profile_peak(p, &peak));
	assert_true(peak.bytes == PEAK_BYTES && peak.objects == 108 && peak.samples == 108);
	assert_int_equal(profile_move_to_peak(p), 0);
	assert_int_equal(sum_of(p, "inuse_space"), PEAK_BYTES);
	assert_int_equal(sum_of(p, "inuse_objects"), 108);
	assert_int_equal(sum_of(p, "alloc_space"), 180000000);
	assert_int_equal(p->samples.data[0].inuse_samples, 100);
	assert_int_equal(p->samples.data[1].age_cnt, 0);
	assert_true(p->moment.end.bytes == END_BYTES && p->moment.end.objects == 13);
	/* what is resident is of the end */
	witness_find(p, &w);
	assert_true(w.held_bytes == END_BYTES);
	assert_int_equal(profile_move_to_peak(p), -ENODATA); /* once */
}

TEST(test_time)
{
	static const struct {
		int64_t ns, at_ns, bytes;
	} cases[] = { { 0, 200 * MS_NS, EARLY_BYTES },
		      { 599 * MS_NS, 200 * MS_NS, EARLY_BYTES },
		      { 601 * MS_NS, 1000 * MS_NS, 60000 },
		      { INT64_MAX, 2400 * MS_NS, END_BYTES } };

	each_case(c, cases) {
		struct profile *p = record(false, false);

		assert_int_equal(profile_move_to_time(p, c->ns), 0);
		assert_int_equal(p->moment.ns, c->at_ns);
		assert_int_equal(sum_of(p, "inuse_space"), c->bytes);
		assert_int_equal(sum_of(p, "inuse_objects"), 0); /* not kept */
	}
}

TEST(test_unknown)
{
	struct profile *p = record(false, false);
	struct estimate peak;

	assert_int_equal(p->types.cnt, PROFILE_VALUE_CNT);
	assert_false(profile_peak(p, &peak));
	assert_int_equal(profile_move_to_peak(p), -ENODATA);
	assert_int_equal(sum_of(p, "inuse_space"), END_BYTES);
	p->moments_ns.cnt = 0;
	assert_int_equal(profile_move_to_time(p, 0), -ENODATA);
}

/* What turns out to be unknown is not 0 in the file: it is not there. */
TEST(test_drop)
{
	struct profile *p = make(true);

	profile_drop_peak(p);
	p = reread(p);
	assert_int_equal(p->types.cnt, PROFILE_VALUE_CNT + 1);
	assert_int_equal(sum_of(p, "pinned_space"), 2 * END_BYTES);
	assert_int_equal(p->recording.peak_ns, 0);
	assert_int_equal(sum_of(p, "inuse_space"), END_BYTES);
	assert_int_equal(sum_of(p, "inuse_objects"), 13);
	assert_int_equal(sum_of(p, "alloc_objects"), 3000);
	profile_drop_peak(p); /* of a profile that has none */
	profile_drop_type(p, "pinned_space");
	assert_int_equal(p->types.cnt, PROFILE_VALUE_CNT);
}

/* Which moment a report chooses by itself. */
TEST(test_choice)
{
	static const struct {
		struct report_options opts;
		bool has_peak, has_ended;
		enum profile_at at;
	} cases[] = {
		{ { .format = REPORT_TEXT }, true, true, PROFILE_AT_PEAK },
		{ { .format = REPORT_HTML }, true, true, PROFILE_AT_PEAK },
		{ { .format = REPORT_TEXT, .by = REPORT_BY_FUNCTION }, true, true, PROFILE_AT_PEAK },
		/* of what runs, or ran before */
		{ { .format = REPORT_TEXT }, true, false, PROFILE_AT_END },
		{ { .format = REPORT_TEXT }, false, true, PROFILE_AT_END },
		/* for programs */
		{ { .format = REPORT_JSON }, true, true, PROFILE_AT_END },
		{ { .format = REPORT_COLLAPSED }, true, true, PROFILE_AT_END },
		/* of the end alone */
		{ { .format = REPORT_TEXT, .by = REPORT_BY_INSTANCE }, true, true, PROFILE_AT_END },
		{ { .format = REPORT_TEXT, .by = REPORT_BY_AGE }, true, true, PROFILE_AT_END },
		{ { .format = REPORT_TEXT, .sort = REPORT_SORT_GROWTH },
		  true,
		  true,
		  PROFILE_AT_END },
		{ { .format = REPORT_TEXT, .value = REPORT_VALUE_ALLOC },
		  true,
		  true,
		  PROFILE_AT_END },
		/* as it was told */
		{ { .format = REPORT_TEXT, .at = REPORT_AT_END }, true, true, PROFILE_AT_END },
		{ { .format = REPORT_JSON, .at = REPORT_AT_PEAK }, true, false, PROFILE_AT_PEAK },
		{ { .format = REPORT_JSON, .at = REPORT_AT_TIME }, false, false, PROFILE_AT_TIME },
	};

	each_case(c, cases) {
		struct profile *p = record(c->has_peak, c->has_ended);

		assert_int_equal(report_move(p, &c->opts, NULL), 0);
		if (p->moment.at != c->at)
			fail_msg("case %zu: moment %d", (size_t)(c - cases), p->moment.at);
	}
}

TEST(test_refused)
{
	const struct report_options peak = { .at = REPORT_AT_PEAK };
	struct profile *p = record(false, true);
	struct err why = { 0 };

	assert_int_equal(report_move(p, &peak, &why), -ENODATA);
	assert_says(why.text, "its peak is unknown");
	p->recording.inuse = RECORDING_INUSE_UNKNOWN;
	assert_int_equal(report_move(p, &peak, &why), -ENODATA);
	assert_says(why.text, "heap in use");
}

static void expect(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in:\n%s", part, text);
}

TEST(test_words)
{
	struct report_options opts = { .row_cap = 10, .columns = 100, .by = REPORT_BY_FUNCTION };
	struct profile *p = record(true, true);
	char *text;

	assert_int_equal(report_move(p, &opts, NULL), 0);
	text = report_text(p, &opts);
	expect(text,
	       "\nPeak: 47.8 MiB (exact) in 108 blocks at 410 ms; the rows are of this moment");
	expect(text, "(--at end: at the end)\n");
	expect(text, "\nIn use: 65.4 KiB (exact) in 13 blocks at the end, ");
	expect(text, "; allocated 172 MiB in 3.00k blocks\n");
	expect(text, "parse");

	/* of the end, with the peak said */
	p = record(true, false);
	p->recording.unrecorded_cnt = 3;
	text = report_text(p, &opts);
	expect(text, "\nPeak: 47.8 MiB (exact) in 108 blocks at 410 ms, 100 % of it by parse\n");
	expect(text, "\nIn use: 65.4 KiB (exact) in 13 blocks, ");
	expect(text, "\n3 child processes were not recorded: --follow records children\n");

	p = record(true, false);
	opts.at = REPORT_AT_TIME;
	opts.at_ns = 200000000;
	assert_int_equal(report_move(p, &opts, NULL), 0);
	text = report_text(p, &opts);
	expect(text, "\nAt 200 ms: 9.59 MiB (exact); the rows are of this moment");
	assert_omits(text, "BLOCKS"); /* not known */
	opts.at_ns = 1000000;
	text = report_text(p, &opts);
	expect(text, "\nAt 200 ms (nearest to 1 ms): 9.59 MiB (exact)");
}

/* What is not seen may be any amount, at the peak, too. */
TEST(test_least)
{
	struct report_options opts = { .row_cap = 10, .columns = 100 };
	struct profile *p = record(true, true);
	char *text;

	p->recording.inuse = RECORDING_INUSE_SINCE;
	p->recording.inuse_since_ns = p->recording.begin_ns + 300 * MS_NS;
	assert_int_equal(report_move(p, &opts, NULL), 0);
	text = report_text(p, &opts);
	expect(text, "\nPeak: at least 47.8 MiB in 108 blocks at 410 ms; ");

	p = record(true, false);
	p->recording.rss_begin_bytes = 1 << 20;
	p->recording.rss_end_bytes = 900 << 20;
	assert_int_equal(profile_comment(p, "not seen: an allocator without names"), 0);
	text = report_text(p, &opts);
	expect(text, "\nPeak: at least 47.8 MiB in 108 blocks at 410 ms, ");
	expect(text, "\nIn use: at least 65.4 KiB in 13 blocks, ");

	p = record(true, false); /* a build: compilers that ended before they were tapped */
	assert_int_equal(profile_comment(p, "ledger: tap_never 3 (processes that ended before they "
					    "were tapped, or have no allocator)"),
			 0);
	text = report_text(p, &opts);
	expect(text, "\nPeak: at least 47.8 MiB in 108 blocks at 410 ms, ");
	expect(text, "\nIn use: at least 65.4 KiB in 13 blocks, ");
	p->recording.is_from_start = false; /* it runs on: those that ended have nothing in use */
	text = report_text(p, &opts);
	expect(text, "\nPeak: at least 47.8 MiB in 108 blocks at 410 ms, ");
	expect(text, "\nHeld (allocated while recording, not freed): 65.4 KiB in 13 blocks, ");

	p = record(false, false);
	p->recording.inuse = RECORDING_INUSE_SINCE;
	p->recording.inuse_since_ns = p->recording.begin_ns + 300 * MS_NS;
	opts.at = REPORT_AT_TIME;
	opts.at_ns = 200 * MS_NS;
	assert_int_equal(report_move(p, &opts, NULL), 0);
	text = report_text(p, &opts);
	expect(text, "\nAt 200 ms: at least 9.59 MiB; the rows are of this moment");

	p = record(false, false);
	p->is_history_partial = true; /* there were too many stacks */
	assert_int_equal(report_move(p, &opts, NULL), 0);
	text = report_text(p, &opts);
	expect(text, "\nAt 200 ms: at least 9.59 MiB; ");
}

TEST(test_json)
{
	struct report_options opts = { .format = REPORT_JSON, .at = REPORT_AT_PEAK };
	struct profile *p = record(true, true);
	char *text;

	assert_int_equal(report_move(p, &opts, NULL), 0);
	text = report_text(p, &opts);
	expect(text, "\"at\":\"peak\",\"at_ns\":410000000,\"peak\":{\"bytes\":50080000,");
	expect(text, "\"inuse_bytes\":50080000");

	p = record(false, true);
	opts.at = REPORT_AT_DEFAULT;
	text = report_text(p, &opts);
	expect(text, "\"at\":\"end\",\"at_ns\":null,\"peak\":null");
	expect(text, "\"inuse_bytes\":67000");
}

/* The picture has the end, the peak and the moments, whichever it opens on. */
TEST(test_picture)
{
	static const struct report_options opts[] = {
		{ .format = REPORT_HTML },
		{ .format = REPORT_HTML, .at = REPORT_AT_TIME, .at_ns = 1000 * MS_NS },
		{ .format = REPORT_HTML, .at = REPORT_AT_END },
	};
	static const char *const opens[] = { "\"opens\":\"peak_space\"", "\"opens\":\"moment\"",
					     "\"opens\":\"\"" };

	for (size_t i = 0; i < sizeof(opts) / sizeof(*opts); i++) {
		struct profile *p = record(true, true);
		char *text;

		assert_int_equal(report_move(p, &opts[i], NULL), 0);
		text = report_text(p, &opts[i]);
		expect(text, opens[i]);
		expect(text, "\"values\":[[0,60000,7000],"); /* at the end */
		expect(text, "[50000000,80000,0]"); /* at the peak */
		assert_int_equal(
			!!strstr(text,
				 "{\"key\":\"pinned_space\",\"title\":\"free memory pinned\","),
			opts[i].at == REPORT_AT_END);
		expect(text, "\"begin_ns\":200000000,\"end_ns\":2400000000,\"points\":["
			     "[200000000,10060000,\"200 ms\",0],"
			     "[410000000,50080000,\"410 ms\",\"peak_space\"],"
			     "[1000000000,60000,\"1.0 s\",1],");
		expect(text, "[2400000000,67000,\"2.4 s\",2]");
		expect(text, "[2400000000,67000,\"2.4 s\",\"inuse_space\"]");
		expect(text, "\"lives\":{\"sample\":[0,1,1],\"first\":[0,0,2],\"last\":[0,2,2],"
			     "\"bytes\":[10000000,60000,7000]");
		expect(text, ">peak 47.8 MiB at 410 ms</text>");
		expect(text,
		       "Heap in use over time: peak 47.8 MiB at 410 ms, 65.4 KiB at the end.");
	}
}

/* Many lives: fewer moments, the last among them, and none that is made up. */
TEST(test_picture_is_bounded)
{
	const struct report_options opts = { .format = REPORT_HTML };
	struct profile *p = make(false);
	char *text;

	p->samples.data[2].life_cnt = 0;
	for (uint32_t i = 0; i < 60000; i++) {
		const struct history_life life = { i % MOMENTS, i % MOMENTS, 1, 1, 0 };

		assert_int_equal(profile_add_lives(p, &life, 1), 0);
	}
	text = report_text(p, &opts);
	expect(text, "\"points\":[[2400000000,80000,\"2.4 s\",0],"); /* 20000 beside the table */
	assert_true(strlen(text) < 1500000);
	p->is_history_partial = true;
	text = report_text(p, &opts);
	assert_omits(text, "Heap in use over time");
}

TEST(test_by_process)
{
	struct report_options opts = { .by = REPORT_BY_PROCESS, .format = REPORT_JSON };
	struct profile *p = record(true, false);
	struct report *r = open_report(p, &opts);

	assert_int_equal(r->rows.cnt, 1);
	assert_string_equal(strset_get(r->names, r->rows.data[0].name), "ffmpeg (PID 14)");
	assert_int_equal(r->rows.data[0].value, END_BYTES);

	/* several, which the samples name */
	p = make(true);
	add_site(p, &sites[1], "15");
	add_site(p, &sites[2], "15");
	p->recording.process_cnt = 2;
	r = open_report(p, &opts);
	assert_int_equal(r->rows.cnt, 2);
	assert_string_equal(strset_get(r->names, r->rows.data[0].name), "(none)");
	assert_string_equal(strset_get(r->names, r->rows.data[1].name), "cc1plus (PID 15)");
	assert_int_equal(r->rows.data[1].value, 67000);
}

RUN_TESTS()
