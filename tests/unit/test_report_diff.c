/* SPDX-License-Identifier: MIT */
/*
 * test_report_diff.c - differences of two profiles: of one truth, recorded twice, at most 5 % of the rows are said to be
 * more than chance; what was planted is found; rows are matched by name across builds; what cannot be compared.
 */
#include "made_profile.h"
#include "random.h"
#include "profile/estimate.h"
#include "report/report_diff.h"
#include "report/report_rows.h"

#define RATE 65536
#define SITES 40
#define RUNS 100

static uint64_t seed = 88172645463325252;

static uint32_t add_frame(struct profile *p, const char *file, const char *function,
			  uint64_t address)
{
	return made_location(p, made_mapping(p, file),
			     (struct made_place){ function, .address = address });
}

/* What is in use: `blocks` of `bytes`, recorded with one sample per `rate` bytes. */
static void add_site(struct profile *p, const char *name, uint64_t bytes, unsigned blocks,
		     uint64_t rate, uint64_t address)
{
	uint32_t locs[2] = { add_frame(p, "/bin/server", name, address),
			     add_frame(p, "/bin/server", "main", address + 1) };
	struct estimate e = { 0 };
	struct profile_sample *s;
	double kept_with = estimate_probability(bytes, rate);
	int64_t values[4];

	for (unsigned i = 0; i < blocks; i++)
		if (uniform(&seed) < kept_with)
			estimate_add(&e, bytes, kept_with);
	if (!e.samples)
		return; /* as in a recording: nothing is known of it */
	values[0] = values[2] = llround(e.objects);
	values[1] = values[3] = llround(e.bytes);
	assert_int_equal(profile_add_sample(p, locs, 2, values, NULL, 0, &s), 0);
	s->has_error = true;
	s->inuse_samples = s->alloc_samples = e.samples;
	s->inuse_bytes_variance = s->alloc_bytes_variance = e.bytes_variance;
	s->inuse_objects_variance = e.objects_variance;
}

/* Sites of all sizes; `planted` more bytes in blocks of 1 KiB by one of them. */
static struct profile *record(uint64_t rate, uint64_t planted, uint64_t address)
{
	struct profile *p = made_profile(rate);
	char name[32];

	for (unsigned i = 0; i < SITES; i++) {
		snprintf(name, sizeof(name), "site_%u", i);
		add_site(p, name, 32u << (i % 12), 20 + 400 * (i % 7), rate, address + 2 * i);
	}
	if (planted)
		add_site(p, "leak", 1024, (unsigned)(planted / 1024), rate, address + 1000);
	return p;
}

/* The difference as text; freed by the caller. 0 or what report_diff() says. */
static int diff(struct profile *before, struct profile *after, const struct report_options *opts,
		char **ret, struct err *why)
{
	size_t bytes;
	FILE *out = open_memstream(ret, &bytes);
	int err;

	*why = (struct err){ 0 };
	assert_non_null(out);
	err = report_diff(before, "a.pb.gz", after, "b.pb.gz", opts, out, why);
	fclose(out);
	unit_keep(*ret, free);
	return err;
}

static unsigned count(const char *text, const char *what)
{
	unsigned cnt = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		cnt++;
	return cnt;
}

TEST(one_truth_recorded_twice_has_no_difference)
{
	struct report_options o = { .by = REPORT_BY_STACK, .format = REPORT_JSON };
	unsigned significant = 0, rows = 0, totals = 0;
	char *text;
	struct err why;

	for (int i = 0; i < RUNS; i++) {
		struct profile *a = record(RATE, 0, 16), *b = record(RATE, 0, 16);
		char *of_rows;

		assert_int_equal(diff(a, b, &o, &text, &why), 0);
		of_rows = strstr(text, "\"rows\":");
		assert_non_null(of_rows);
		rows += count(of_rows, "\"name\"");
		significant += count(of_rows, "\"is_significant\":true");
		totals += count(text, "\"is_significant\":true") >
			  count(of_rows, "\"is_significant\":true");
	}
	print_message("# %u of %u rows, %u of %u totals are said to be more than chance\n",
		      significant, rows, totals, RUNS);
	assert_true(rows > RUNS * SITES / 2);
	assert_true(significant * 20 <= rows);
	/* 95 %: more than 13 of 100 are seen once in a thousand times */
	assert_true(totals <= 13);
}

TEST(what_was_planted_is_found)
{
	struct report_options o = { .by = REPORT_BY_STACK, .format = REPORT_TEXT, .row_cap = 10 };
	unsigned found = 0;
	char *text;
	struct err why;

	for (int i = 0; i < RUNS; i++) {
		struct profile *a = record(RATE, 0, 16), *b = record(RATE, 2 << 20, 16);
		const char *leak;

		assert_int_equal(diff(a, b, &o, &text, &why), 0);
		leak = strstr(text, "leak < main");
		found += leak && strstr(text, "new") && strstr(text, "new") < leak;
	}
	assert_int_equal(found, RUNS);
}

/* Another build has other addresses, another recording another rate. */
TEST(builds_and_rates_are_compared_by_name)
{
	struct report_options o = { .format = REPORT_JSON };
	struct profile *a = record(1, 0, 16), *b = record(1, 2 << 20, 5000);
	char *text;
	struct err why;

	for (int by = 0; by < 3; by++) {
		o.by = by;
		assert_int_equal(diff(a, b, &o, &text, &why), 0);
		if (by != REPORT_BY_MODULE) {
			assert_says(
				text,
				"\"inuse_bytes_before\":null,\"inuse_bytes_after\":2097152,"
				"\"inuse_bytes_delta\":2097152,\"inuse_bytes_delta_low\":2097152,"
				"\"inuse_bytes_delta_high\":2097152,\"is_significant\":true");
			assert_int_equal(count(text, "\"inuse_bytes_delta\":0,"), SITES);
		}
		assert_int_equal(count(text, "\"inuse_bytes_delta\":2097152,"), 2);
	}
}

TEST(what_is_gone_or_new_is_said)
{
	struct report_options o = { .by = REPORT_BY_FUNCTION,
				    .format = REPORT_TEXT,
				    .row_cap = 10 };
	struct profile *a = record(1, 3 << 20, 16), *b = record(1, 0, 16);
	char *text;
	struct err why;

	assert_int_equal(diff(a, b, &o, &text, &why), 0);
	assert_says(text, "-3.00 MiB");
	assert_says(text, "gone  leak");
	assert_says(text, "a.pb.gz -> b.pb.gz");
}

/* A block of 1 KiB by these callers, the innermost first. */
static void add_path(struct profile *p, const char *const *names, size_t cnt)
{
	const int64_t values[] = { 1, 1024, 1, 1024 };
	uint32_t locs[4];
	struct profile_sample *s;

	for (size_t i = 0; i < cnt; i++)
		locs[i] = add_frame(p, "/bin/server", names[i], 16 + i);
	assert_int_equal(profile_add_sample(p, locs, cnt, values, NULL, 0, &s), 0);
	s->has_error = true;
	s->inuse_samples = s->alloc_samples = 1;
}

/* The path does not fit in a line: what differs is the end of it. */
TEST(rows_that_read_alike_show_what_differs)
{
	static const char *const paths[][3] = {
		{ "request_error_path", "request_handle_one_of_many", "serve_upload" },
		{ "request_error_path", "request_handle_one_of_many", "serve_download" },
		{ "std_like::vector_of<unsigned long>::grow_by_doubling(int)", "main", "start" },
		{ "std_like::vector_of<unsigned char>::grow_by_doubling(int)", "main", "start" },
		{ "alone_in_its_function", "request_handle_one_of_many_more", "serve_nobody" },
	};
	static const char *const shown[] = {
		"\n      < serve_upload\n",
		"\n      < serve_download\n",
		"\n      std_like::vector_of<unsigned long>::grow_by_doubling(int) < main < start\n",
		"\n      std_like::vector_of<unsigned char>::grow_by_doubling(int) < main < start\n",
	};
	struct report_options o = { .format = REPORT_TEXT, .by = REPORT_BY_STACK };
	struct profile *a = record(1, 0, 16), *b = record(1, 0, 16);
	char *text;
	struct err why;

	each_case(c, paths)
		add_path(b, *c, 3);
	assert_int_equal(diff(a, b, &o, &text, &why), 0);
	each_case(one, shown)
		if (count(text, *one) != 1)
			fail_msg("'%s' in: %s", *one, text);
	assert_omits(text, "serve_nobody");
	for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1)
		if (end - line > 100 && !strstr(line, "the other "))
			fail_msg("%s", line);
}

/* What a runtime compiled again between the profiles is the same function. */
TEST(a_tier_makes_no_other_row)
{
	static const char *const paths[][2] = { { "LazyCompile:~put", "Function:^run" },
						{ "LazyCompile:*put", "Function:*run" } };
	struct report_options o = { .format = REPORT_JSON, .by = REPORT_BY_STACK };
	struct profile *a = record(1, 0, 16), *b = record(1, 0, 16);
	char *text;
	struct err why;

	add_path(a, paths[0], 2);
	add_path(b, paths[1], 2);
	assert_int_equal(diff(a, b, &o, &text, &why), 0);
	if (!strstr(text, "{\"name\":\"put < run\",\"inuse_bytes_before\":1024,"
			  "\"inuse_bytes_after\":1024,"))
		fail_msg("%s", text);
}

#define MIB (1 << 20)

/* Of a process followed from 1000 s on, whose resident memory is `resident` now. */
static void set_resident(struct profile *p, int64_t end_s, uint64_t resident, int64_t of_files)
{
	p->recording.is_known = true;
	p->recording.pid = 77;
	p->recording.process_cnt = 1;
	p->recording.comm_str = profile_str(p, "server");
	p->recording.begin_ns = 1000000000000;
	p->recording.end_ns = end_s * 1000000000;
	p->recording.rss_begin_bytes = 100 * MIB;
	p->recording.rss_end_bytes = resident;
	p->recording.rss_file_growth_bytes = of_files;
}

/* A process that grew, between the profiles, by what is not held: that is said, as of one profile. */
TEST(growth_that_rows_do_not_explain_is_said)
{
	static const struct {
		const char *what;
		uint64_t before, after; /* resident */
		int64_t of_files;
		uint64_t leaked;
		int32_t pid; /* of the second */
		int64_t later_ns; /* begin of the second */
		const char *expected; /* NULL: nothing is said */
	} cases[] = {
		{ "mapped", 300 * MIB, 600 * MIB, 0, 3 * MIB, 77, 0,
		  "\nThe process grew by 300 MiB, of which 1 % is explained: 3.00 MiB more is in use. The" },
		{ "held", 300 * MIB, 600 * MIB, 0, 200 * MIB, 77, 0, NULL },
		{ "before", 600 * MIB, 610 * MIB, 0, 3 * MIB, 77, 0, NULL },
		{ "a file", 300 * MIB, 600 * MIB, 290 * MIB, 3 * MIB, 77, 0, NULL },
		{ "another process", 300 * MIB, 600 * MIB, 0, 3 * MIB, 78, 0, NULL },
		{ "recorded again", 300 * MIB, 2000 * (uint64_t)MIB, 0, 3 * MIB, 77, 60000000000,
		  "\nThe process grew by 1.86 GiB, of which 21 % is explained: 392 MiB is in use. The" },
	};

	each_case(c, cases) {
		struct report_options o = { .by = REPORT_BY_STACK, .format = REPORT_TEXT };
		struct profile *a = record(1, 0, 16), *b = record(1, c->leaked, 16);
		struct err why;
		char *text, flat[512] = "", *end;

		set_resident(a, 1010, c->before, 0);
		set_resident(b, 1100, c->after, c->of_files);
		b->recording.pid = c->pid;
		b->recording.begin_ns += c->later_ns;
		assert_int_equal(diff(a, b, &o, &text, &why), 0);
		snprintf(flat, sizeof(flat), "%s", text);
		while ((end = strstr(flat, "\n  "))) /* wrapped */
			memmove(end, end + 2, strlen(end + 2) + 1), *end = ' ';
		if (c->expected ? !strstr(flat, c->expected) : !!strstr(text, "grew by"))
			fail_msg("%s: %s", c->what, text);
		o.format = REPORT_JSON;
		assert_int_equal(diff(a, b, &o, &text, &why), 0);
		assert_int_equal(!strstr(text, "\"unexplained_bytes\":null"), !!c->expected);
	}
}

TEST(no_end_of_an_interval_has_an_exponent)
{
	struct report_options o = { .format = REPORT_TEXT, .by = REPORT_BY_STACK };
	struct err why;
	char *text;

	for (uint64_t leaked = 600 << 10; leaked < 1100 << 10; leaked += 4 << 10) {
		struct profile *a = record(4096, 0, 16), *b = record(4096, leaked, 16);

		assert_int_equal(diff(a, b, &o, &text, &why), 0);
		assert_omits(text, "e+");
	}
}

/* A table that was full lost blocks or frees: a difference may be that. */
TEST(a_profile_with_losses_is_said)
{
	struct report_options o = { .format = REPORT_TEXT, .by = REPORT_BY_STACK };
	struct profile *a = record(1, 0, 16), *b = record(1, 0, 16);
	struct err why;
	char *text;

	b->recording.is_known = b->recording.is_lossy = true;
	assert_int_equal(diff(a, b, &o, &text, &why), 0);
	assert_says(text, "> not everything was recorded after: part of the change");
	assert_omits(text, "at least");
	o.format = REPORT_JSON;
	assert_int_equal(diff(a, b, &o, &text, &why), 0);
	assert_says(text, "\"is_lossy_before\":false,\"is_lossy_after\":true");
}

/* What was not recorded is in no interval. */
TEST(a_profile_that_lacks_a_part_is_said)
{
	static const char *const sums[] = { "In use: at least 3", "-> at least 3" };
	static const char *const words[] = {
		"> not everything was recorded before: part of the change may be due to that",
		"> not everything was recorded after: part of the change may be due to that",
		"> not everything was recorded before and after: part of the change may be due to that",
	};
	struct report_options o = { .format = REPORT_TEXT, .by = REPORT_BY_STACK };
	char *text;
	struct err why;

	for (unsigned lacks = 0; lacks < 4; lacks++) {
		struct profile *both[2] = { record(1, 0, 16), record(1, 0, 16) };

		for (unsigned i = 0; i < 2; i++) {
			both[i]->recording.is_known = both[i]->recording.is_from_start = true;
			if (lacks & (1U << i))
				assert_int_equal(profile_comment(both[i], "ledger: tap_late 1 (x)"),
						 0);
		}
		assert_int_equal(diff(both[0], both[1], &o, &text, &why), 0);
		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(!!strstr(text, sums[i]), !!(lacks & (1U << i)));
		for (unsigned i = 1; i < 4; i++)
			assert_int_equal(!!strstr(text, words[i - 1]), lacks == i);
	}
}

TEST(other_values_cannot_be_compared)
{
	struct report_options o = { .by = REPORT_BY_STACK };
	struct profile *a = record(1, 0, 16), *b;
	char *text;
	struct err why;

	assert_int_equal(profile_new(&b), 0);
	unit_keep(b, release_profile);
	assert_int_equal(vec_push(&b->types, ((struct profile_type){
						     .type_str = profile_str(b, "cpu"),
						     .unit_str = profile_str(b, "nanoseconds") })),
			 0);
	assert_int_equal(diff(a, b, &o, &text, &why), -EINVAL);
	assert_string_equal(why.text, "cannot compare: a.pb.gz has inuse_space, b.pb.gz has cpu");
	a->recording = RECORDING_NONE;
	a->recording.is_known = true;
	a->recording.inuse = RECORDING_INUSE_UNKNOWN;
	o.value = REPORT_VALUE_INUSE;
	assert_int_equal(diff(a, a, &o, &text, &why), -EINVAL);
	assert_string_equal(
		why.text, "heap in use is unknown in a.pb.gz; --value alloc compares allocations");
}

RUN_TESTS()
