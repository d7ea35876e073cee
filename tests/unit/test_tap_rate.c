/* SPDX-License-Identifier: MIT */
/* test_tap_rate.c - how often a tapped process is sampled, by what that costs. */
#include "unit.h"

#include "track/tracker_priv.h"

#define MS 1000000ULL
#define FINEST TAP_RATE_FINEST
#define USUAL (8 * FINEST)

TEST(test_cases)
{
	static const struct {
		uint64_t rate_bytes, spent_ns, cpu_ns, time_ns, want;
		double allowed_ns; /* 0: no limit */
	} cases[] = {
		{ FINEST, 0, 0, 0, FINEST, 0 },
		{ FINEST, 1 * MS, 250 * MS, 250 * MS, FINEST, 0 }, /* 0.4 % */
		{ FINEST, 1 * MS, 10 * MS, 250 * MS, FINEST, 0 }, /* of one CPU */
		{ FINEST, 2 * MS, 250 * MS, 250 * MS, 2 * FINEST, 0 },
		{ FINEST, 2 * MS, 1000 * MS, 250 * MS, FINEST, 0 }, /* of four CPUs */
		{ FINEST, 50 * MS, 250 * MS, 250 * MS, 64 * FINEST, 0 }, /* to 0.3 % */
		{ USUAL, 5 * MS, 250 * MS, 250 * MS, 4 * USUAL, 0 }, /* 2 % */
		{ USUAL, 16 * MS, 250 * MS, 250 * MS, 16 * USUAL, 0 }, /* to 0.4 % */
		{ USUAL, MS / 2, 250 * MS, 250 * MS, USUAL, 0 },
		{ USUAL, MS / 4, 250 * MS, 250 * MS, USUAL / 2, 0 },
		{ 2 * FINEST, 0, 250 * MS, 250 * MS, FINEST, 0 },
		{ TAP_RATE_COARSEST, 250 * MS, 250 * MS, 250 * MS, TAP_RATE_COARSEST, 0 },
		/* 1 ms is fine, and not allowed. */
		{ FINEST, 1 * MS, 250 * MS, 250 * MS, 4 * FINEST, 0.5 * MS },
		{ USUAL, 1 * MS, 250 * MS, 250 * MS, 4 * USUAL, 0.5 * MS },
	};

	each_case(c, cases) {
		const struct tap_rate_cost cost = {
			c->spent_ns,
			c->cpu_ns,
			c->time_ns,
			c->allowed_ns > 0 ? c->allowed_ns : 1e18,
		};
		uint64_t calm_ns = TAP_RATE_CALM_NS;
		uint64_t got = tap_rate_next(c->rate_bytes, &cost, &calm_ns);

		if (got != c->want)
			fail_msg("case %zu: %llu, must be %llu", (size_t)(c - cases),
				 (unsigned long long)got, (unsigned long long)c->want);
	}
}

/* The same load: it comes to rest. */
TEST(test_rest)
{
	for (uint64_t at_finest_ns = MS / 10; at_finest_ns < 2000 * MS; at_finest_ns *= 3) {
		uint64_t rate = FINEST, next = rate, calm_ns = TAP_RATE_CALM_NS;

		for (int i = 0; i < 30; i++) {
			const struct tap_rate_cost cost = { at_finest_ns * FINEST / next, 250 * MS,
							    250 * MS, 1e18 };

			rate = next;
			next = tap_rate_next(rate, &cost, &calm_ns);
		}
		assert_int_equal(next, rate);
	}
}

/* Bursts with pauses between them are sampled at one rate; when they are over it is fine again. */
TEST(test_bursts)
{
	const struct tap_rate_cost pause = { 0, 0, 250 * MS, 1e18 };
	uint64_t rate = FINEST, calm_ns = TAP_RATE_CALM_NS, in_bursts = 0;
	uint64_t pause_cnt = TAP_RATE_CALM_NS / (250 * MS) - 1;

	for (int burst = 0; burst < 5; burst++) {
		for (int i = 0; i < 8; i++) {
			const struct tap_rate_cost cost = { 30 * MS * FINEST / rate, 60 * MS,
							    250 * MS, 1e18 };

			rate = tap_rate_next(rate, &cost, &calm_ns);
		}
		if (in_bursts)
			assert_int_equal(rate, in_bursts);
		in_bursts = rate;
		assert_true(rate > FINEST);
		for (uint64_t i = 0; i < pause_cnt; i++)
			rate = tap_rate_next(rate, &pause, &calm_ns);
		assert_int_equal(rate, in_bursts);
	}
	for (int i = 0; i < 8; i++)
		rate = tap_rate_next(rate, &pause, &calm_ns);
	assert_int_equal(rate, FINEST);
}

RUN_TESTS()
