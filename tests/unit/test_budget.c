/* SPDX-License-Identifier: MIT */
/*
 * test_budget.c - the controller against made-up processes: what it gives up, how fast, and that it
 * takes it back.
 *
 * A process of the simulation does `rate` allocations and frees per second of its own CPU time on
 * `thread_cnt` threads that never wait, or, when it is paced, per second of wall time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "budget/budget.h"
#include "budget/windows.h"

#define HIT_NS 500.0
#define MS NS_PER_MS

static const struct budget_costs costs = { HIT_NS, 20000, 300 };

struct sim {
	struct budget *budget;
	struct budget_reading now;
	double rate; /* allocations, each with its free */
	double sampled; /* share of the allocations that are, at the first rate */
	double sample_ns; /* a stack */
	double thread_cnt;
	double own_load; /* paced: CPU time per second that it needs by itself; 0: never waits */
	double alloc_rest; /* fractions of events */
	struct windows windows;
	bool is_windowed, is_in;
	uint64_t closes_ns;
	struct budget_reading opened, closed;
	/* over the whole simulation, by our own books */
	double cost_ns, cpu_ns;
};

static void sim_open(struct sim *s, double limit, double rate, double thread_cnt)
{
	const struct budget_options opts = { limit, 64 << 10, false, &costs };

	memset(s, 0, sizeof(*s));
	s->rate = rate;
	s->thread_cnt = thread_cnt;
	s->now.time_ns = NS_PER_S;
	assert_int_equal(budget_new(&opts, &s->now, &s->budget), 0);
}

/* What is probed at this moment: share of the frees, and of the allocations. */
static void probed(const struct sim *s, double *allocs, double *frees)
{
	enum budget_step step = budget_plan(s->budget)->step;

	*frees = step < BUDGET_ALLOCS;
	*allocs = step < BUDGET_WINDOWS || (step == BUDGET_WINDOWS && s->is_in);
}

/* A stretch of time in which nothing changes. */
static void sim_run(struct sim *s, uint64_t ns)
{
	double wall = (double)ns, allocs, frees, sampled, per_alloc, n, own_ns;
	const struct budget_plan *plan = budget_plan(s->budget);

	probed(s, &allocs, &frees);
	sampled = allocs * s->sampled / pow(4, plan->coarse);
	per_alloc = (allocs + frees) * HIT_NS + sampled * (s->sample_ns + costs.return_ns);
	own_ns = 1e9 / s->rate; /* between two allocations */
	if (s->own_load > 0) {
		n = wall / 1e9 * s->rate;
		s->now.cpu_ns += (uint64_t)(wall * s->own_load + n * per_alloc);
		s->cpu_ns += wall * s->own_load + n * per_alloc;
	} else {
		n = s->thread_cnt * wall / (own_ns + per_alloc);
		s->now.cpu_ns += (uint64_t)(s->thread_cnt * wall);
		s->cpu_ns += s->thread_cnt * wall;
	}
	s->now.time_ns += ns;
	s->now.alloc_cnt += (uint64_t)(n * allocs);
	s->now.free_cnt += (uint64_t)(n * frees);
	s->now.return_cnt += (uint64_t)(n * sampled);
	s->now.stack_ns += (uint64_t)(n * sampled * s->sample_ns);
	s->cost_ns += n * per_alloc;
}

static void sim_windows(struct sim *s, uint64_t ns)
{
	const struct windows_stretch none = { 0 };
	struct windows_stretch in = { 0 };
	struct budget_reading d, all;

	if (!s->is_windowed) {
		s->closed = s->now;
		windows_start(&s->windows, s->now.time_ns, budget_plan(s->budget)->duty, 7, &none);
		s->is_windowed = true;
	}
	for (uint64_t end = s->now.time_ns + ns; s->now.time_ns < end;) {
		uint64_t next = s->is_in ? s->closes_ns : s->windows.open_ns;

		if (next > s->now.time_ns)
			sim_run(s, next < end ? next - s->now.time_ns : end - s->now.time_ns);
		if (s->now.time_ns < next)
			continue;
		if (!s->is_in) {
			s->opened = s->now;
			s->closes_ns = s->now.time_ns + s->windows.window_ns;
			s->is_in = true;
			continue;
		}
		s->is_in = false;
		d = budget_between(&s->opened, &s->now);
		all = budget_between(&s->closed, &s->now);
		in.wall_ns = (double)d.time_ns;
		budget_saw_window(s->budget, &d, &all);
		s->closed = s->now;
		windows_set_duty(&s->windows, budget_plan(s->budget)->duty);
		windows_close(&s->windows, s->now.time_ns, &in, &none);
	}
}

/* As the governor does it, for a while. */
static void sim_for(struct sim *s, uint64_t ns)
{
	for (uint64_t end = s->now.time_ns + ns; s->now.time_ns < end;) {
		if (budget_plan(s->budget)->step == BUDGET_WINDOWS) {
			sim_windows(s, BUDGET_INTERVAL_NS);
		} else {
			s->is_windowed = s->is_in = false;
			sim_run(s, BUDGET_INTERVAL_NS);
		}
		budget_update(s->budget, &s->now, 1);
	}
}

/* True overhead from here on, over a time. */
static double sim_share(struct sim *s, uint64_t ns)
{
	double cost = s->cost_ns, cpu = s->cpu_ns;

	sim_for(s, ns);
	return (s->cost_ns - cost) / (s->cpu_ns - cpu);
}

static enum budget_step step_of(const struct sim *s)
{
	return budget_plan(s->budget)->step;
}

static void test_costs(void **state)
{
	const struct budget_reading d = {
		.alloc_cnt = 10, .free_cnt = 5, .stepped_cnt = 5, .return_cnt = 2, .stack_ns = 1000
	};

	(void)state;
	assert_float_equal(budget_cost_ns(&costs, &d), 10 * 500 + 5 * 20000 + 2 * 300 + 1000, 0.1);
}

static void test_rates(void **state)
{
	(void)state;
	assert_int_equal(budget_rate_bytes(1, 0), 1);
	assert_int_equal(budget_rate_bytes(1, 1), 64 << 10);
	assert_int_equal(budget_rate_bytes(64 << 10, 0), 64 << 10);
	assert_int_equal(budget_rate_bytes(64 << 10, 1), 256 << 10);
	assert_int_equal(budget_rate_bytes(64 << 10, 3), 4 << 20);
}

/* 10 000 pairs a second cost 1 %. */
static void test_cheap_is_left_alone(void **state)
{
	struct sim s;

	(void)state;
	sim_open(&s, 0.05, 10e3, 1);
	sim_for(&s, 60 * NS_PER_S);
	assert_int_equal(step_of(&s), BUDGET_FULL);
	assert_in_range(budget_share(s.budget) * 1e4, 95, 105);
	budget_free(s.budget);
}

/* Two threads that do nothing but allocate, 20 ns a pair: below the limit within 2 s, and for good. */
static void test_tight_loop(void **state)
{
	struct sim s;

	(void)state;
	sim_open(&s, 0.05, 50e6, 2);
	sim_for(&s, 300 * MS);
	assert_int_equal(step_of(&s), BUDGET_WINDOWS);
	assert_true(budget_was_killed(s.budget));
	sim_for(&s, 1700 * MS);
	for (int i = 0; i < 20; i++) {
		assert_true(sim_share(&s, 3 * NS_PER_S) < 0.05);
		assert_int_equal(step_of(&s), BUDGET_WINDOWS);
	}
	/* The limit is used, too. */
	assert_true(sim_share(&s, 20 * NS_PER_S) > 0.02);
	assert_true(budget_share_overall(s.budget) < 0.05);
	budget_free(s.budget);
}

/* The kill switch needs two intervals: out within half a second. */
static void test_kill_switch(void **state)
{
	struct sim s;

	(void)state;
	sim_open(&s, 0.05, 1e6, 1);
	sim_for(&s, BUDGET_INTERVAL_NS);
	assert_int_equal(step_of(&s), BUDGET_FULL);
	sim_for(&s, BUDGET_INTERVAL_NS);
	assert_int_equal(step_of(&s), BUDGET_WINDOWS);
	assert_true(budget_was_killed(s.budget));
	budget_free(s.budget);
}

/* 8 %, of which frees are half. */
static void test_frees_are_given_up(void **state)
{
	struct sim s;

	(void)state;
	sim_open(&s, 0.05, 66e3, 1);
	sim_for(&s, 2 * NS_PER_S);
	assert_int_equal(step_of(&s), BUDGET_ALLOCS);
	assert_false(budget_was_killed(s.budget));
	sim_for(&s, 60 * NS_PER_S); /* what would be too much again is not tried */
	assert_int_equal(step_of(&s), BUDGET_ALLOCS);
	assert_true(sim_share(&s, 10 * NS_PER_S) < 0.05);
	budget_free(s.budget);
}

/* Samples cost 7 %, hits 1 %. */
static void test_precision_is_given_up_first(void **state)
{
	struct sim s;

	(void)state;
	sim_open(&s, 0.05, 10e3, 1);
	s.sampled = 0.7;
	s.sample_ns = 9700;
	sim_for(&s, 2 * NS_PER_S);
	assert_int_equal(step_of(&s), BUDGET_COARSE);
	assert_true(budget_plan(s.budget)->coarse >= 1);
	assert_true(sim_share(&s, 10 * NS_PER_S) < 0.05);
	budget_free(s.budget);
}

/* A load that goes away: everything is back, one step at a time; and a load that comes again. */
static void test_up_again(void **state)
{
	struct sim s;

	(void)state;
	sim_open(&s, 0.05, 50e6, 2);
	sim_for(&s, 10 * NS_PER_S);
	assert_int_equal(step_of(&s), BUDGET_WINDOWS);
	s.rate = 1000;
	sim_for(&s, 4 * NS_PER_S);
	assert_true(step_of(&s) != BUDGET_FULL); /* not at once */
	sim_for(&s, 60 * NS_PER_S);
	assert_int_equal(step_of(&s), BUDGET_FULL);
	s.rate = 50e6;
	sim_for(&s, 300 * MS);
	assert_int_equal(step_of(&s), BUDGET_WINDOWS);
	budget_free(s.budget);
}

/* A load that swings: steps become rare. */
static void test_hysteresis(void **state)
{
	struct sim s;
	enum budget_step before;
	int early = 0, late = 0;

	(void)state;
	sim_open(&s, 0.05, 1000, 1);
	for (int i = 0; i < 1200; i++) {
		s.rate = i / 15 % 2 ? 1000 : 90e3; /* 15 s each */
		before = step_of(&s);
		sim_for(&s, NS_PER_S);
		if (step_of(&s) != before)
			*(i < 240 ? &early : i >= 960 ? &late : &(int){ 0 }) += 1;
	}
	assert_true(early >= 2);
	assert_true(late < early);
	budget_free(s.budget);
}

/* A mostly idle process: 1 000 pairs a second, and half of its 2 ms a second is nobody's concern... */
static void test_small_costs_are_left_alone(void **state)
{
	struct sim s;

	(void)state;
	sim_open(&s, 0.05, 1000, 1);
	s.own_load = 0.001;
	sim_for(&s, 30 * NS_PER_S);
	assert_true(budget_share(s.budget) > 0.3);
	assert_int_equal(step_of(&s), BUDGET_FULL);
	budget_free(s.budget);
}

/* ... unless there are so many of them that the host's limit is exceeded. */
static void test_small_costs_of_many(void **state)
{
	struct sim s;

	(void)state;
	sim_open(&s, 0.05, 1000, 1);
	s.own_load = 0.001;
	for (int i = 0; i < 100; i++) {
		sim_run(&s, BUDGET_INTERVAL_NS);
		budget_update(s.budget, &s.now, 0.1);
	}
	assert_int_not_equal(step_of(&s), BUDGET_FULL);
	budget_free(s.budget);
}

/* A limit that not even the shortest windows keep. */
static void test_out(void **state)
{
	struct sim s;

	(void)state;
	sim_open(&s, 0.0002, 50e6, 2);
	sim_for(&s, 120 * NS_PER_S);
	assert_int_equal(step_of(&s), BUDGET_OUT);
	budget_free(s.budget);
}

/* Where probes cannot be taken out fast: all or nothing, and rarely tried again. */
static void test_no_windows(void **state)
{
	const struct budget_options opts = { 0.05, 64 << 10, true, &costs };
	struct sim s;

	(void)state;
	sim_open(&s, 0.05, 50e6, 2);
	budget_free(s.budget);
	assert_int_equal(budget_new(&opts, &s.now, &s.budget), 0);
	sim_for(&s, 300 * MS);
	assert_int_equal(step_of(&s), BUDGET_OUT);
	assert_true(sim_share(&s, 600 * NS_PER_S) < 0.05);
	s.rate = 1000;
	sim_for(&s, 600 * NS_PER_S);
	assert_int_equal(step_of(&s), BUDGET_FULL);
	budget_free(s.budget);
}

static void test_no_limit(void **state)
{
	struct sim s;

	(void)state;
	sim_open(&s, 0, 50e6, 2);
	sim_for(&s, 10 * NS_PER_S);
	assert_int_equal(step_of(&s), BUDGET_FULL);
	assert_true(budget_share(s.budget) > 0.9); /* measured all the same */
	budget_free(s.budget);
}

/* The user says another limit while it runs. */
static void test_other_limits(void **state)
{
	struct sim s;

	(void)state;
	sim_open(&s, 0, 50e6, 2);
	sim_for(&s, 10 * NS_PER_S);
	budget_set_limit(s.budget, 0.05);
	sim_for(&s, 2 * NS_PER_S);
	assert_int_equal(step_of(&s), BUDGET_WINDOWS);
	assert_true(sim_share(&s, 10 * NS_PER_S) < 0.05);
	budget_set_limit(s.budget, 0.01);
	sim_for(&s, 5 * NS_PER_S);
	assert_true(sim_share(&s, 20 * NS_PER_S) < 0.01);
	budget_set_limit(s.budget, 0); /* everything is back, one step after the other */
	sim_for(&s, 4 * NS_PER_S);
	assert_true(step_of(&s) != BUDGET_FULL);
	sim_for(&s, 30 * NS_PER_S);
	assert_int_equal(step_of(&s), BUDGET_FULL);
	sim_for(&s, 30 * NS_PER_S);
	assert_int_equal(step_of(&s), BUDGET_FULL);
	budget_free(s.budget);
}

/* The host's limit makes all others smaller while it is exceeded. */
static void test_host(void **state)
{
	double f = 1;

	(void)state;
	for (int i = 0; i < 20; i++)
		f = budget_host_factor(f, 0.04 * f, 1, 0.02);
	assert_true(0.04 * f <= 0.02);
	for (int i = 0; i < 1000; i++)
		f = budget_host_factor(f, 0.001, 1, 0.02);
	assert_float_equal(f, 1, 1e-9);
	assert_float_equal(budget_host_factor(0.5, 100, 1, 0), 1, 1e-9); /* no limit */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_costs),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_cheap_is_left_alone),
		cmocka_unit_test(test_tight_loop),
		cmocka_unit_test(test_kill_switch),
		cmocka_unit_test(test_frees_are_given_up),
		cmocka_unit_test(test_precision_is_given_up_first),
		cmocka_unit_test(test_up_again),
		cmocka_unit_test(test_hysteresis),
		cmocka_unit_test(test_small_costs_are_left_alone),
		cmocka_unit_test(test_small_costs_of_many),
		cmocka_unit_test(test_out),
		cmocka_unit_test(test_no_windows),
		cmocka_unit_test(test_no_limit),
		cmocka_unit_test(test_other_limits),
		cmocka_unit_test(test_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
