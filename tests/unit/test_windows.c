/* SPDX-License-Identifier: MIT */
/*
 * test_windows.c - what is seen through windows is, scaled, what there was: no bias, whatever the
 * program does when.
 *
 * Programs of the simulation allocate with a rate that changes in time. Each seed draws other windows; the
 * mean of the estimates must be within four standard errors of the truth, and these must be small.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>

#include <cmocka.h>

#include "base/clock.h"
#include "budget/windows.h"

#define STEP_NS 200000ULL /* of the simulation */
#define SEEDS 150
#define RUN_NS (20 * NS_PER_S)

/* Allocations per second at a time, of an unprobed program that is always busy. */
typedef double (*load_fn)(double t);

static double steady(double t)
{
	(void)t;
	return 1000;
}

/* Periods near those of the windows. */
static double wave(double t)
{
	return 1000 * (1 + sin(2 * M_PI * t / 0.25));
}

static double bursts(double t)
{
	return fmod(t, 1.0) < 0.1 ? 10000 : 10;
}

/* All at the end. */
static double ramp(double t)
{
	return 100 * t;
}

struct program {
	load_fn load;
	double probe_share; /* of its CPU time while probes are in */
	bool is_paced; /* waits for its work, so that probes do not slow it down */
	double late; /* windows are that much longer than planned */
};

/* Sum over all windows, scaled; *ret_true: all there was. */
static double estimate(const struct program *p, double duty, uint64_t seed, double *ret_true)
{
	struct windows_stretch in = { 0 }, out = { 0 };
	const struct windows_stretch none = { 0 };
	double sum = 0, scale = 0, speed = 1, progress = 0;
	uint64_t closes_ns = 0;
	struct windows w;

	*ret_true = 0;
	windows_start(&w, 0, duty, seed, &none);
	for (uint64_t now = 0; now < RUN_NS; now += STEP_NS) {
		double load = p->is_paced ? 0.2 : 1, cpu, n;

		if (!closes_ns && now >= w.open_ns) {
			scale = windows_scale(&w, &out);
			closes_ns = now + (uint64_t)((double)w.window_ns * p->late);
			in = (struct windows_stretch){ 0 };
		} else if (closes_ns && now >= closes_ns) {
			windows_next(&w, now, &in, &out);
			out = (struct windows_stretch){ 0 };
			closes_ns = 0;
		}
		/* Slowed down, it gets on more slowly; paced, it takes more CPU time. */
		speed = closes_ns && !p->is_paced ? 1 - p->probe_share : 1;
		n = p->load(progress / 1e9) * speed * STEP_NS / 1e9;
		progress += STEP_NS * speed;
		*ret_true += n;
		cpu = load * STEP_NS;
		if (!closes_ns) {
			out.wall_ns += STEP_NS;
			out.cpu_ns += cpu;
			out.own_ns += cpu;
			continue;
		}
		if (p->is_paced)
			cpu /= 1 - p->probe_share;
		sum += n * scale;
		in.wall_ns += STEP_NS;
		in.cpu_ns += cpu;
		in.own_ns += cpu * (1 - p->probe_share);
	}
	return sum;
}

/* Relative bias, in units of its standard error; that in *ret_error. */
static double bias(const struct program *p, double duty, double *ret_error, double *ret_mean)
{
	double sum = 0, squares = 0, truth, x, mean;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		x = estimate(p, duty, seed, &truth) / truth - 1;
		sum += x;
		squares += x * x;
	}
	mean = sum / SEEDS;
	*ret_error = sqrt((squares / SEEDS - mean * mean) / SEEDS);
	*ret_mean = mean;
	return mean / *ret_error;
}

/* Exact, but for the first window whose length is not known yet: 1 % of room. */
static void check(const struct program *p, double duty, double error_max)
{
	double error, mean, z = bias(p, duty, &error, &mean);

	if (error > error_max || (fabs(z) > 4 && fabs(mean) > 0.01))
		fail_msg("duty %g: mean error %.4f, standard error %.4f", duty, mean, error);
}

static void test_no_bias(void **state)
{
	const load_fn loads[] = { steady, wave, bursts, ramp };

	(void)state;
	for (size_t i = 0; i < sizeof(loads) / sizeof(*loads); i++) {
		const struct program p = { loads[i], 0, false, 1 };

		check(&p, 0.02, 0.05);
		check(&p, 0.1, 0.01);
		check(&p, 0.4, 0.01);
	}
}

/* Windows that a busy machine closes late count for what they were. */
static void test_late(void **state)
{
	const struct program p = { wave, 0, false, 1.7 };

	(void)state;
	check(&p, 0.05, 0.02);
}

/* Probes that take half, or nine tenths, of the time while they are in. */
static void test_slowed_down(void **state)
{
	const struct program half = { steady, 0.5, false, 1 }, most = { steady, 0.9, false, 1 };
	const struct program wavy = { wave, 0.5, false, 1 };

	(void)state;
	check(&half, 0.05, 0.02);
	check(&most, 0.05, 0.02);
	check(&wavy, 0.05, 0.02);
}

/* One that waits for its work does as much while the probes are in. */
static void test_paced(void **state)
{
	const struct program p = { steady, 0.3, true, 1 };

	(void)state;
	check(&p, 0.05, 0.02);
}

/* Slower than can be measured: the bound holds, too little is never called too much. */
static void test_bound(void **state)
{
	const struct program p = { steady, 0.99, false, 1 };
	double truth, x = estimate(&p, 0.02, 5, &truth);

	(void)state;
	assert_true(x > 0.1 * truth && x < truth);
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
			struct windows_stretch in = { .wall_ns = w.window_ns };

			assert_true(w.open_ns >= now);
			now = w.open_ns + w.window_ns;
			in_ns += w.window_ns;
			windows_next(&w, now, &in, &none);
		}
		assert_float_equal((double)in_ns / (double)now, duties[i], duties[i] / 50);
	}
}

/* Asleep for a while: the time is made up for by the next period. */
static void test_asleep(void **state)
{
	const struct windows_stretch none = { 0 };
	struct windows w;
	double before, after;

	(void)state;
	windows_start(&w, 0, 0.1, 3, &none);
	before = windows_scale(&w, &none);
	{
		struct windows_stretch in = { .wall_ns = w.window_ns };

		windows_next(&w, w.open_ns + NS_PER_S, &in, &none);
	}
	after = windows_scale(&w, &none);
	assert_float_equal(before, 10, 0.01);
	assert_true(after > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_bias),	    cmocka_unit_test(test_late),
		cmocka_unit_test(test_slowed_down), cmocka_unit_test(test_paced),
		cmocka_unit_test(test_bound),	    cmocka_unit_test(test_duty),
		cmocka_unit_test(test_asleep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
