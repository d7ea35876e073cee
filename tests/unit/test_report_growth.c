/* SPDX-License-Identifier: MIT */
/*
 * test_report_growth.c - growth as it is told: a profile with a history, written and read again; its rows in JSON
 * and text, by stack and by scope; the sentence of a recording; what is not known is null.
 */
#include "unit.h"

#include <sys/mman.h>

#include "../lib/pprof_check.h"
#include "base/err.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "report/report.h"

#define MOMENTS 24
#define S_NS 1000000000LL /* half of it is between two moments */
#define RATE 4096

static uint32_t add_frame(struct profile *p, const char *function, uint64_t address)
{
	struct profile_mapping m = { .limit = UINT64_MAX,
				     .filename_str = profile_str(p, "/bin/server"),
				     .has_functions = true };
	struct profile_function f = { .name_str = profile_str(p, function) };
	struct profile_line line = { .function = (uint32_t)p->functions.cnt };
	struct profile_location l = { .address = address,
				      .line_first = (uint32_t)p->lines.cnt,
				      .line_cnt = 1 };

	if (!p->mappings.cnt)
		assert_int_equal(vec_push(&p->mappings, m), 0);
	assert_int_equal(vec_push(&p->functions, f), 0);
	assert_int_equal(vec_push(&p->lines, line), 0);
	assert_int_equal(vec_push(&p->locations, l), 0);
	return (uint32_t)p->locations.cnt - 1;
}

/* caller: NULL, there is none. */
static void add_called(struct profile *p, const char *function, const char *caller,
		       const char *scope, const struct history_life *lives, size_t cnt)
{
	uint32_t loc[2] = { add_frame(p, function, 0x1000 + 16 * p->locations.cnt) };
	struct profile_label label = { .key_str = profile_str(p, "scope"),
				       .str = scope ? profile_str(p, scope) : 0 };
	struct profile_sample *s;
	int64_t values[PROFILE_VALUE_CNT] = { 0 };
	double variance = 0;
	uint64_t samples = 0;

	if (caller)
		loc[1] = add_frame(p, caller, 0x1000 + 16 * p->locations.cnt);
	for (size_t i = 0; i < cnt; i++) {
		if (lives[i].last + 1 < MOMENTS)
			continue;
		samples += lives[i].samples;
		variance += lives[i].variance;
		values[PROFILE_INUSE_SPACE] += (int64_t)lives[i].bytes;
		values[PROFILE_INUSE_OBJECTS] += (int64_t)lives[i].samples;
	}
	assert_int_equal(profile_add_sample(p, loc, caller ? 2 : 1, values, &label, !!scope, &s),
			 0);
	s->has_error = true;
	s->inuse_samples = samples;
	s->inuse_bytes_variance = variance;
	assert_int_equal(profile_add_lives(p, lives, cnt), 0);
}

static void add_site(struct profile *p, const char *function, const char *scope,
		     const struct history_life *lives, size_t cnt)
{
	add_called(p, function, NULL, scope, lives, cnt);
}

/* So many samples of small blocks. */
static struct history_life life_of(uint32_t first, uint32_t last, uint64_t samples)
{
	return (struct history_life){ first, last, samples, (double)samples * RATE,
				      (double)samples * RATE * RATE };
}

/* Twelve seconds, two moments in each. `leak` grows by ten samples a second, `table` stays, `buffers` come and go. */
static struct profile *record(bool leaks, const char *scope)
{
	struct history_life leak[MOMENTS], buffers[MOMENTS], table = life_of(0, MOMENTS - 1, 50);
	struct profile *p;

	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(profile_set_heap_types(p, RATE), 0);
	p->time_ns = 1012 * S_NS;
	p->recording.is_known = true;
	p->recording.begin_ns = 1000 * S_NS;
	p->recording.duration_ns = MOMENTS * S_NS / 2;
	for (uint32_t i = 0; i < MOMENTS; i++) {
		assert_int_equal(vec_push(&p->moments_ns, (i + 1) * S_NS / 2), 0);
		leak[i] = life_of(i, MOMENTS - 1, 5);
		buffers[i] = life_of(i, i, 40 + i % 2);
	}
	if (leaks)
		add_site(p, "leak", scope, leak, MOMENTS);
	add_site(p, "table", scope, &table, 1);
	add_site(p, "buffers", scope, buffers, MOMENTS);
	return p;
}

/* As it comes out of a file. */
static struct profile *reread(struct profile *p)
{
	int fd = memfd_create("profile", MFD_CLOEXEC);
	struct err why;
	struct profile *again;
	static char bytes[1 << 16];
	ssize_t n;

	assert_true(fd >= 0);
	assert_int_equal(pprof_write(p, fd), 0);
	n = pread(fd, bytes, sizeof(bytes), 0);
	assert_true(n > 0 && (size_t)n < sizeof(bytes));
	if (pprof_check(bytes, (size_t)n, &why))
		fail_msg("%s", why.text);
	assert_int_equal(pprof_read_mem(bytes, (size_t)n, &again, &why), 0);
	close(fd);
	profile_free(p);
	return again;
}

static char *report(const struct profile *p, const struct report_options *opts)
{
	char *text = NULL;
	size_t bytes;
	FILE *f = open_memstream(&text, &bytes);

	assert_non_null(f);
	assert_int_equal(report_write(p, opts, f), 0);
	fclose(f);
	return text;
}

/* The line of JSON of a row. */
static void has(const char *text, const char *name, const char *expected)
{
	char key[64];
	const char *line, *end;
	char *copy;

	snprintf(key, sizeof(key), "\"name\":\"%s\"", name);
	line = strstr(text, key);
	if (!line)
		fail_msg("no row %s in:\n%s", name, text);
	end = strchr(line, '\n');
	copy = strndup(line, end ? (size_t)(end - line) : strlen(line));
	if (!strstr(copy, expected))
		fail_msg("no %s in: %s", expected, copy);
	free(copy);
}

TEST(test_json)
{
	static const enum report_by by[] = { REPORT_BY_STACK, REPORT_BY_FUNCTION };
	struct profile *p = reread(record(true, NULL));

	assert_int_equal(p->moments_ns.cnt, MOMENTS);
	for (size_t i = 0; i < 2; i++) {
		struct report_options opts = { .by = by[i],
					       .format = REPORT_JSON,
					       .sort = REPORT_SORT_GROWTH };
		char *text = report(p, &opts);

		has(text, "leak",
		    "\"growth\":\"grows\",\"growth_bytes_per_s\":40960.0,\"growth_bytes_per_s_low\":31797.1");
		has(text, "leak", "\"growth_more_s\":null");
		has(text, "table", "\"growth\":\"steady\",\"growth_bytes_per_s\":0.0");
		has(text, "buffers", "\"growth\":\"steady\"");
		assert_true(strstr(text, "\"name\":\"leak\"") < strstr(text, "\"name\":\"table\""));
		free(text);
	}
	profile_free(p);
}

/* A server follows it since a day, and has moments of the last seconds. */
TEST(test_begun_long_ago)
{
	struct report_options opts = { .by = REPORT_BY_STACK, .format = REPORT_JSON };
	struct profile *p = record(true, NULL);
	char *text;

	p->recording.begin_ns -= 86400 * S_NS;
	p->recording.duration_ns += 86400 * S_NS;
	for (size_t i = 0; i < p->moments_ns.cnt; i++)
		p->moments_ns.data[i] += 86400 * S_NS;
	p = reread(p);
	text = report(p, &opts);
	has(text, "leak", "\"growth\":\"grows\",\"growth_bytes_per_s\":40960.0");
	has(text, "table", "\"growth\":\"steady\"");
	free(text);
	profile_free(p);
}

static char *table(const struct profile *p, size_t row_cap)
{
	char *text = NULL;
	size_t bytes;
	FILE *f = open_memstream(&text, &bytes);

	assert_non_null(f);
	assert_int_equal(report_growth_table(p, row_cap, f), 0);
	fclose(f);
	return text;
}

static void shows(const char *text, const char *expected, bool is_wanted)
{
	if (!strstr(text, expected) == is_wanted)
		fail_msg("%s: '%s' in: %s", is_wanted ? "not" : "there is", expected, text);
}

/* As a part of a page: what grows on top, names are text, and what is not known is not steady. */
TEST(test_table)
{
	static const char grows[] =
		"<td class=\"num\">+2.34 MiB <small>+1.82 MiB to +2.86 MiB</small><td><b>grows</b>";
	struct profile *p = record(true, "<script>");
	char *text = table(p, 10), *leak;

	shows(text, "<h2>What grows, by stack</h2>", true);
	shows(text, "<table class=\"growth by-stack\" data-ages=\"", true);
	shows(text, " data-means=\"204800 204800 204800 ", true);
	leak = strstr(text, "\"><td class=\"num\">480 KiB<td class=\"num\">+2.34 MiB");
	assert_true(leak && leak < strstr(text, "<td>steady"));
	shows(text, grows, true);
	shows(leak + strlen(grows), grows, true); /* of the day, too */
	shows(text, "<h2>What grows, by scope</h2>", true);
	shows(text, "&lt;script&gt;", true);
	shows(text, "<script", false);
	shows(text, "more: ", false);
	free(text);
	text = table(p, 1);
	shows(text, "And 2 more: <a href=\"growth\">", true);
	free(text);
	p->is_history_partial = true; /* stacks that are not told apart */
	p->samples.data[1].life_cnt = 0;
	text = table(p, 10);
	shows(text,
	      "<td class=\"num\"><td>inconclusive<td class=\"num\"><td>inconclusive<td "
	      "class=\"where\">table",
	      true);
	free(text);
	profile_free(p);

	p = record(false, NULL); /* nothing is known yet */
	p->moments_ns.cnt = 3;
	text = table(p, 10);
	shows(text, "data-", false); /* and so there is no chart */
	shows(text, "inconclusive: about 1 min more", true);
	shows(text, "by scope", false);
	free(text);
	profile_free(p);
}

TEST(test_text)
{
	struct report_options opts = { .sort = REPORT_SORT_GROWTH, .row_cap = 2 };
	struct profile *p = reread(record(true, NULL));
	char *text = report(p, &opts), *leak = strstr(text, " leak\n");

	if (!leak || !strstr(text, "+40.0 KiB/s +") || !strstr(text, " grows    leak\n") ||
	    !strstr(text, "and 1 more: --top 0\n"))
		fail_msg("%s", text);
	free(text);
	profile_free(p);
}

/* Rows of one function, by whom it is called: there is no room for that in the line, or not for all of it. */
TEST(test_alike)
{
	static const char own[] =
		"a_function_with_a_name_that_fills_all_of_the_columns_that_are_left";
	static const char *const callers[] = {
		"a_caller_with_a_name_that_does_fill_more_than_fifty_of_them_first_of_two",
		"a_caller_with_a_name_that_does_fill_fewer_than_fifty_of_them_first_of_two"
	};
	struct report_options opts = { .sort = REPORT_SORT_GROWTH };
	struct history_life life = life_of(0, MOMENTS - 1, 50);
	struct profile *p = record(false, NULL);
	char *text, second[128];

	for (size_t i = 0; i < 2; i++)
		add_called(p, own, callers[i], NULL, &life, 1);
	p = reread(p);
	text = report(p, &opts);
	for (size_t i = 0; i < 2; i++) {
		snprintf(second, sizeof(second), "\n      %s\n      < %s\n", own, callers[i]);
		shows(text, second, true);
	}
	free(text);
	text = table(p, 10);
	for (size_t i = 0; i < 2; i++)
		shows(text, callers[i], true);
	free(text);
	profile_free(p);
}

TEST(test_scopes)
{
	struct report_options opts = { .by = REPORT_BY_SCOPE, .format = REPORT_JSON };
	struct profile *p = reread(record(true, "Top/Query"));
	char *text = report(p, &opts);

	has(text, "Query", "\"growth\":\"grows\"");
	has(text, "Top", "\"growth\":\"grows\"");
	free(text);
	profile_free(p);
}

TEST(test_sentence)
{
	char text[REPORT_GROWS_BUF];
	struct profile *p = reread(record(true, NULL));

	assert_int_equal(report_grows(p, text), 0);
	if (strncmp(text, "Grows: leak, +40.0 KiB/s (95 %: +", 33) != 0)
		fail_msg("%s", text);
	profile_free(p);
	p = reread(record(false, NULL));
	assert_int_equal(report_grows(p, text), 0);
	assert_string_equal(text, "");
	profile_free(p);
}

/* Without a history, with in-use unknown, and where the history had no room: null, never 0. */
TEST(test_unknown)
{
	static const char nothing[] =
		"\"growth\":\"unknown\",\"growth_bytes_per_s\":null,"
		"\"growth_bytes_per_s_low\":null,\"growth_bytes_per_s_high\":null";
	struct report_options opts = { .format = REPORT_JSON },
			      sorted = { .sort = REPORT_SORT_GROWTH };
	char grows[REPORT_GROWS_BUF], *text;
	struct err why;

	for (int i = 0; i < 3; i++) {
		struct profile *p = record(true, NULL);

		if (i == 0)
			p->moments_ns.cnt = p->lives.cnt = 0;
		if (i == 0)
			for (size_t k = 0; k < p->samples.cnt; k++)
				p->samples.data[k].life_cnt = 0;
		if (i == 1)
			p->recording.inuse = RECORDING_INUSE_UNKNOWN;
		if (i == 2) {
			p->is_history_partial = true;
			add_site(p, "lost", NULL, NULL, 0);
			p->samples.data[p->samples.cnt - 1].inuse_samples = 1;
		}
		p = reread(p);
		text = report(p, &opts);
		has(text, i == 2 ? "lost" : "leak", nothing);
		free(text);
		assert_int_equal(report_check(p, &sorted, &why), i == 2 ? 0 : -ENODATA);
		assert_int_equal(report_grows(p, grows), 0);
		assert_int_equal(!!grows[0], i == 2);
		profile_free(p);
	}
}

/* Frees were not tracked at first: what was live before counts for nothing. */
TEST(test_since)
{
	struct report_options opts = { .format = REPORT_JSON };
	struct profile *p = record(true, NULL);
	char *text;

	p->recording.inuse = RECORDING_INUSE_SINCE;
	p->recording.inuse_since_ns = p->recording.begin_ns + 8 * S_NS;
	p = reread(p);
	text = report(p, &opts);
	has(text, "leak", "\"growth\":\"unknown\",\"growth_bytes_per_s\":null");
	has(text, "leak", "\"growth_more_s\":10");
	free(text);
	profile_free(p);
}

RUN_TESTS()
