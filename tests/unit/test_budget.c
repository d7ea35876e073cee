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

struct sim {
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
};

/* One thread that never waits, and 50 % of whose CPU time probing everything takes. */
static void sim_open(struct sim *s, const struct recording_limit *limit)
{
	const struct budget_options opts = { *limit, 64 << 10, &costs };

	*s = (struct sim){ .rate = 1e6, .thread_cnt = 1, .work_ns = INFINITY, .factor = 1 };
	s->now.time_ns = S;
	assert_int_equal(budget_new(&opts, &s->now, &s->budget), 0);
}

static enum budget_step step_of(const struct sim *s)
{
	return budget_plan(s->budget)->step;
}

/* So that probing everything takes this share of the CPU time that the process has then. */
static void set_full_share(struct sim *s, double share)
{
	s->rate = 1e9 * share / (1 - share) / (2 * HIT_NS);
}

/* A millisecond. */
static void tick(struct sim *s)
{
	const struct budget_plan *plan = budget_plan(s->budget);
	double allocs = plan->step < BUDGET_OFF;
	double frees = plan->step < BUDGET_ALLOCS && !s->grows;
	double sampled = allocs * s->sampled / pow(4, plan->coarse);
	double per_alloc = (allocs + frees) * HIT_NS + sampled * (s->sample_ns + costs.return_ns);
	double own_ns, n, cpu_ns;

	if (!isinf(s->work_ns) && s->now.time_ns >= s->due_ns) {
		s->todo_ns += s->work_ns;
		s->due_ns = s->now.time_ns + s->period_ns;
	} else if (isinf(s->work_ns)) {
		s->todo_ns = INFINITY;
	}
	own_ns = fmin(s->todo_ns, s->thread_cnt * MS / (1 + s->rate * per_alloc / 1e9));
	s->todo_ns -= isinf(s->todo_ns) ? 0 : own_ns;
	n = own_ns / 1e9 * s->rate;
	cpu_ns = own_ns + n * per_alloc;
	s->now.cpu_ns += (uint64_t)cpu_ns;
	s->now.time_ns += MS;
	s->now.alloc_cnt += (uint64_t)(n * allocs);
	s->now.free_cnt += (uint64_t)(n * frees);
	s->now.return_cnt += (uint64_t)(n * sampled);
	s->now.stack_ns += (uint64_t)(n * sampled * s->sample_ns);
	s->cost_ns += n * per_alloc;
	s->cpu_ns += cpu_ns;
}

/* As the governor does it, for a while. */
static void sim_for(struct sim *s, uint64_t ns)
{
	for (uint64_t end = s->now.time_ns + ns; s->now.time_ns < end;) {
		bool was_trial;

		for (int i = 0; i < 100; i++)
			tick(s);
		was_trial = budget_plan(s->budget)->is_trial;
		if (!budget_update(s->budget, &s->now, s->factor))
			continue;
		budget_applied(s->budget, &s->now);
		if (budget_plan(s->budget)->is_trial)
			s->trial_cnt++;
		else if (!was_trial || step_of(s) != BUDGET_OFF)
			s->step_cnt++;
	}
}

struct used {
	double share, one_cpu;
};

/* True overhead from here on, over a time. */
static struct used sim_used(struct sim *s, uint64_t ns)
{
	double cost = s->cost_ns, cpu = s->cpu_ns;

	sim_for(s, ns);
	cost = s->cost_ns - cost;
	cpu = s->cpu_ns - cpu;
	return (struct used){ cpu > 0 ? cost / cpu : 0, cost / (double)ns };
}

/* From here on, after as many seconds as recordings have: what it is allowed, or up to half more. */
static void assert_keeps(struct sim *s, const struct recording_limit *limit)
{
	const double from_cost = s->cost_ns, from_cpu = s->cpu_ns;
	const uint64_t from_ns = s->now.time_ns;

	for (int i = 0; i < 60; i++) {
		double cost, cpu, allowed;

		sim_for(s, 2 * S);
		cost = s->cost_ns - from_cost;
		cpu = s->cpu_ns - from_cpu;
		allowed = budget_allowed_ns(limit, cpu, (double)(s->now.time_ns - from_ns));
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

TEST(test_cheap_is_left_alone)
{
	struct sim s;

	sim_open(&s, &strict_limit);
	set_full_share(&s, 0.01);
	sim_for(&s, 60 * S);
	assert_int_equal(step_of(&s), BUDGET_FULL);
	assert_float_equal(budget_now(s.budget).cpu_share, 0.01, 0.001);
	assert_true(isnan(budget_full(s.budget).cpu_share)); /* it is what is done */
	budget_free(s.budget);
}

/* No verdict before a second was looked at; then the step that fits, at once. */
TEST(test_verdict)
{
	struct sim s;

	sim_open(&s, &record_limit);
	set_full_share(&s, 0.36); /* allocations alone: 0.22 */
	sim_for(&s, 900 * MS);
	assert_int_equal(step_of(&s), BUDGET_FULL);
	sim_for(&s, 300 * MS);
	assert_int_equal(step_of(&s), BUDGET_ALLOCS);
	assert_float_equal(budget_verdict(s.budget)->full.cpu_share, 0.36, 0.01);
	assert_float_equal(budget_verdict(s.budget)->allocs.cpu_share, 0.22, 0.01);
	assert_false(budget_verdict(s.budget)->is_kill);
	/* The rate of allocations went up when frees were let go: the prediction is of its own work. */
	sim_for(&s, 20 * S);
	assert_int_equal(step_of(&s), BUDGET_ALLOCS);
	assert_float_equal(budget_full(s.budget).cpu_share, 0.36, 0.01);
	assert_float_equal(budget_now(s.budget).cpu_share, 0.22, 0.01);
	budget_free(s.budget);
}

/* All of the limit is there to be used, and what is a little above it is left alone. */
TEST(test_limit_is_used)
{
	const struct recording_limit limit = { 0.40, 0.01 };

	for (double share = 0.36; share < 0.435; share += 0.01) {
		struct sim s;

		sim_open(&s, &limit);
		set_full_share(&s, share);
		sim_for(&s, 30 * S);
		assert_int_equal(step_of(&s), BUDGET_FULL);
		set_full_share(&s, 0.55); /* allocations alone: 0.38 */
		sim_for(&s, 30 * S);
		assert_int_equal(step_of(&s), BUDGET_ALLOCS);
		budget_free(s.budget);
	}
}

/* Four shapes of load, from cheap to nothing but allocating: what is achieved from the fifth second on, wherever in
 * a period the recording begins. */
TEST(test_shapes)
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
		struct sim s;

		sim_open(&s, limit);
		set_full_share(&s, share);
		/* As much CPU time with the probes as was said, if it can be. */
		s.work_ns = shapes[shape].work_ms * MS * (1 - share);
		s.period_ns = shapes[shape].period_ms * MS;
		s.due_ns = s.now.time_ns + (uint64_t)(phases[n / 180] * (double)s.period_ns);
		sim_for(&s, 4 * S);
		assert_keeps(&s, limit);
		assert_true(s.step_cnt <= 2);
		budget_free(s.budget);
	}
}

/* A server that mostly sleeps is harmed by nothing, whatever share of its little CPU time it is... */
TEST(test_floor)
{
	struct sim s;

	for (int is_strict = 0; is_strict <= 1; is_strict++) {
		sim_open(&s, is_strict ? &strict_limit : &serve_limit);
		set_full_share(&s, 0.5);
		s.work_ns = 0.16 * MS; /* 1.6 % of a CPU, half of it for probes */
		s.period_ns = 20 * MS;
		sim_for(&s, 60 * S);
		assert_int_equal(step_of(&s), is_strict ? BUDGET_OFF : BUDGET_FULL);
		budget_free(s.budget);
	}
}

/* ... unless there are so many of them that the host's limit is exceeded. */
TEST(test_host_factor)
{
	struct sim s;

	sim_open(&s, &serve_limit);
	set_full_share(&s, 0.5);
	s.work_ns = 0.16 * MS;
	s.period_ns = 20 * MS;
	s.factor = 0.1;
	sim_for(&s, 10 * S);
	assert_int_equal(step_of(&s), BUDGET_OFF);
	assert_float_equal(budget_verdict(s.budget)->limit.one_cpu, 0.001, 1e-9);
	budget_free(s.budget);
}

/* The larger one of the two is; that of the verdict, once there is one. */
TEST(test_limit_in_force)
{
	struct recording_limit l;
	struct sim s;

	sim_open(&s, &serve_limit); /* 15 % of a CPU: 1 % of one CPU is more than 5 % of that */
	s.work_ns = 1.5 * MS;
	s.period_ns = 10 * MS;
	set_full_share(&s, 0.01);
	sim_for(&s, 10 * S);
	assert_true(budget_limit_in_force(s.budget).one_cpu == 0.01);
	set_full_share(&s, 0.3);
	sim_for(&s, 20 * S);
	assert_true(step_of(&s) > BUDGET_FULL);
	assert_true(budget_verdict(s.budget)->full.one_cpu > 0.01);
	s.work_ns = INFINITY; /* what has come since does not make it another one */
	sim_for(&s, 4 * S);
	l = budget_limit_in_force(s.budget);
	assert_true(l.one_cpu == 0.01 && l.cpu_share == 0);
	budget_set_limit(s.budget, &strict_limit);
	sim_for(&s, 200 * MS);
	assert_true(budget_limit_in_force(s.budget).cpu_share == 0.05);
	budget_free(s.budget);
	sim_open(&s, &record_limit);
	s.thread_cnt = 2;
	set_full_share(&s, 0.2);
	sim_for(&s, 10 * S);
	assert_true(budget_limit_in_force(s.budget).one_cpu == 0);
	budget_free(s.budget);
}

/* Idle for 2.9 s, then 0.1 s of allocating: not judged by the burst alone. */
TEST(test_burst_alone)
{
	struct sim s;

	sim_open(&s, &strict_limit);
	set_full_share(&s, 0.5);
	s.work_ns = 50 * MS;
	s.period_ns = 3600 * S;
	s.due_ns = s.now.time_ns + 2900 * MS;
	sim_for(&s, 60 * S);
	assert_int_equal(s.step_cnt, 0);
	budget_free(s.budget);
}

/* One that is longer, and over when there could be a verdict. */
TEST(test_burst_is_over)
{
	struct sim s;

	sim_open(&s, &strict_limit);
	set_full_share(&s, 0.75);
	s.work_ns = 0.25 * 900 * MS;
	s.thread_cnt = 0.6;
	s.period_ns = 3600 * S;
	sim_for(&s, 60 * S);
	assert_int_equal(s.step_cnt, 0);
	budget_free(s.budget);
}

/* A burst of two seconds in a minute of work does not end in-use... */
TEST(test_burst_in_work)
{
	struct sim s;

	sim_open(&s, &record_limit);
	set_full_share(&s, 0.02);
	sim_for(&s, 30 * S);
	set_full_share(&s, 0.6);
	sim_for(&s, 2 * S);
	set_full_share(&s, 0.02);
	sim_for(&s, 30 * S);
	assert_int_equal(s.step_cnt, 0);
	budget_free(s.budget);
}

/* ... and where one does, at the very beginning, in-use comes back. */
TEST(test_burst_at_first)
{
	struct sim s;

	sim_open(&s, &record_limit);
	set_full_share(&s, 0.4);
	sim_for(&s, 2 * S);
	assert_int_equal(step_of(&s), BUDGET_ALLOCS);
	set_full_share(&s, 0.02);
	sim_for(&s, 3 * S);
	assert_int_equal(step_of(&s), BUDGET_ALLOCS); /* not at once */
	sim_for(&s, 12 * S);
	assert_int_equal(step_of(&s), BUDGET_FULL);
	assert_int_equal(s.step_cnt, 2);
	budget_free(s.budget);
}

/* 97 %: out before half a second is over. */
TEST(test_kill_switch)
{
	struct sim s;

	sim_open(&s, &record_limit);
	set_full_share(&s, 0.97);
	sim_for(&s, 300 * MS);
	assert_int_equal(step_of(&s), BUDGET_FULL);
	sim_for(&s, 100 * MS);
	assert_int_equal(step_of(&s), BUDGET_OFF);
	assert_true(budget_verdict(s.budget)->is_kill);
	assert_float_equal(budget_verdict(s.budget)->before.cpu_share, 0.97, 0.01);
	budget_free(s.budget);
}

/* Not of one that grows for a moment, of one that mostly sleeps, or where the limit allows it. */
TEST(test_no_kill)
{
	const struct recording_limit wide = { 0.9, 0 };
	struct sim s;

	sim_open(&s, &record_limit); /* memory is filled as well: 75 % */
	set_full_share(&s, 0.75);
	sim_for(&s, 900 * MS);
	assert_int_equal(step_of(&s), BUDGET_FULL);
	budget_free(s.budget);

	sim_open(&s, &strict_limit); /* all of it new memory: until there is a verdict */
	s.grows = true;
	set_full_share(&s, 0.97);
	sim_for(&s, 900 * MS);
	assert_int_equal(step_of(&s), BUDGET_FULL);
	sim_for(&s, 300 * MS);
	assert_int_equal(step_of(&s), BUDGET_OFF);
	assert_false(budget_verdict(s.budget)->is_kill);
	budget_free(s.budget);

	sim_open(&s, &record_limit); /* 0.3 s, then nothing any more */
	set_full_share(&s, 0.97);
	s.work_ns = 9 * MS;
	s.period_ns = 3600 * S;
	sim_for(&s, 60 * S);
	assert_int_equal(s.step_cnt, 0);
	budget_free(s.budget);

	sim_open(&s, &wide);
	set_full_share(&s, 0.85);
	sim_for(&s, 60 * S);
	assert_int_equal(s.step_cnt, 0);
	budget_free(s.budget);
}

/* Samples cost 7 %, hits 1 %. */
TEST(test_precision_is_given_up_first)
{
	struct sim s;

	sim_open(&s, &serve_limit);
	s.rate = 10e3;
	s.sampled = 0.7;
	s.sample_ns = 9700;
	sim_for(&s, 4 * S);
	assert_int_equal(step_of(&s), BUDGET_COARSE);
	assert_true(budget_plan(s.budget)->coarse >= 1);
	assert_true(sim_used(&s, 10 * S).share < 0.05);
	assert_int_equal(s.step_cnt, 1);
	budget_free(s.budget);
}

/* A load that goes away: everything is back; and a load that comes again. */
TEST(test_up_again)
{
	struct sim s;

	sim_open(&s, &serve_limit);
	set_full_share(&s, 0.97);
	sim_for(&s, 10 * S);
	assert_int_equal(step_of(&s), BUDGET_OFF);
	set_full_share(&s, 0.01);
	sim_for(&s, 60 * S);
	assert_int_equal(step_of(&s), BUDGET_FULL);
	set_full_share(&s, 0.97);
	sim_for(&s, 500 * MS);
	assert_int_equal(step_of(&s), BUDGET_OFF);
	budget_free(s.budget);
}

/* A load that swings: steps become rare. */
TEST(test_hysteresis)
{
	size_t early = 0, late = 0, before;
	struct sim s;

	sim_open(&s, &strict_limit);
	for (int i = 0; i < 1200; i++) {
		set_full_share(&s, i / 15 % 2 ? 0.001 : 0.09); /* 15 s each */
		before = s.step_cnt;
		sim_for(&s, S);
		*(i < 240 ? &early : i >= 960 ? &late : &(size_t){ 0 }) += s.step_cnt - before;
	}
	assert_true(early >= 2);
	assert_true(late < early);
	budget_free(s.budget);
}

/* Off: tried again ever more rarely, and trials cost a third of the limit at most. */
TEST(test_trials)
{
	static const double shares[] = { 0.3, 0.6, 0.97 };
	struct used used;
	struct sim s;
	size_t early;

	for (size_t i = 0; i < 3; i++) {
		sim_open(&s, &strict_limit);
		set_full_share(&s, shares[i]);
		sim_for(&s, 4 * S);
		assert_int_equal(step_of(&s), BUDGET_OFF);
		assert_true(budget_verdict(s.budget)->retry_ns >= 5 * S);
		used = sim_used(&s, 120 * S);
		early = s.trial_cnt;
		assert_true(early >= 1);
		assert_true(used.share < 0.05 / 3);
		sim_for(&s, 600 * S);
		assert_true(s.trial_cnt > early); /* at least every 300 s */
		assert_int_equal(s.step_cnt, 1);
		assert_true(budget_full(s.budget).cpu_share > shares[i] - 0.01);
		budget_free(s.budget);
	}
}

/* A process that has gone idle is tried again as well. */
TEST(test_trial_of_idle)
{
	struct sim s;

	sim_open(&s, &strict_limit);
	set_full_share(&s, 0.97);
	sim_for(&s, S);
	assert_int_equal(step_of(&s), BUDGET_OFF);
	s.work_ns = s.todo_ns = 0;
	s.period_ns = S;
	sim_for(&s, 60 * S);
	assert_int_equal(step_of(&s), BUDGET_FULL);
	budget_free(s.budget);
}

/* A limit so low that trials are rare, and it is kept all the same. */
TEST(test_low_limit)
{
	const struct recording_limit limit = { 0.001, 0 };
	struct sim s;

	sim_open(&s, &limit);
	set_full_share(&s, 0.9);
	sim_for(&s, 4 * S);
	assert_int_equal(step_of(&s), BUDGET_OFF);
	assert_true(sim_used(&s, 3600 * S).share < 0.001);
	assert_true(s.trial_cnt >= 1);
	budget_free(s.budget);
}

TEST(test_no_limit)
{
	struct sim s;

	sim_open(&s, &BUDGET_NO_LIMIT);
	set_full_share(&s, 0.97);
	sim_for(&s, 10 * S);
	assert_int_equal(step_of(&s), BUDGET_FULL);
	assert_true(budget_now(s.budget).cpu_share > 0.9); /* measured all the same */
	assert_float_equal(budget_overall(s.budget).cpu_share, 0.97, 0.01);
	budget_free(s.budget);
}

/* The user says another limit while it runs. */
TEST(test_other_limits)
{
	const struct recording_limit low = { 0.01, 0 };
	struct sim s;

	sim_open(&s, &BUDGET_NO_LIMIT);
	set_full_share(&s, 0.09);
	sim_for(&s, 10 * S);
	budget_set_limit(s.budget, &strict_limit);
	sim_for(&s, 4 * S);
	assert_int_equal(step_of(&s), BUDGET_ALLOCS);
	budget_set_limit(s.budget, &low);
	sim_for(&s, 4 * S);
	assert_int_equal(step_of(&s), BUDGET_OFF);
	assert_keeps(&s, &low);
	budget_set_limit(s.budget, &BUDGET_NO_LIMIT);
	sim_for(&s, 4 * S);
	assert_int_equal(step_of(&s), BUDGET_OFF);
	sim_for(&s, 30 * S);
	assert_int_equal(step_of(&s), BUDGET_FULL);
	budget_free(s.budget);
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
TEST(test_tap)
{
	struct sim s;

	sim_open(&s, &record_limit);
	set_full_share(&s, 0.2);
	sim_for(&s, 100 * MS);
	assert_false(budget_costs(s.budget, 0.1));
	sim_for(&s, 200 * MS);
	assert_true(budget_costs(s.budget, 0.1));
	assert_false(budget_costs(s.budget, 0.3));
	budget_free(s.budget);

	sim_open(&s, &record_limit);
	set_full_share(&s, 0.9);
	sim_for(&s, 5 * S);
	assert_int_equal(step_of(&s), BUDGET_OFF);
	budget_restart(s.budget);
	budget_applied(s.budget, &s.now);
	budget_hold(s.budget, true);
	sim_for(&s, 30 * S);
	assert_int_equal(step_of(&s), BUDGET_FULL);
	budget_hold(s.budget, false);
	sim_for(&s, 5 * S);
	assert_int_equal(step_of(&s), BUDGET_OFF);
	budget_free(s.budget);
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
