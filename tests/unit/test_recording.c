/* SPDX-License-Identifier: MIT */
/* test_recording.c - what is said of a recording whose in-use is unknown. */
#include "unit.h"

#include "profile/recording.h"

static struct recording unknown(double full_share)
{
	struct recording r = RECORDING_NONE;

	r.is_known = true;
	r.pid = 6426;
	r.inuse = RECORDING_INUSE_UNKNOWN;
	r.full_share = full_share;
	r.limit = (struct recording_limit){ .cpu_share = 0.25 };
	return r;
}

static unsigned advised(double full_share)
{
	struct recording r = unknown(full_share);

	r.limit.cpu_share = 0.01;
	return recording_advised_percent(&r);
}

TEST(test_advice)
{
	assert_int_equal(advised(0.53), 80); /* 79.2 */
	assert_int_equal(advised(0.26), 55); /* 53.3 */
	assert_int_equal(advised(0.05), 20); /* 15.6 */
	assert_int_equal(advised(0.54), 80); /* 79.9 */
	assert_int_equal(advised(0.55), 0); /* 80.6: it would spare next to nothing */
	assert_int_equal(advised(1.0), 0);
	assert_int_equal(advised(3.0), 0);
	assert_int_equal(advised(NAN), 0);
}

TEST(test_way_out)
{
	struct recording r = unknown(0.53);
	char buf[RECORDING_TEXT_BUF];

	assert_string_equal(recording_advice(&r, 64 << 10, buf),
			    "heaptap record --max-overhead 80 -d 10s -p 6426");
	assert_string_equal(recording_advice(&r, 0, buf),
			    "heaptap record --max-overhead 80 -d 10s -p 6426");
	assert_string_equal(recording_advice(&r, 512 << 10, buf),
			    "heaptap record --max-overhead 80 --rate 512k -d 10s -p 6426");
	assert_string_equal(recording_advice(&r, 1, buf),
			    "heaptap record --max-overhead 80 --rate 1 -d 10s -p 6426");
	assert_string_equal(recording_advice_tap(&r, buf), "heaptap record --tap -d 10s -p 6426");
	r.follows_children = true;
	assert_string_equal(recording_advice_tap(&r, buf),
			    "heaptap record --tap --follow -d 10s -p 6426");
	assert_string_equal(recording_advice(&r, 64 << 10, buf),
			    "heaptap record --max-overhead 80 --follow -d 10s -p 6426");
	r.follows_children = false;
	r.full_share = 0.9;
	assert_string_equal(recording_advice(&r, 64 << 10, buf),
			    "heaptap record --max-overhead off -d 10s -p 6426");
	r.pid = 0;
	assert_string_equal(recording_advice(&r, 0, buf),
			    "heaptap record --max-overhead off -d 10s");
	/* Nobody can attach to what has ended. */
	r = unknown(0.53);
	r.has_ended = true;
	assert_string_equal(recording_advice(&r, 0, buf),
			    "heaptap record --max-overhead 80 -d 10s -p PID");
	assert_string_equal(recording_advice_tap(&r, buf), "");
	recording_program_text((char *const[]){ (char *)"sh", (char *)"-c", (char *)"a; b", NULL },
			       r.program, sizeof(r.program));
	r.follows_children = true;
	assert_string_equal(recording_advice(&r, 0, buf),
			    "heaptap record --max-overhead 80 --follow -- sh -c ...");
	assert_string_equal(recording_advice_cost(&r, buf),
			    "costs about half the throughput; nothing remains afterwards");
}

TEST(test_cost)
{
	struct recording r = unknown(0.53);
	char buf[RECORDING_TEXT_BUF];

	assert_string_equal(recording_advice_cost(&r, buf),
			    "costs about half the throughput for 10 s; nothing remains afterwards");
	r.full_share = 0.31;
	assert_string_equal(
		recording_advice_cost(&r, buf),
		"costs about a third of the throughput for 10 s; nothing remains afterwards");
	r.full_share = 2;
	assert_string_equal(recording_advice_cost(&r, buf),
			    "costs most of the throughput for 10 s; nothing remains afterwards");
	r.full_share = NAN;
	assert_string_equal(
		recording_advice_cost(&r, buf),
		"costs an unknown part of the throughput for 10 s; nothing remains afterwards");
}

TEST(test_why)
{
	struct recording r = unknown(0.53);
	char buf[RECORDING_TEXT_BUF];

	assert_string_equal(
		recording_why_unknown(&r, "redis-server", buf),
		"Tracking frees costs 53 % of redis-server's CPU time; the limit is 25 %.");
	assert_string_equal(recording_why_unknown(&r, "", buf),
			    "Tracking frees costs 53 % of its CPU time; the limit is 25 %.");
	assert_string_equal(recording_why_unknown(&r, "a\033[2Jb", buf),
			    "Tracking frees costs 53 % of a?[2Jb's CPU time; the limit is 25 %.");
	r.full_share =
		0.075; /* over all less than the limit: that is not why, and with it frees would be lost again */
	assert_string_equal(
		recording_why_unknown(&r, "node", buf),
		"At times, tracking frees cost more than the limit of 25 %; on average it costs 7.5 %.");
	assert_string_equal(recording_advice(&r, 0, buf),
			    "heaptap record --max-overhead off -d 10s -p 6426");
	r.full_share = NAN;
	assert_string_equal(recording_why_unknown(&r, "redis-server", buf),
			    "Frees were not tracked; the limit is 25 %.");
	/* What is compared is of one kind: never a share of its CPU time beside a limit of one CPU. */
	r = unknown(0.76);
	r.limit = (struct recording_limit){ .one_cpu = 0.25 };
	r.full_one_cpu = 0.31;
	assert_string_equal(recording_why_unknown(&r, "redis-server", buf),
			    "Tracking frees costs 31 % of one CPU; the limit is 25 %.");
	r.full_one_cpu = 0.0142; /* not "costs 1 %; the limit is 1 %" */
	r.limit.one_cpu = 0.01;
	assert_string_equal(recording_why_unknown(&r, "redis-server", buf),
			    "Tracking frees costs 1.4 % of one CPU; the limit is 1 %.");
}

TEST(test_limit)
{
	struct recording_limit both = { .cpu_share = 0.05, .one_cpu = 0.01 };
	struct recording_limit cpu = { .one_cpu = 0.25 }, none = { 0 };
	char buf[RECORDING_TEXT_BUF];

	assert_string_equal(recording_limit_text(&both, buf), "5 % (or 1 % of one CPU)");
	assert_string_equal(recording_limit_text(&cpu, buf), "25 % of one CPU");
	assert_string_equal(recording_limit_text(&none, buf), "none");
}

RUN_TESTS()
