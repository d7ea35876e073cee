/* SPDX-License-Identifier: MIT */
/*
 * test_windows.c - what is seen through windows is, scaled, what there was, whatever the program does when and
 * however the probes hold it up.
 *
 * Programs of the simulation take some time of their own, or of others', for each allocation. Each seed
 * draws other windows; the mean of the estimates must be near the truth, and so must be each of them.
 * Probes take time to come and go.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <math.h>

#include <cmocka.h>

#include "base/clock.h"
#include "budget/windows.h"

#define STEP_NS 200000ULL /* of the simulation */
#define TICK_NS 4000000ULL
#define SEEDS 40
#define RUN_NS (20 * NS_PER_S)

/* Allocations per second of an unprobed program that is always busy, or of its work that comes in. */
typedef double (*load_fn)(double t);

static double steady(double t)
{
	(void)t;
	return 100000;
}

/* Periods near those of the windows. */
static double wave(double t)
{
	return 100000 * (1 + sin(2 * M_PI * t / 0.25)) + 1;
}

static double bursts(double t)
{
	return fmod(t, 1.0) < 0.1 ? 1000000 : 1000;
}

/* Most at the end. */
static double ramp(double t)
{
	return 10000 * t + 1;
}

/* Two halves that have nothing to do with each other. */
static double phases(double t)
{
	return t < 10 ? 200000 : 40000;
}

struct program {
	load_fn load;
	double probe; /* CPU time of a probe, relative to the CPU time of its own per allocation in `steady` */
	double paced; /* > 0: waits for its work, with that share of the CPU time */
	double waits; /* for others, per allocation, relative as `probe` */
	double calibrated; /* cost of a probe as it is known, relative to what it is; 0: exact */
	double late; /* windows are that much longer than planned; 0: not at all */
	bool has_ticks; /* its clock is up to date at ticks only */
	uint64_t moving_ns; /* probes need to come, and to go */
};

enum phase { OUT, COMING, IN, GOING };

struct simulation {
	const struct program *p;
	struct windows w;
	enum phase phase;
	uint64_t until_ns; /* of the phase */
	double cpu_ns, tick_cpu_ns; /* of the process; as its clock shows it */
	double read_cpu_ns; /* at the last edge */
	double hits; /* on allocations, while probes move */
	struct windows_stretch now; /* since the last edge */
	struct windows_stretch out, in; /* of the last window */
	double scale, sum, truth, work_s, backlog;
};

/* An edge of a window: what has gone on since the last one. */
static struct windows_stretch at_edge(struct simulation *s)
{
	struct windows_stretch ret = s->now;

	ret.cpu_ns = s->p->has_ticks ? s->tick_cpu_ns - s->read_cpu_ns : ret.cpu_ns;
	ret.cpu_noise_ns = s->p->has_ticks ? 1.6e6 : 0;
	s->read_cpu_ns = s->tick_cpu_ns;
	s->now = (struct windows_stretch){ 0 };
	return ret;
}

static void move_on(struct simulation *s, uint64_t now)
{
	double late = s->p->late > 0 ? s->p->late : 1;

	if (s->phase == OUT && now >= s->w.open_ns) {
		s->out = at_edge(s);
		s->scale = windows_open(&s->w, &s->out);
		s->phase = COMING;
		s->until_ns = now + s->p->moving_ns;
	}
	if (s->phase == COMING && now >= s->until_ns) {
		s->hits += at_edge(s).alloc_cnt;
		s->phase = IN;
		s->until_ns = now + (uint64_t)((double)s->w.window_ns * late);
	} else if (s->phase == IN && now >= s->until_ns) {
		s->in = at_edge(s);
		s->phase = GOING;
		s->until_ns = now + s->p->moving_ns;
	}
	if (s->phase == GOING && now >= s->until_ns) {
		s->hits += at_edge(s).alloc_cnt;
		s->out.alloc_cnt = s->hits;
		s->hits = 0;
		windows_close(&s->w, now, &s->in, &s->out);
		s->phase = OUT;
	}
}

/* CPU time that probes add to an allocation, in s; *ret_cnt: on allocations. */
static double probe_s(const struct simulation *s, uint64_t now, double *ret_cnt)
{
	double one = s->p->probe / steady(0);

	*ret_cnt = s->phase != OUT;
	/* Half of the time that they take to move they are in. */
	if (s->phase == COMING)
		*ret_cnt = s->until_ns - now < s->p->moving_ns / 2;
	if (s->phase == GOING)
		*ret_cnt = s->until_ns - now > s->p->moving_ns / 2;
	return *ret_cnt * one * (s->w.kind == WINDOWS_HEAVY ? 2 : 1);
}

static void step(struct simulation *s, uint64_t now)
{
	const struct program *p = s->p;
	double seen, probe = probe_s(s, now, &seen),
		     calibrated = p->calibrated > 0 ? p->calibrated : 1;
	double own = p->paced > 0 ? p->paced / steady(0) : 1 / p->load(s->work_s);
	double dt = STEP_NS / 1e9, n = dt / (own + p->waits / steady(0) + probe);

	if (p->paced > 0) {
		s->backlog += p->load((double)now / 1e9) * dt;
		n = fmin(n, s->backlog);
		s->backlog -= n;
	}
	s->work_s += n * own;
	s->truth += n;
	s->cpu_ns += n * (own + probe) * 1e9;
	s->now.wall_ns += STEP_NS;
	s->now.cpu_ns += n * (own + probe) * 1e9;
	s->now.alloc_cnt += seen * n;
	s->now.cost_ns += n * probe * 1e9 * calibrated;
	if (s->phase == IN)
		s->sum += n * s->scale;
	if (now % TICK_NS == 0)
		s->tick_cpu_ns = s->cpu_ns;
}

static void run(struct simulation *s, const struct program *p, double duty, uint64_t seed)
{
	const struct windows_stretch none = { 0 };

	*s = (struct simulation){ .p = p };
	windows_start(&s->w, 0, duty, seed, &none);
	for (uint64_t now = 0; now < RUN_NS; now += STEP_NS) {
		move_on(s, now);
		step(s, now);
	}
}

struct outcome {
	double mean, spread, least, most; /* of estimate / truth */
	double slowdown; /* mean */
	double told; /* mean of the standard error that is told */
};

static struct outcome simulate(const struct program *p, double duty)
{
	struct outcome o = { .least = INFINITY };
	double squares = 0, x;
	struct simulation s;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		run(&s, p, duty, seed);
		x = s.sum / s.truth;
		o.mean += x / SEEDS;
		squares += x * x / SEEDS;
		o.least = fmin(o.least, x);
		o.most = fmax(o.most, x);
		o.slowdown += windows_slowdown(&s.w, WINDOWS_LIGHT).value / SEEDS;
		o.told += windows_spread(&s.w) / SEEDS;
	}
	o.spread = sqrt(fmax(squares - o.mean * o.mean, 0));
	return o;
}

/* bias: of the mean, at most; factor: no estimate is further off. */
static void check(const char *name, const struct program *p, double duty, double bias,
		  double factor)
{
	struct outcome o = simulate(p, duty);
	double room = bias + 3 * o.spread / sqrt(SEEDS);

	print_message("%s, duty %g: %.3f +- %.3f (%.3f to %.3f), slowdown %.2f, told +- %.3f\n",
		      name, duty, o.mean, o.spread, o.least, o.most, o.slowdown, o.told);
	if (fabs(o.mean - 1) > room || o.least < 1 / factor || o.most > factor)
		fail_msg("%s, duty %g: estimates are %.3f +- %.3f, from %.3f to %.3f of the truth",
			 name, duty, o.mean, o.spread, o.least, o.most);
}

#define MOVING_NS (6 * NS_PER_MS)

/* Without probes that cost anything. */
static void test_no_bias(void **state)
{
	(void)state;
	check("steady", &(struct program){ .load = steady }, 0.02, 0.02, 1.2);
	check("steady", &(struct program){ .load = steady }, 0.1, 0.01, 1.05);
	check("steady", &(struct program){ .load = steady }, 0.4, 0.01, 1.05);
	check("wave", &(struct program){ .load = wave, .paced = 0.2 }, 0.02, 0.02, 2);
	check("wave", &(struct program){ .load = wave, .paced = 0.2 }, 0.1, 0.02, 1.5);
	check("bursts", &(struct program){ .load = bursts, .paced = 0.02 }, 0.1, 0.02, 2);
	check("ramp", &(struct program){ .load = ramp, .paced = 0.2 }, 0.02, 0.03, 2);
	check("phases", &(struct program){ .load = phases, .paced = 0.2 }, 0.02, 0.02, 1.5);
}

/* Windows that a busy machine closes late count for what they were. */
static void test_late(void **state)
{
	const struct program p = { .load = wave, .paced = 0.2, .late = 1.7 };

	(void)state;
	check("late", &p, 0.05, 0.02, 2);
}

/* It does what there is to do, whatever the probes take, and however well that is known. */
static void test_waits_for_work(void **state)
{
	const double known[] = { 1, 0.8, 1.2 }, probes[] = { 0.3, 1, 3 };
	struct program p = { .load = steady, .paced = 0.2, .moving_ns = MOVING_NS };

	(void)state;
	for (size_t i = 0; i < 3; i++)
		for (size_t k = 0; k < 3; k++) {
			p.calibrated = known[i];
			p.probe = probes[k] * p.paced;
			/* With 3 it has next to no time left: with the probes on frees none at all. */
			check("waits for its work", &p, 0.02, probes[k] > 2 ? 0.2 : 0.05,
			      probes[k] > 2 ? 1.5 : 1.2);
			check("waits for its work", &p, 0.1, probes[k] > 2 ? 0.2 : 0.05,
			      probes[k] > 2 ? 1.5 : 1.2);
		}
}

/* It never waits: twice to ten times slower in windows. */
static void test_never_waits(void **state)
{
	const double known[] = { 1, 0.8, 1.2 }, probes[] = { 0.3, 1, 2 };
	struct program p = { .load = steady, .moving_ns = MOVING_NS };

	(void)state;
	for (size_t i = 0; i < 3; i++)
		for (size_t k = 0; k < 3; k++) {
			p.calibrated = known[i];
			p.probe = probes[k];
			check("never waits", &p, 0.02, 0.1, 1.3);
			check("never waits", &p, 0.1, 0.1, 1.3);
		}
	p.calibrated = 1;
	p.probe = 9;
	check("never waits, 10 times slower", &p, 0.02, 0.4, 3);
}

/* It waits for others that answer it: held up although it has time left. */
static void test_waits_for_others(void **state)
{
	struct program p = { .load = steady, .waits = 1, .probe = 2, .moving_ns = MOVING_NS };

	(void)state;
	check("waits for others", &p, 0.05, 0.1, 1.5);
	p.waits = 0.3;
	check("waits for others a little", &p, 0.05, 0.1, 1.5);
}

/* Slower than can be measured: the bound holds, too little is never called too much. */
static void test_bound(void **state)
{
	const struct program p = { .load = steady, .probe = 99 };
	struct windows_slowdown slow;
	struct simulation s;

	(void)state;
	run(&s, &p, 0.02, 5);
	assert_true(s.sum > 0.1 * s.truth && s.sum < s.truth);
	slow = windows_slowdown(&s.w, WINDOWS_LIGHT);
	assert_true(slow.high >= WINDOWS_SLOWDOWN_BOUND);
}

/* What is not known is called uncertain; what is known is not. */
static void test_says_what_it_knows(void **state)
{
	const struct program known = { .load = steady, .probe = 0.2, .paced = 0.2 };
	const struct program bursty = { .load = bursts, .probe = 0.1, .paced = 0.02 };
	struct windows_slowdown slow;
	struct simulation s;

	(void)state;
	run(&s, &known, 0.1, 7);
	slow = windows_slowdown(&s.w, WINDOWS_LIGHT);
	assert_true(slow.low <= 1 && slow.high < WINDOWS_SURE);
	assert_true(windows_spread(&s.w) < 0.05);
	run(&s, &bursty, 0.05, 7);
	assert_true(windows_spread(&s.w) > 0.1);
}

/* What is told about the variance is about what it is. */
static void test_spread(void **state)
{
	const struct program p = { .load = bursts, .paced = 0.02 };
	const struct windows none = { 0 };
	struct outcome o = simulate(&p, 0.1);

	(void)state;
	assert_true(o.told > o.spread / 2 && o.told < o.spread * 4);
	assert_true(isinf(windows_spread(&none)));
}

/* Each moment is inside a window as often as the duty says. */
static void test_duty(void **state)
{
	const double duties[] = { 0.001, 0.01, 0.2, 0.5 };
	const struct windows_stretch none = { 0 };
	struct windows w;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		uint64_t period = windows_period_ns(duties[i]), in_ns = 0, now = 0;

		assert_true(period >= 100 * NS_PER_MS);
		assert_float_equal((double)windows_length_ns(duties[i]) / (double)period, duties[i],
				   duties[i] / 1000);
		windows_start(&w, 0, duties[i], 3, &none);
		for (int k = 0; k < 2000; k++) {
			struct windows_stretch in = { .wall_ns = (double)w.window_ns };

			assert_true(w.open_ns >= now);
			now = w.open_ns + w.window_ns;
			in_ns += w.window_ns;
			windows_open(&w, &none);
			windows_close(&w, now, &in, &none);
		}
		assert_float_equal((double)in_ns / (double)now, duties[i], duties[i] / 50);
	}
}

/* Asleep for a while: the time is made up for by the next period. */
static void test_asleep(void **state)
{
	const struct windows_stretch none = { 0 };
	struct windows_stretch in;
	struct windows w;
	double before;

	(void)state;
	windows_start(&w, 0, 0.1, 3, &none);
	before = windows_open(&w, &none);
	in = (struct windows_stretch){ .wall_ns = (double)w.window_ns };
	windows_close(&w, w.open_ns + NS_PER_S, &in, &none);
	assert_float_equal(before, 10, 0.01);
	assert_true(windows_open(&w, &none) > 50);
}

/* A window that was longer than planned had too much: the next one gets less. */
static void test_ledger(void **state)
{
	const struct windows_stretch none = { 0 };
	struct windows_stretch in = { 0 };
	struct windows w;
	double first;

	(void)state;
	windows_start(&w, 0, 0.1, 3, &none);
	first = windows_open(&w, &none);
	in.wall_ns = 1.5 * (double)w.window_ns;
	in.alloc_cnt = 1500;
	windows_close(&w, w.open_ns + w.window_ns, &in, &none);
	assert_true(windows_open(&w, &none) < first);
}

/* One that cannot be had: the next comes some time later, within a period, and never at once again and
 * again. */
static void test_put_off(void **state)
{
	const struct windows_stretch before = { .wall_ns = 1e9, .cpu_ns = 1e9, .alloc_cnt = 1e6 };
	uint64_t now = NS_PER_S, waited_ns = 0;
	struct windows w = { 0 };

	(void)state;
	windows_start(&w, now, 0.01, 7, &before);
	for (int i = 0; i < 100; i++) {
		now = w.open_ns;
		windows_put_off(&w, now);
		assert_true(w.open_ns >= now && w.open_ns <= now + w.period_ns);
		waited_ns += w.open_ns - now;
	}
	assert_true(waited_ns > 30 * w.period_ns && waited_ns < 70 * w.period_ns);
	assert_int_equal(w.cnt, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_bias),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_waits_for_work),
		cmocka_unit_test(test_never_waits),
		cmocka_unit_test(test_waits_for_others),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_says_what_it_knows),
		cmocka_unit_test(test_spread),
		cmocka_unit_test(test_duty),
		cmocka_unit_test(test_asleep),
		cmocka_unit_test(test_ledger),
		cmocka_unit_test(test_put_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
