/* SPDX-License-Identifier: MIT */
/* test_governor_text.c - a step and its limit in words: the limit that was in force, and the cost as one of that. */
#include "unit.h"

#include "base/clock.h"
#include "track/governor.h"
#include "track/governor_priv.h"
#include "profile/profile.h"

static const struct budget_price full = { 0.76, 0.31 }, allocs = { 0.61, 0.27 };

static struct governor_step step_to(enum budget_step step, bool is_of_one_cpu)
{
	return (struct governor_step){
		.pid = 12,
		.after_ns = 3 * NS_PER_S,
		.plan = { .step = step },
		.rate_bytes = 64 << 10,
		.base_rate_bytes = 64 << 10,
		.verdict = { .before = full,
			     .full = full,
			     .allocs = allocs,
			     .limit = { 0.25, 0.25 },
			     .is_of_one_cpu = is_of_one_cpu,
			     .retry_ns = 9 * NS_PER_S },
	};
}

static void want_step(const struct governor_step *s, const char *words)
{
	char buf[GOVERNOR_TEXT_CAP];

	assert_string_equal(governor_step_words(s, false, buf, sizeof(buf)), words);
}

TEST(test_steps)
{
	struct governor_step s;

	s = step_to(BUDGET_ALLOCS, false);
	want_step(&s,
		  "after 3.0 s: stopped tracking frees (tracking everything costs 76 % of its CPU "
		  "time, the limit is 25 %): heap in use is unknown");
	s = step_to(BUDGET_ALLOCS, true);
	want_step(&s,
		  "after 3.0 s: stopped tracking frees (tracking everything costs 31 % of one CPU, "
		  "the limit is 25 %): heap in use is unknown");
	s = step_to(BUDGET_OFF, true);
	want_step(&s,
		  "after 3.0 s: stopped recording (recording allocations alone costs 27 % of one "
		  "CPU, the limit is 25 %); retrying in 9.0 s");
}

TEST(test_kill)
{
	struct governor_step s = step_to(BUDGET_OFF, false);

	s.verdict.is_kill = true;
	s.verdict.before = (struct budget_price){ 0.93, 0.62 };
	want_step(
		&s,
		"after 3.0 s: stopped recording at once (recording costs 93 % of its CPU time, the "
		"limit is 25 %); retrying in 9.0 s");
	s.verdict.limit.cpu_share = 0.025;
	s.verdict.given.cpu_share = 0.05;
	want_step(
		&s,
		"after 3.0 s: stopped recording at once (recording costs 93 % of its CPU time, the "
		"limit is 2.5 % (5 %, reduced because all processes together are near their limit)); retrying "
		"in 9.0 s");
	s.verdict.is_of_one_cpu = true;
	want_step(
		&s,
		"after 3.0 s: stopped recording at once (recording costs 62 % of one CPU, the limit "
		"is 25 %); retrying in 9.0 s");
}

/* A started program may have ended before somebody reads the advice. */
TEST(test_advice)
{
	char *const argv[] = { (char *)"make", (char *)"-j2", NULL };
	struct governor_step s = step_to(BUDGET_OFF, false);
	char buf[GOVERNOR_TEXT_CAP];

	s.pid = 12;
	governor_step_words(&s, true, buf, sizeof(buf));
	assert_says(buf, "; to measure it, use --tap (about 1 %");
	assert_says(buf, "), or heaptap record --max-overhead ");
	assert_says(buf, " -d 10s -p 12");
	s.program_argv = argv;
	governor_step_words(&s, true, buf, sizeof(buf));
	assert_says(buf, " -- make -j2");
	s.is_tap_refused = true;
	governor_step_words(&s, true, buf, sizeof(buf));
	assert_omits(buf, "--tap");
	assert_says(buf, "; to measure it: heaptap record --max-overhead ");
}

TEST(test_tap)
{
	const struct governor_step s = {
		.pid = 12,
		.after_ns = 400000000,
		.from = { .step = BUDGET_COARSE, .coarse = 2 },
		.is_tap = true,
		.verdict = { .before = { 0.34, 0.2 } },
	};

	want_step(&s, "after 400 ms: the tap replaces probes, which cost 34 % of its CPU time");
	assert_false(governor_step_is_down(&s));
}

static void want_cost(const struct governor_view *view, const char *words)
{
	const struct governor_record r = { .is_known = true, .view = *view };
	struct profile *p;

	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(governor_comment_record(&r, p), 0);
	assert_int_equal(p->comments.cnt, 1);
	assert_string_equal(profile_text(p, p->comments.data[0]), words);
	profile_free(p);
}

TEST(test_cost)
{
	struct governor_view v = {
		.overall = { 0.76, 0.06 },
		.settled = { 0.3, 0.02 },
		.limit = { 0.25, 0 },
	};

	want_cost(&v, "cost: 76 % of its CPU time (limit: 25 %)");
	v.step_cnt = 1;
	want_cost(
		&v,
		"cost: 76 % of its CPU time, 30 % of its CPU time after the first 4 s (limit: 25 %)");
	v.limit = (struct recording_limit){ 0, 0.25 };
	want_cost(&v,
		  "cost: 76 % of its CPU time, 6 % of one CPU, 2 % of one CPU after the first 4 s "
		  "(limit: 25 % of one CPU)");
	v.limit = BUDGET_NO_LIMIT;
	v.settled = BUDGET_PRICE_UNKNOWN;
	want_cost(&v, "cost: 76 % of its CPU time (no limit)");
	v.overall = BUDGET_PRICE_UNKNOWN;
	want_cost(&v, "cost: not known (no limit)");
}

/* Of several processes each one's limit may have been the one or the other. */
TEST(test_several)
{
	struct governor_view a = { .overall = { 0.1, 0.03 },
				   .full = { 0.4, 0.1 },
				   .cpu_ns = 1e9,
				   .limit = { 0.05, 0 } },
			     b = { .overall = { 0.2, 0.02 },
				   .full = { 0.3, 0.2 },
				   .cpu_ns = 1e9,
				   .limit = { 0, 0.01 } };
	struct governor_tally t = { 0 };
	struct recording r = RECORDING_NONE;

	governor_tally_add(&t, &a);
	governor_tally_fill(&t, 0, &r);
	assert_float_equal(r.overhead_one_cpu, 0.03, 1e-9);
	assert_true(r.limit.cpu_share == 0.05 && r.limit.one_cpu == 0);
	governor_tally_add(&t, &b);
	governor_tally_fill(&t, 0, &r);
	assert_true(isnan(r.overhead_one_cpu));
	assert_float_equal(r.full_one_cpu, 0.1, 1e-9); /* of the one with the largest share */
	assert_true(r.limit.cpu_share == 0.05 && r.limit.one_cpu == 0.01);
}

RUN_TESTS()
