/* SPDX-License-Identifier: MIT */
/* What the status line says while a recording runs. */
#include "unit.h"

#include "base/clock.h"
#include "record/recorder_priv.h"

#define KIB 1024.0

static const char *at(struct live_line *l, double seconds, double held_bytes, double cost)
{
	static char buf[LIVE_LINE_BYTES];
	const struct live_now now = {
		.time_ns = 5 * NS_PER_S + (uint64_t)(seconds * NS_PER_S),
		.elapsed_ns = (uint64_t)(seconds * NS_PER_S),
		.has_held = held_bytes >= 0,
		.held_bytes = held_bytes,
		.cost = cost,
	};

	live_line_text(l, &now, buf);
	return buf;
}

TEST(test_growth)
{
	struct live_line l = { 0 };

	assert_string_equal(at(&l, 0.2, 100 * KIB, NAN), "200 ms: in use 100 KiB, cost unknown");
	assert_string_equal(at(&l, 0.8, 200 * KIB, 0.004), "800 ms: in use 200 KiB, cost 0.4 %");
	assert_string_equal(at(&l, 1.2, 300 * KIB, 0.094),
			    "1.2 s: in use 300 KiB (+200 KiB/s), cost 9 %");
	/* the newest that is a second old counts */
	assert_string_equal(at(&l, 1.8, 100 * KIB, 0.534),
			    "1.8 s: in use 100 KiB (-100 KiB/s), cost 53 %");
	assert_string_equal(at(&l, 2.8, 100 * KIB, 0),
			    "2.8 s: in use 100 KiB (+0 B/s), cost 0.0 %");
}

/* What is held is another sum when frees are watched again: no growth over the gap. */
TEST(test_unknown)
{
	struct live_line l = { 0 };

	at(&l, 1, 1e9, 0.1);
	assert_string_equal(at(&l, 2, -1, 0.2), "2.0 s: in use unknown, cost 20 %");
	assert_string_equal(at(&l, 3, 0, 0.2), "3.0 s: in use 0 B, cost 20 %");
	assert_string_equal(at(&l, 4, 10 * KIB, 0.2),
			    "4.0 s: in use 10.0 KiB (+10.0 KiB/s), cost 20 %");
}

TEST(test_width)
{
	struct live_now now = {
		.time_ns = 1,
		.elapsed_ns = 86400 * 30 * NS_PER_S,
		.has_held = true,
		.held_bytes = 1023.0 * 1024 * 1024 * 1024,
		.cost = 1.01,
		.is_largest_cost = true,
		.loss = "stack map full",
	};
	struct live_line l = { 0 };
	char buf[LIVE_LINE_BYTES];

	live_line_text(&l, &now, buf);
	now.time_ns += 2 * NS_PER_S;
	now.held_bytes = 1;
	live_line_text(&l, &now, buf);
	assert_string_equal(buf,
			    "720h 00m: in use 1 B (-511 GiB/s), cost up to 101 %, stack map full");
	assert_true(strlen("heaptap: ") + strlen(buf) < 80);
}

/* Beside a limit of one CPU the cost is one of that. */
TEST(test_one_cpu)
{
	const struct live_now now = {
		.time_ns = 1,
		.elapsed_ns = 3 * NS_PER_S,
		.has_held = true,
		.cost = 0.06,
		.is_of_one_cpu = true,
	};
	struct live_line l = { 0 };
	char buf[LIVE_LINE_BYTES];

	live_line_text(&l, &now, buf);
	assert_string_equal(buf, "3.0 s: in use 0 B, cost 6 % of one CPU");
}

/* More points than are kept. */
TEST(test_long)
{
	struct live_line l = { 0 };
	const char *text = "";

	for (int i = 0; i < 1000; i++)
		text = at(&l, 0.2 * i, i * KIB, 0.05);
	assert_string_equal(text, "3m 19s: in use 999 KiB (+5.00 KiB/s), cost 5 %");
}

RUN_TESTS()
