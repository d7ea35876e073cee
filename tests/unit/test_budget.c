/* SPDX-License-Identifier: MIT */
/*
 * test_budget.c - the controller against made-up processes: what it gives up, when, and that it takes it
 * back.
 *
 * A process of the simulation has work to do: so much CPU time of its own at the begin of each period, in which
 * it makes `rate` allocations and frees per second of it. It gets on by as much as its threads allow,
 * less what the probes take.
 */
#include "unit.h"

#include "base/clock.h"
#include "track/budget.h"

#define HIT_NS 500.0
#define MS NS_PER_MS
#define S NS_PER_S

static const struct budget_costs costs = { HIT_NS, 20000, 300 };
static const struct recording_limit record_limit = { 0.25, 0.25 }, serve_limit = { 0.05, 0.01 },
				    strict_limit = { 0.05, 0 };

/* The process of the test that runs. */
static struct sim {
	struct budget *budget;
	struct budget_reading now;
	double rate; /* allocations, each with its free, per second of its own work */
	double sampled; /* share of the allocations that are, at the first rate */
	double sample_ns; /* a stack */
	double thread_cnt;
	double work_ns; /* own work, at the begin of each period; INFINITY: it never waits */
	uint64_t period_ns;
	double todo_ns;
	uint64_t due_ns;
	bool grows; /* nothing is freed */
	double factor; /* of the host */
	size_t step_cnt, trial_cnt;
	/* over the whole simulation, by our own books */
	double cost_ns, cpu_ns;
} s;

/* One thread that never waits, and 50 % of whose CPU time probing everything takes. */
static void sim_open(const struct recording_limit *limit)
{
	const struct budget_options opts = { *limit, 64 << 10, &costs };

	budget_free(s.budget);
	s = (struct sim){ .rate = 1e6, .thread_cnt = 1, .work_ns = INFINITY, .factor = 1 };
	s.now.time_ns = S;
	assert_int_equal(budget_new(&opts, &s.now, &s.budget), 0);
}

static int sim_close(void **state)
{
	budget_free(s.budget);
	s.budget = NULL;
	return 0;
}

static enum budget_step step_of(void)
{
	return budget_plan(s.budget)->step;
}

/* So that probing everything takes this share of the CPU time that the process has then. */
static void set_full_share(double share)
{
	s.rate = 1e9 * share / (1 - share) / (2 * HIT_NS);
}

/* A millisecond. */
static void tick(void)
{
	const struct budget_plan *plan = budget_plan(s.budget);
	double allocs = plan->step < BUDGET_OFF;
	double frees = plan->step < BUDGET_ALLOCS && !s.grows;
	double sampled = allocs * s.sampled / pow(4, plan->coarse);
	double per_alloc = (allocs + frees) * HIT_NS + sampled * (s.sample_ns + costs.return_ns);
	double own_ns, n, cpu_ns;

	if (!isinf(s.work_ns) && s.now.time_ns >= s.due_ns) {
		s.todo_ns += s.work_ns;
		s.due_ns = s.now.time_ns + s.period_ns;
	} else if (isinf(s.work_ns)) {
		s.todo_ns = INFINITY;
	}
	own_ns = fmin(s.todo_ns, s.thread_cnt * MS / (1 + s.rate * per_alloc / 1e9));
	s.todo_ns -= isinf(s.todo_ns) ? 0 : own_ns;
	n = own_ns / 1e9 * s.rate;
	cpu_ns = own_ns + n * per_alloc;
	s.now.cpu_ns += (uint64_t)cpu_ns;
	s.now.time_ns += MS;
	s.now.alloc_cnt += (uint64_t)(n * allocs);
	s.now.free_cnt += (uint64_t)(n * frees);
	s.now.return_cnt += (uint64_t)(n * sampled);
	s.now.stack_ns += (uint64_t)(n * sampled * s.sample_ns);
	s.cost_ns += n * per_alloc;
	s.cpu_ns += cpu_ns;
}

/* As the governor does it, for a while. */
static void sim_for(uint64_t ns)
{
	for (uint64_t end = s.now.time_ns + ns; s.now.time_ns < end;) {
		bool was_trial;

		for (int i = 0; i < 100; i++)
			tick();
		was_trial = budget_plan(s.budget)->is_trial;
		if (!budget_update(s.budget, &s.now, s.factor))
			continue;
		budget_applied(s.budget, &s.now);
		if (budget_plan(s.budget)->is_trial)
			s.trial_cnt++;
		else if (!was_trial || step_of() != BUDGET_OFF)
			s.step_cnt++;
	}
}

struct used {
	double share, one_cpu;
};

/* From here on, probing everything takes this share; after a while the plan is that step. */
#define SIM_PHASE(share, ns, step)                 \
	do {                                       \
		set_full_share(share);             \
		sim_for(ns);                       \
		assert_int_equal(step_of(), step); \
	} while (0)

/* True overhead from here on, over a time. */
static struct used sim_used(uint64_t ns)
{
	double cost = s.cost_ns, cpu = s.cpu_ns;

	sim_for(ns);
	cost = s.cost_ns - cost;
	cpu = s.cpu_ns - cpu;
	return (struct used){ cpu > 0 ? cost / cpu : 0, cost / (double)ns };
}

/* From here on, after as many seconds as recordings have: what it is allowed, or up to half more. */
static void assert_keeps(const struct recording_limit *limit)
{
	const double from_cost = s.cost_ns, from_cpu = s.cpu_ns;
	const uint64_t from_ns = s.now.time_ns;

	for (int i = 0; i < 60; i++) {
		double cost, cpu, allowed;

		sim_for(2 * S);
		cost = s.cost_ns - from_cost;
		cpu = s.cpu_ns - from_cpu;
		allowed = budget_allowed_ns(limit, cpu, (double)(s.now.time_ns - from_ns));
		if (cost > 1.5 * allowed)
			fail_msg("after %d s: %.1f ms of %.1f ms CPU time, allowed are %.1f",
				 2 * (i + 1), cost / 1e6, cpu / 1e6, allowed / 1e6);
	}
}

TEST(test_costs)
{
	const struct budget_reading d = {
		.alloc_cnt = 10, .free_cnt = 5, .stepped_cnt = 5, .return_cnt = 2, .stack_ns = 1000
	};

	assert_float_equal(budget_cost_ns(&costs, &d), 10 * 500 + 5 * 20000 + 2 * 300 + 1000, 0.1);
}

TEST(test_rates)
{
	assert_int_equal(budget_rate_bytes(1, 0), 1);
	assert_int_equal(budget_rate_bytes(1, 1), 64 << 10);
	assert_int_equal(budget_rate_bytes(64 << 10, 0), 64 << 10);
	assert_int_equal(budget_rate_bytes(64 << 10, 1), 256 << 10);
	assert_int_equal(budget_rate_bytes(64 << 10, 3), 4 << 20);
}

/* The larger one of the two counts. */
TEST(test_allowed)
{
	assert_float_equal(budget_allowed_ns(&record_limit, 1000, 1000), 250, 1e-9);
	assert_float_equal(budget_allowed_ns(&record_limit, 100, 1000), 250, 1e-9);
	assert_float_equal(budget_allowed_ns(&record_limit, 2000, 1000), 500, 1e-9);
	assert_float_equal(budget_allowed_ns(&strict_limit, 0, 1000), 0, 1e-9);
	assert_true(isinf(budget_allowed_ns(&BUDGET_NO_LIMIT, 1, 1)));
}

TEST_WITH(test_cheap_is_left_alone, NULL, sim_close)
{
	sim_open(&strict_limit);
	SIM_PHASE(0.01, 60 * S, BUDGET_FULL);
	assert_float_equal(budget_now(s.budget).cpu_share, 0.01, 0.001);
	assert_true(isnan(budget_full(s.budget).cpu_share)); /* it is what is done */
}

/* No verdict before a second was looked at; then the step that fits, at once. */
TEST_WITH(test_verdict, NULL, sim_close)
{
	sim_open(&record_limit);
	SIM_PHASE(0.36, 900 * MS, BUDGET_FULL); /* allocations alone: 0.22 */
	sim_for(300 * MS);
	assert_int_equal(step_of(), BUDGET_ALLOCS);
	assert_float_equal(budget_verdict(s.budget)->full.cpu_share, 0.36, 0.01);
	assert_float_equal(budget_verdict(s.budget)->allocs.cpu_share, 0.22, 0.01);
	assert_false(budget_verdict(s.budget)->is_kill);
	/* The rate of allocations went up when frees were let go: the prediction is of its own work. */
	sim_for(20 * S);
	assert_int_equal(step_of(), BUDGET_ALLOCS);
	assert_float_equal(budget_full(s.budget).cpu_share, 0.36, 0.01);
	assert_float_equal(budget_now(s.budget).cpu_share, 0.22, 0.01);
}

/* All of the limit is there to be used, and what is a little above it is left alone. */
TEST_WITH(test_limit_is_used, NULL, sim_close)
{
	const struct recording_limit limit = { 0.40, 0.01 };

	for (double share = 0.36; share < 0.435; share += 0.01) {
		sim_open(&limit);
		SIM_PHASE(share, 30 * S, BUDGET_FULL);
		SIM_PHASE(0.55, 30 * S, BUDGET_ALLOCS); /* allocations alone: 0.38 */
	}
}

/* Four shapes of load, from cheap to nothing but allocating: what is achieved from the fifth second on, wherever in
 * a period the recording begins. */
TEST_WITH(test_shapes, NULL, sim_close)
{
	static const struct {
		double work_ms;
		uint64_t period_ms;
	} shapes[] = { { INFINITY, 0 }, { 2, 20 }, { 100, 500 }, { 100, 1000 }, { 200, 1000 } };
	static const double shares[] = { 0.03, 0.07, 0.12, 0.3, 0.45, 0.6, 0.75, 0.9, 0.97 };
	const struct recording_limit strict25 = { 0.25, 0 };
	const struct recording_limit *limits[] = { &record_limit, &serve_limit, &strict_limit,
						   &strict25 };
	static const double phases[] = { 0, 0.3, 0.84, 0.95 };

	for (size_t n = 0; n < 5 * 9 * 4 * 4; n++) {
		size_t shape = n % 5;
		double share = shares[n / 5 % 9];
		const struct recording_limit *limit = limits[n / 45 % 4];

		sim_open(limit);
		set_full_share(share);
		/* As much CPU time with the probes as was said, if it can be. */
		s.work_ns = shapes[shape].work_ms * MS * (1 - share);
		s.period_ns = shapes[shape].period_ms * MS;
		s.due_ns = s.now.time_ns + (uint64_t)(phases[n / 180] * (double)s.period_ns);
		sim_for(4 * S);
		assert_keeps(limit);
		assert_true(s.step_cnt <= 2);
	}
}

/* A server that mostly sleeps is harmed by nothing, whatever share of its little CPU time it is... */
TEST_WITH(test_floor, NULL, sim_close)
{
	for (int is_strict = 0; is_strict <= 1; is_strict++) {
		sim_open(is_strict ? &strict_limit : &serve_limit);
		set_full_share(0.5);
		s.work_ns = 0.16 * MS; /* 1.6 % of a CPU, half of it for probes */
		s.period_ns = 20 * MS;
		sim_for(60 * S);
		assert_int_equal(step_of(), is_strict ? BUDGET_OFF : BUDGET_FULL);
	}
}

/* ... unless there are so many of them that the host's limit is exceeded. */
TEST_WITH(test_host_factor, NULL, sim_close)
{
	sim_open(&serve_limit);
	set_full_share(0.5);
	s.work_ns = 0.16 * MS;
	s.period_ns = 20 * MS;
	s.factor = 0.1;
	sim_for(10 * S);
	assert_int_equal(step_of(), BUDGET_OFF);
	assert_float_equal(budget_verdict(s.budget)->limit.one_cpu, 0.001, 1e-9);
}

/* The larger one of the two is; that of the verdict, once there is one. */
TEST_WITH(test_limit_in_force, NULL, sim_close)
{
	struct recording_limit l;

	sim_open(&serve_limit); /* 15 % of a CPU: 1 % of one CPU is more than 5 % of that */
	s.work_ns = 1.5 * MS;
	s.period_ns = 10 * MS;
	set_full_share(0.01);
	sim_for(10 * S);
	assert_true(budget_limit_in_force(s.budget).one_cpu == 0.01);
	set_full_share(0.3);
	sim_for(20 * S);
	assert_true(step_of() > BUDGET_FULL);
	assert_true(budget_verdict(s.budget)->full.one_cpu > 0.01);
	s.work_ns = INFINITY; /* what has come since does not make it another one */
	sim_for(4 * S);
	l = budget_limit_in_force(s.budget);
	assert_true(l.one_cpu == 0.01 && l.cpu_share == 0);
	budget_set_limit(s.budget, &strict_limit);
	sim_for(200 * MS);
	assert_true(budget_limit_in_force(s.budget).cpu_share == 0.05);
	sim_open(&record_limit);
	s.thread_cnt = 2;
	set_full_share(0.2);
	sim_for(10 * S);
	assert_true(budget_limit_in_force(s.budget).one_cpu == 0);
}

/* Idle for 2.9 s, then 0.1 s of allocating: not judged by the burst alone. */
TEST_WITH(test_burst_alone, NULL, sim_close)
{
	sim_open(&strict_limit);
	set_full_share(0.5);
	s.work_ns = 50 * MS;
	s.period_ns = 3600 * S;
	s.due_ns = s.now.time_ns + 2900 * MS;
	sim_for(60 * S);
	assert_int_equal(s.step_cnt, 0);
}

/* One that is longer, and over when there could be a verdict. */
TEST_WITH(test_burst_is_over, NULL, sim_close)
{
	sim_open(&strict_limit);
	set_full_share(0.75);
	s.work_ns = 0.25 * 900 * MS;
	s.thread_cnt = 0.6;
	s.period_ns = 3600 * S;
	sim_for(60 * S);
	assert_int_equal(s.step_cnt, 0);
}

/* A burst of two seconds in a minute of work does not end in-use... */
TEST_WITH(test_burst_in_work, NULL, sim_close)
{
	sim_open(&record_limit);
	set_full_share(0.02);
	sim_for(30 * S);
	set_full_share(0.6);
	sim_for(2 * S);
	set_full_share(0.02);
	sim_for(30 * S);
	assert_int_equal(s.step_cnt, 0);
}

/* ... and where one does, at the very beginning, in-use comes back. */
TEST_WITH(test_burst_at_first, NULL, sim_close)
{
	sim_open(&record_limit);
	SIM_PHASE(0.4, 2 * S, BUDGET_ALLOCS);
	SIM_PHASE(0.02, 3 * S, BUDGET_ALLOCS); /* not at once */
	sim_for(12 * S);
	assert_int_equal(step_of(), BUDGET_FULL);
	assert_int_equal(s.step_cnt, 2);
}

/* 97 %: out before half a second is over. */
TEST_WITH(test_kill_switch, NULL, sim_close)
{
	sim_open(&record_limit);
	SIM_PHASE(0.97, 300 * MS, BUDGET_FULL);
	sim_for(100 * MS);
	assert_int_equal(step_of(), BUDGET_OFF);
	assert_true(budget_verdict(s.budget)->is_kill);
	assert_float_equal(budget_verdict(s.budget)->before.cpu_share, 0.97, 0.01);
}

/* Not of one that grows for a moment, of one that mostly sleeps, or where the limit allows it. */
TEST_WITH(test_no_kill, NULL, sim_close)
{
	const struct recording_limit wide = { 0.9, 0 };

	sim_open(&record_limit); /* memory is filled as well: 75 % */
	SIM_PHASE(0.75, 900 * MS, BUDGET_FULL);
	sim_open(&strict_limit); /* all of it new memory: until there is a verdict */
	s.grows = true;
	SIM_PHASE(0.97, 900 * MS, BUDGET_FULL);
	sim_for(300 * MS);
	assert_int_equal(step_of(), BUDGET_OFF);
	assert_false(budget_verdict(s.budget)->is_kill);
	sim_open(&record_limit); /* 0.3 s, then nothing any more */
	set_full_share(0.97);
	s.work_ns = 9 * MS;
	s.period_ns = 3600 * S;
	sim_for(60 * S);
	assert_int_equal(s.step_cnt, 0);
	sim_open(&wide);
	set_full_share(0.85);
	sim_for(60 * S);
	assert_int_equal(s.step_cnt, 0);
}

/* Samples cost 7 %, hits 1 %. */
TEST_WITH(test_precision_is_given_up_first, NULL, sim_close)
{
	sim_open(&serve_limit);
	s.rate = 10e3;
	s.sampled = 0.7;
	s.sample_ns = 9700;
	sim_for(4 * S);
	assert_int_equal(step_of(), BUDGET_COARSE);
	assert_true(budget_plan(s.budget)->coarse >= 1);
	assert_true(sim_used(10 * S).share < 0.05);
	assert_int_equal(s.step_cnt, 1);
}

/* A load that goes away: everything is back; and a load that comes again. */
TEST_WITH(test_up_again, NULL, sim_close)
{
	sim_open(&serve_limit);
	SIM_PHASE(0.97, 10 * S, BUDGET_OFF);
	SIM_PHASE(0.01, 60 * S, BUDGET_FULL);
	SIM_PHASE(0.97, 500 * MS, BUDGET_OFF);
}

/* A load that swings: steps become rare. */
TEST_WITH(test_hysteresis, NULL, sim_close)
{
	size_t early = 0, late = 0, before;

	sim_open(&strict_limit);
	for (int i = 0; i < 1200; i++) {
		set_full_share(i / 15 % 2 ? 0.001 : 0.09); /* 15 s each */
		before = s.step_cnt;
		sim_for(S);
		*(i < 240 ? &early : i >= 960 ? &late : &(size_t){ 0 }) += s.step_cnt - before;
	}
	assert_true(early >= 2);
	assert_true(late < early);
}

/* Off: tried again ever more rarely, and trials cost a third of the limit at most. */
TEST_WITH(test_trials, NULL, sim_close)
{
	static const double shares[] = { 0.3, 0.6, 0.97 };
	struct used used;
	size_t early;

	for (size_t i = 0; i < 3; i++) {
		sim_open(&strict_limit);
		SIM_PHASE(shares[i], 4 * S, BUDGET_OFF);
		assert_true(budget_verdict(s.budget)->retry_ns >= 5 * S);
		used = sim_used(120 * S);
		early = s.trial_cnt;
		assert_true(early >= 1);
		assert_true(used.share < 0.05 / 3);
		sim_for(600 * S);
		assert_true(s.trial_cnt > early); /* at least every 300 s */
		assert_int_equal(s.step_cnt, 1);
		assert_true(budget_full(s.budget).cpu_share > shares[i] - 0.01);
	}
}

/* A process that has gone idle is tried again as well. */
TEST_WITH(test_trial_of_idle, NULL, sim_close)
{
	sim_open(&strict_limit);
	SIM_PHASE(0.97, S, BUDGET_OFF);
	s.work_ns = s.todo_ns = 0;
	s.period_ns = S;
	sim_for(60 * S);
	assert_int_equal(step_of(), BUDGET_FULL);
}

/* A limit so low that trials are rare, and it is kept all the same. */
TEST_WITH(test_low_limit, NULL, sim_close)
{
	const struct recording_limit limit = { 0.001, 0 };

	sim_open(&limit);
	SIM_PHASE(0.9, 4 * S, BUDGET_OFF);
	assert_true(sim_used(3600 * S).share < 0.001);
	assert_true(s.trial_cnt >= 1);
}

TEST_WITH(test_no_limit, NULL, sim_close)
{
	sim_open(&BUDGET_NO_LIMIT);
	SIM_PHASE(0.97, 10 * S, BUDGET_FULL);
	assert_true(budget_now(s.budget).cpu_share > 0.9); /* measured all the same */
	assert_float_equal(budget_overall(s.budget).cpu_share, 0.97, 0.01);
}

/* The user says another limit while it runs. */
TEST_WITH(test_other_limits, NULL, sim_close)
{
	const struct recording_limit low = { 0.01, 0 };

	sim_open(&BUDGET_NO_LIMIT);
	set_full_share(0.09);
	sim_for(10 * S);
	budget_set_limit(s.budget, &strict_limit);
	sim_for(4 * S);
	assert_int_equal(step_of(), BUDGET_ALLOCS);
	budget_set_limit(s.budget, &low);
	sim_for(4 * S);
	assert_int_equal(step_of(), BUDGET_OFF);
	assert_keeps(&low);
	budget_set_limit(s.budget, &BUDGET_NO_LIMIT);
	sim_for(4 * S);
	assert_int_equal(step_of(), BUDGET_OFF);
	sim_for(30 * S);
	assert_int_equal(step_of(), BUDGET_FULL);
}

/* What is hit until the probes are out counts, and decides nothing. */
TEST(test_applied)
{
	struct budget_reading r = { .time_ns = S };
	const struct budget_options opts = { record_limit, 64 << 10, &costs };
	struct budget *b;

	assert_int_equal(budget_new(&opts, &r, &b), 0);
	assert_true(isnan(budget_overall(b).cpu_share));
	r.time_ns += 100 * MS;
	r.cpu_ns += 100 * MS;
	r.alloc_cnt += 100000;
	budget_applied(b, &r);
	assert_float_equal(budget_overall(b).cpu_share, 0.5, 1e-6);
	r.time_ns += 100 * MS;
	r.cpu_ns += 100 * MS;
	budget_end(b, &r);
	assert_float_equal(budget_overall(b).cpu_share, 0.25, 1e-6);
	assert_true(isnan(budget_settled(b).cpu_share));
	r.time_ns += BUDGET_SETTLE_NS;
	r.cpu_ns += 100 * MS;
	budget_end(b, &r);
	r.time_ns += 100 * MS;
	r.cpu_ns += 100 * MS;
	r.free_cnt += 20000;
	budget_end(b, &r);
	assert_float_equal(budget_settled(b).cpu_share, 0.1, 1e-6);
	budget_free(b);
}

/* The host's limit makes all others smaller while it is exceeded. */
/* The tap takes over from probes: soon, if they cost much, and then nothing is given up, if somebody else sees to it. */
TEST_WITH(test_tap, NULL, sim_close)
{
	sim_open(&record_limit);
	set_full_share(0.2);
	sim_for(100 * MS);
	assert_false(budget_costs(s.budget, 0.1));
	sim_for(200 * MS);
	assert_true(budget_costs(s.budget, 0.1));
	assert_false(budget_costs(s.budget, 0.3));
	sim_open(&record_limit);
	SIM_PHASE(0.9, 5 * S, BUDGET_OFF);
	budget_restart(s.budget);
	budget_applied(s.budget, &s.now);
	budget_hold(s.budget, true);
	sim_for(30 * S);
	assert_int_equal(step_of(), BUDGET_FULL);
	budget_hold(s.budget, false);
	sim_for(5 * S);
	assert_int_equal(step_of(), BUDGET_OFF);
}

TEST(test_host)
{
	double f = 1;

	for (int i = 0; i < 20; i++)
		f = budget_host_factor(f, 0.04 * f, 1, 0.02);
	assert_true(0.04 * f <= 0.02);
	for (int i = 0; i < 1000; i++)
		f = budget_host_factor(f, 0.001, 1, 0.02);
	assert_float_equal(f, 1, 1e-9);
	assert_float_equal(budget_host_factor(0.5, 100, 1, 0), 1, 1e-9); /* no limit */
}

RUN_TESTS()
