/* SPDX-License-Identifier: MIT */
/*
 * test_report_unknown.c - what is not known is never 0: text, JSON, flame graphs and heap texts of a recording
 * of which in-use is unknown; and no number is called exact when something was lost.
 */
#include "made_profile.h"
#include "made_note.h"
#include "report/report_rows.h"

#define S 1000000000LL

static struct profile *p; /* of the test that runs */

static void add(const char *function, const char *scope, int64_t task, int64_t alloc, int64_t inuse)
{
	uint32_t loc = made_location(p, HT_NO_INDEX, (struct made_place){ function, .line = 7 });
	struct profile_label labels[] = { text_label(p, "scope", scope),
					  number_label(p, "task", task) };

	assert_int_equal(profile_add_sample(p, &loc, 1, (int64_t[]){ 1, alloc, !!inuse, inuse },
					    labels, task ? 2 : 1, NULL),
			 0);
}

static int set_up(void **state)
{
	p = made_profile(64 << 10);
	p->time_ns = 1700000000 * S;
	p->recording = (struct recording){
		.is_known = true,
		.pid = 6426,
		.comm_str = profile_str(p, "redis-server"),
		.exe_str = profile_str(p, "/usr/bin/redis-server"),
		.process_cnt = 1,
		.duration_ns = 10 * S,
		.watched_ns = 10 * S,
		.begin_ns = p->time_ns - 10 * S,
		.end_ns = p->time_ns,
		.overhead_share = 0.2,
		.full_share = 0.53,
		.overhead_one_cpu = 0.06,
		.full_one_cpu = 0.31,
		.limit = { .cpu_share = 0.25 },
		.inuse = RECORDING_INUSE_UNKNOWN,
	};
	add("little", "A", 0, 1000, 0);
	add("much", "A/B", 0, 500000, 0);
	add("task", "A/conn", 4, 20, 0);
	return 0;
}

TEST_WITH(text_says_so_and_who_allocates, set_up, NULL)
{
	char *text = report_text(p, &(struct report_options){ 0 }), *much, *little;

	assert_says(text,
		    "In use: UNKNOWN. Tracking frees costs 53 % of redis-server's CPU time; the "
		    "limit is 25 %.");
	assert_says(text, "To measure it: heaptap record --tap -d 10s -p 6426\n");
	assert_says(text, "Or with probes: heaptap record --max-overhead 80 -d 10s -p 6426\n");
	assert_says(text, "(costs about half the throughput for 10 s; nothing remains afterwards)");
	assert_says(text, "Allocated 489 KiB in 3 blocks\n");
	assert_says(text, "ALLOCATED");
	assert_omits(text, "IN USE");
	assert_omits(text, " 0 B");
	much = strstr(text, " much");
	little = strstr(text, " little");
	assert_true(much && little && much < little);
	for (int by = 0; by < 7; by++) {
		text = report_text(p, &(struct report_options){ .by = by, .label_key = "scope" });
		assert_says(text, "UNKNOWN");
		assert_omits(text, "IN USE");
		assert_omits(text, " 0 B");
	}
}

/* What a task has allocated stands in its note, not in its samples. */
TEST_WITH(tasks_show_what_they_allocated, set_up, NULL)
{
	char *text;

	add("conn", "A/conn", 0, 5000, 0);
	assert_int_equal(made_note(p, "instance: task=9 state=live inuse_bytes=0 inuse_objects=0 "
				      "alloc_bytes=3000 alloc_objects=2 peak_bytes=0 "
				      "peak_time=2023-11-14T22:13:00.000Z scope=A/conn"),
			 0);
	text = report_text(p, &(struct report_options){ .by = REPORT_BY_INSTANCE });
	assert_says(text, "2.93 KiB      2  0.6% live      9 A/conn\n");
	assert_omits(text, "PEAK");
	text = report_text(p, &(struct report_options){ .by = REPORT_BY_INSTANCE,
							.format = REPORT_JSON });
	assert_says(text, "\"alloc_bytes\":3000");
	assert_says(text, "\"peak_bytes\":null");
	assert_says(text, "\"outstanding\":{\"task_cnt\":null,\"inuse_bytes\":null");
}

/* An estimate has its interval, whether in-use is known or not. */
TEST_WITH(what_was_allocated_has_an_interval, set_up, NULL)
{
	struct profile_sample *s;
	char *text;

	vec_each(&p->samples, s) {
		s->has_error = true;
		s->alloc_samples = 8;
		s->alloc_bytes_variance = 1e8;
	}
	text = report_text(p, &(struct report_options){ 0 });
	assert_says(text, "Allocated 489 KiB -42.9 +177 (95 %) in 3 blocks");
	p->recording.inuse = RECORDING_INUSE_ALL;
	text = report_text(p, &(struct report_options){ 0 });
	assert_says(text, "allocated 489 KiB\n  -42.9 KiB +177 KiB in 3 blocks");
}

/* Every key that begins so is null, wherever it stands. */
static void all_null(const char *text, const char *key)
{
	size_t cnt = 0;

	for (const char *s = text; (s = strstr(s, key)); s += strlen(key), cnt++)
		if (strncmp(s + strlen(key), "null", 4) != 0)
			fail_msg("%s is not null: %.60s", key, s);
	assert_true(cnt > 0);
}

TEST_WITH(json_is_null, set_up, NULL)
{
	for (int by = 0; by <= REPORT_BY_LABEL; by++) {
		/* the first says nothing of what was allocated, the others nothing else */
		if (by == REPORT_BY_AGE || by == REPORT_BY_LIFETIME || by == REPORT_BY_SIZE)
			continue;
		char *text = report_text(p, &(struct report_options){ .by = by,
								      .format = REPORT_JSON,
								      .label_key = "scope",
								      .scope = "A" });

		all_null(text, "\"inuse_bytes\":");
		all_null(text, "\"inuse_bytes_low\":");
		all_null(text, "\"inuse_bytes_high\":");
		all_null(text, "\"inuse_objects\":");
		all_null(text, "\"profile_inuse_bytes\":");
		all_null(text, "\"share\":");
		if (by == REPORT_BY_FUNCTION)
			all_null(text, "\"cumulative_inuse_bytes\":");
		if (by == REPORT_BY_SCOPE)
			all_null(text, "\"exclusive_inuse_bytes\":");
		assert_says(text, "\"alloc_bytes\":501020");
		assert_says(text, "\"inuse\":\"unknown\"");
	}
}

TEST_WITH(json_rows_are_in_the_order_of_what_was_allocated, set_up, NULL)
{
	char *text = report_text(p, &(struct report_options){ .format = REPORT_JSON });
	char *much = strstr(text, "\"name\":\"much\""),
	     *little = strstr(text, "\"name\":\"little\"");

	assert_true(much && little && much < little);
}

/* Never a share of its CPU time beside a limit of one CPU. */
TEST_WITH(the_limit_that_was_in_force_is_told, set_up, NULL)
{
	char *text;

	p->recording.limit = (struct recording_limit){ .one_cpu = 0.25 };
	text = report_text(p, &(struct report_options){ 0 });
	assert_says(text, "cost 20 % of its CPU time (6 % of one CPU)");
	assert_says(text, "Tracking frees costs 31 % of one CPU; the limit is 25 %.");
}

TEST_WITH(json_says_how_it_was_recorded, set_up, NULL)
{
	char *text;

	text = report_text(p, &(struct report_options){ .format = REPORT_JSON });
	assert_says(text, "\"duration_ns\":10000000000");
	assert_says(text, "\"overhead_percent\":20,\"overhead_one_cpu_percent\":6,"
			  "\"limit_percent\":25,\"limit_of\":\"cpu_time\",");
	assert_says(text, "\"process\":{\"pid\":6426,\"comm\":\"redis-server\","
			  "\"exe\":\"/usr/bin/redis-server\",\"process_cnt\":1}");
	assert_says(text, "\"inuse_since_ns\":null");
	assert_says(text, "\"watched_ns\":10000000000");
	assert_says(text,
		    "\"rss_begin_bytes\":null,\"rss_end_bytes\":null,\"exec_held_bytes\":null");
	assert_says(text, "\"is_lossy\":false");
	p->recording.limit = (struct recording_limit){ .one_cpu = 0.25 };
	text = report_text(p, &(struct report_options){ .format = REPORT_JSON });
	assert_says(text, "\"limit_percent\":25,\"limit_of\":\"one_cpu\",");
	p->recording.limit = (struct recording_limit){ 0 };
	text = report_text(p, &(struct report_options){ .format = REPORT_JSON });
	assert_says(text, "\"limit_percent\":null,\"limit_of\":null,");
	p->recording.inuse = RECORDING_INUSE_SINCE;
	p->recording.inuse_since_ns = 1699999995 * S;
	p->recording.rss_end_bytes = 4096;
	p->recording.exec_held_bytes = 77;
	p->recording.overhead_share = NAN;
	text = report_text(p, &(struct report_options){ .format = REPORT_JSON });
	assert_says(text, "\"inuse\":\"since\",\"inuse_since_ns\":1699999995000000000");
	assert_says(text, "\"rss_begin_bytes\":null,\"rss_end_bytes\":4096,\"exec_held_bytes\":77");
	assert_says(text, "\"overhead_percent\":null");
	p->recording = RECORDING_NONE;
	text = report_text(p, &(struct report_options){ .format = REPORT_JSON });
	assert_says(text, "\"duration_ns\":null");
	assert_says(
		text,
		"\"overhead_percent\":null,\"overhead_one_cpu_percent\":null,"
		"\"limit_percent\":null,\"limit_of\":null,\"process\":null,\"reason\":null,\"inuse\":null");
	assert_says(text, "\"watched_ns\":null");
	assert_says(text, "\"is_lossy\":null");
}

TEST_WITH(the_page_has_no_zeros, set_up, NULL)
{
	char *text = report_text(p, &(struct report_options){ .format = REPORT_HTML });

	assert_says(text, "In use: UNKNOWN.");
	assert_says(text, "\nAllocated 489 KiB in 3 blocks");
	assert_omits(text, "In use,");
	assert_omits(text, "Held");
	assert_omits(text, "0 B in");
}

TEST_WITH(pictures_of_nothing_are_an_error, set_up, NULL)
{
	static const enum report_format formats[] = { REPORT_COLLAPSED, REPORT_HEAP };
	char *text = NULL;
	struct err why;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	each_case(c, formats) {
		struct report_options o = { .format = *c };

		assert_int_equal(report_check(p, &o, &why), -ENODATA);
		assert_says(why.text, "in use is unknown. Tracking frees costs 53 %");
		assert_says(why.text, "heaptap record --tap -d 10s -p 6426");
		assert_says(why.text, "--value alloc");
		o.value = REPORT_VALUE_ALLOC;
		assert_int_equal(report_check(p, &o, &why), 0);
	}
	assert_int_equal(report_check(p, &(struct report_options){ .format = REPORT_HEAP_V2 },
				      &why),
			 -ENODATA);
	assert_says(why.text, "in use is unknown. Tracking frees costs 53 %");
	assert_omits(why.text, "--value");
	assert_int_equal(report_write(p, &(struct report_options){ .format = REPORT_COLLAPSED },
				      out),
			 -ENODATA);
	fclose(out);
	assert_int_equal(bytes, 0);
	free(text);
	text = report_text(p, &(struct report_options){ .format = REPORT_COLLAPSED,
							.value = REPORT_VALUE_ALLOC });
	assert_says(text, "much 500000\n");
	/* of text only who insists on in-use is told */
	assert_int_equal(report_check(p, &(struct report_options){ 0 }, &why), 0);
	assert_int_equal(report_check(p, &(struct report_options){ .value = REPORT_VALUE_INUSE },
				      &why),
			 -ENODATA);
}

static void know_in_use(void)
{
	struct profile_sample *s;

	p->recording.inuse = RECORDING_INUSE_ALL;
	add("holder", "C", 0, 4096, 4096);
	s = &p->samples.data[p->samples.cnt - 1];
	s->has_error = true;
	s->inuse_samples = 1;
}

TEST_WITH(exact_is_said_only_without_losses, set_up, NULL)
{
	char *text;

	know_in_use();
	text = report_text(p, &(struct report_options){ .is_new = true, .path = "p" });
	assert_says(text, "4.00 KiB (exact)");
	assert_says(text, "4.00 KiB exact");
	assert_says(text, "; no losses\n");
	p->recording.is_lossy = true;
	for (int by = 0; by < 7; by++)
		for (int has_stacks = 0; has_stacks < 2; has_stacks++) {
			text = report_text(p,
					   &(struct report_options){ .by = by,
								     .is_new = true,
								     .path = "p",
								     .label_key = "scope",
								     .shows_stacks = has_stacks });
			assert_says(text, "4.00 KiB");
			assert_omits(text, "exact");
			assert_omits(text, "no losses");
		}
	/* a counter in the comments is enough */
	p->recording.is_lossy = false;
	assert_int_equal(
		profile_comment(p, "ledger: live_full 3 (samples not tracked: live map full)"), 0);
	text = report_text(p, &(struct report_options){ .is_new = true, .path = "p" });
	assert_says(text, "lost: 3 samples not tracked: live map full; see --notes\n");
	assert_omits(text, "no losses");
}

/* It is known to be 0: that is what is said, and who allocated. */
TEST_WITH(where_nothing_is_held_those_who_allocate_are_listed, set_up, NULL)
{
	char *text;

	p->recording.inuse = RECORDING_INUSE_ALL;
	text = report_text(p, &(struct report_options){ 0 });
	assert_says(text, "not freed): 0 B in 0 blocks");
	assert_says(text, " 1     0 B      0   488 KiB much\n");
	assert_omits(text, "UNKNOWN");
	assert_omits(text, "not held");
}

/* Scripts look for a line that begins with Held, and read its seventh word. */
static void want_seventh_word(const char *text, const char *word)
{
	char got[16] = "";

	assert_int_equal(sscanf(strstr(text, "\nHeld ") + 1, "%*s%*s%*s%*s%*s%*s%15s", got), 1);
	assert_string_equal(got, word);
}

TEST_WITH(the_head_says_what_the_numbers_are_of, set_up, NULL)
{
	char *text;

	know_in_use();
	p->recording.watched_ns = 3200000000;
	p->recording.rss_begin_bytes = 10 << 20;
	p->recording.rss_end_bytes = 20 << 20;
	text = report_text(p, &(struct report_options){ 0 });
	assert_says(text, "Held (allocated while recording, not freed): 4.00 KiB");
	want_seventh_word(text, "4.00");
	assert_says(text, "24.0 KiB/min");
	assert_says(text, "in the 3.2 s that were recorded");
	assert_says(text,
		    "Resident 10.0 -> 20.0 MiB: blocks in use account for 0 % of the growth\n");
	p->recording.rss_end_bytes = (10 << 20) + 4096; /* nothing to explain */
	p->recording.is_from_start = true;
	text = report_text(p, &(struct report_options){ 0 });
	assert_says(text, "In use: 4.00 KiB");
	assert_says(text, "Resident 10.0 -> 10.0 MiB\n");
	assert_omits(text, "at exec");
	p->recording.exec_held_bytes = 3 << 20;
	p->recording.exec_held_objects = 1;
	text = report_text(p, &(struct report_options){ 0 });
	assert_says(text, "Released by exec: 3.00 MiB in 1 block\n");
	p->recording.inuse = RECORDING_INUSE_SINCE;
	p->recording.inuse_since_ns = p->recording.end_ns - 5 * S;
	text = report_text(p, &(struct report_options){ 0 });
	assert_says(text, "In use, allocated since 22:13:15: 4.00 KiB");
	assert_says(text, "48.0 KiB/min");
	p->recording.reason_str = profile_str(p, "out of\x1b memory");
	text = report_text(p, &(struct report_options){ 0 });
	assert_int_equal(
		strncmp(text, "Saved: out of? memory; exact; counted since 22:13:15\n", 53), 0);
}

RUN_TESTS()
