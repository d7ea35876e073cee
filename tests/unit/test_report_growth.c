/* SPDX-License-Identifier: MIT */
/*
 * test_report_growth.c - growth as it is told: a profile with a history, written and read again; its rows in JSON
 * and text, by stack and by scope; the sentence of a recording; what is not known is null.
 */
#include "made_profile.h"

#define MOMENTS 24
#define S_NS 1000000000LL /* half of it is between two moments */
#define RATE 4096
#define life_of(first, last, samples) made_life(first, last, samples, RATE)

static uint32_t add_frame(struct profile *p, const char *function, uint64_t address)
{
	uint32_t mapping = 0;

	if (!p->mappings.cnt)
		mapping = made_mapping(p, "/bin/server");
	p->mappings.data[0].has_functions = true;
	return made_location(p, mapping, (struct made_place){ function, .address = address });
}

/* caller: NULL, there is none. */
static void add_called(struct profile *p, const char *function, const char *caller,
		       const char *scope, const struct history_life *lives, size_t cnt)
{
	uint32_t loc[2] = { add_frame(p, function, 0x1000 + 16 * p->locations.cnt) };

	if (caller)
		loc[1] = add_frame(p, caller, 0x1000 + 16 * p->locations.cnt);
	made_lives(p, loc, caller ? 2 : 1, scope, lives, cnt);
}

static void add_site(struct profile *p, const char *function, const char *scope,
		     const struct history_life *lives, size_t cnt)
{
	add_called(p, function, NULL, scope, lives, cnt);
}

/* Twelve seconds, two moments in each. `leak` grows by ten samples a second, `table` stays, `buffers` come and go. */
static struct profile *record(bool leaks, const char *scope)
{
	struct history_life leak[MOMENTS], buffers[MOMENTS], table = life_of(0, MOMENTS - 1, 50);
	struct profile *p;

	p = made_profile(RATE);
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
		char *text = report_text(p, &opts);

		has(text, "leak",
		    "\"growth\":\"grows\",\"growth_bytes_per_s\":40960.0,\"growth_bytes_per_s_low\":31797.1");
		has(text, "leak", "\"growth_more_s\":null");
		has(text, "table", "\"growth\":\"steady\",\"growth_bytes_per_s\":0.0");
		has(text, "buffers", "\"growth\":\"steady\"");
		assert_true(strstr(text, "\"name\":\"leak\"") < strstr(text, "\"name\":\"table\""));
	}
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
	text = report_text(p, &opts);
	has(text, "leak", "\"growth\":\"grows\",\"growth_bytes_per_s\":40960.0");
	has(text, "table", "\"growth\":\"steady\"");
}

static char *table(const struct profile *p, size_t row_cap)
{
	return printed(out, assert_int_equal(report_growth_table(p, row_cap, out), 0));
}

/* As a part of a page: what grows on top, names are text, and what is not known is not steady. */
TEST(test_table)
{
	static const char grows[] =
		"<td class=\"num\">+2.34 MiB <small>+1.82 MiB to +2.86 MiB</small><td><b>grows</b>";
	struct profile *p = record(true, "<script>");
	char *text = table(p, 10), *leak;

	assert_says(text, "<h2>What grows, by stack</h2>");
	assert_says(text, "<table class=\"growth by-stack\" data-ages=\"");
	assert_says(text, " data-means=\"204800 204800 204800 ");
	leak = strstr(text, "\"><td class=\"num\">480 KiB<td class=\"num\">+2.34 MiB");
	assert_true(leak && leak < strstr(text, "<td>steady"));
	assert_says(text, grows);
	assert_says(leak + strlen(grows), grows); /* of the day, too */
	assert_says(text, "<h2>What grows, by scope</h2>");
	assert_says(text, "&lt;script&gt;");
	assert_omits(text, "<script");
	assert_omits(text, "more: ");
	text = table(p, 1);
	assert_says(text, "And 2 more: <a href=\"growth\">");
	p->is_history_partial = true; /* stacks that are not told apart */
	p->samples.data[1].life_cnt = 0;
	text = table(p, 10);
	assert_says(text, "<td class=\"num\"><td>inconclusive<td class=\"num\"><td>inconclusive<td "
			  "class=\"where\">table");

	p = record(false, NULL); /* nothing is known yet */
	p->moments_ns.cnt = 3;
	text = table(p, 10);
	assert_omits(text, "data-"); /* and so there is no chart */
	assert_says(text, "inconclusive: about 1 min more");
	assert_omits(text, "by scope");
}

TEST(test_text)
{
	struct report_options opts = { .sort = REPORT_SORT_GROWTH, .row_cap = 2 };
	struct profile *p = reread(record(true, NULL));
	char *text = report_text(p, &opts), *leak = strstr(text, " leak\n");

	if (!leak || !strstr(text, "+40.0 KiB/s +") || !strstr(text, " grows    leak\n") ||
	    !strstr(text, "and 1 more: --top 0\n"))
		fail_msg("%s", text);
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
	text = report_text(p, &opts);
	for (size_t i = 0; i < 2; i++) {
		snprintf(second, sizeof(second), "\n      %s\n      < %s\n", own, callers[i]);
		assert_says(text, second);
	}
	text = table(p, 10);
	for (size_t i = 0; i < 2; i++)
		assert_says(text, callers[i]);
}

TEST(test_scopes)
{
	struct report_options opts = { .by = REPORT_BY_SCOPE, .format = REPORT_JSON };
	struct profile *p = reread(record(true, "Top/Query"));
	char *text = report_text(p, &opts);

	has(text, "Query", "\"growth\":\"grows\"");
	has(text, "Top", "\"growth\":\"grows\"");
}

TEST(test_sentence)
{
	char text[REPORT_GROWS_BUF];
	struct profile *p = reread(record(true, NULL));

	assert_int_equal(report_grows(p, text), 0);
	if (strncmp(text, "Grows: leak, +40.0 KiB/s (95 %: +", 33) != 0)
		fail_msg("%s", text);
	p = reread(record(false, NULL));
	assert_int_equal(report_grows(p, text), 0);
	assert_string_equal(text, "");
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
		text = report_text(p, &opts);
		has(text, i == 2 ? "lost" : "leak", nothing);
		assert_int_equal(report_check(p, &sorted, &why), i == 2 ? 0 : -ENODATA);
		assert_int_equal(report_grows(p, grows), 0);
		assert_int_equal(!!grows[0], i == 2);
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
	text = report_text(p, &opts);
	has(text, "leak", "\"growth\":\"unknown\",\"growth_bytes_per_s\":null");
	has(text, "leak", "\"growth_more_s\":10");
}

RUN_TESTS()
