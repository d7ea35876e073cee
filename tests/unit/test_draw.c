/* SPDX-License-Identifier: MIT */
/* test_draw.c - the sampler's whole numbers beside libm's. */
#include "unit.h"

#include "heaptap/draw.h"

TEST(test_weights)
{
	for (double r = 2; r < 1e12; r *= 3.7) {
		for (double s = 0; s < 60 * r && s < 1e15; s = s * 1.37 + 1) {
			const uint64_t size = (uint64_t)s, rate = (uint64_t)r;
			const double n = size ? (double)size : 1;
			const double wanted = -n / expm1(-n / (double)rate);
			const double got = (double)draw_weight(size, rate);

			if (fabs(got - wanted) > 1 + wanted * 1e-8)
				fail_msg("%.0f bytes at %.0f: %.1f, must be %.1f", s, r, got,
					 wanted);
		}
	}
	assert_int_equal(draw_weight(0, 1), 1);
	assert_int_equal(draw_weight(77, 1), 77);
	assert_int_equal(draw_weight(77, 0), 77);
	assert_int_equal(draw_weight(UINT64_MAX, 524288), UINT64_MAX);
}

TEST(test_logarithm)
{
	for (double u = 1; u < 1.8e19; u *= 1.0137) {
		const double got = ldexp((double)draw_minus_log2_q57((uint64_t)u), -57);

		assert_float_equal(got, 64 - log2((double)(uint64_t)u), 1e-10);
	}
	assert_int_equal(draw_minus_log2_q57(1ULL << 63), 1ULL << 57);
}

/* Exponential: mean and standard deviation are the rate, and of each tenth of the values there are a tenth. */
TEST(test_intervals)
{
	enum { CNT = 1000000, PARTS = 10 };
	const double rate = 524288;
	uint64_t random = 42, below[PARTS] = { 0 };
	double sum = 0, squares = 0;

	for (int i = 0; i < CNT; i++) {
		const double v = (double)draw_interval(&random, (uint64_t)rate);

		sum += v;
		squares += v * v;
		below[(int)(PARTS * -expm1(-v / rate))]++;
	}
	sum /= CNT;
	assert_float_equal(sum, rate, 4 * rate / sqrt(CNT));
	assert_float_equal(sqrt(squares / CNT - sum * sum), rate, 6 * rate / sqrt(CNT));
	for (int i = 0; i < PARTS; i++)
		assert_float_equal(below[i], CNT / PARTS, 4 * sqrt(CNT * 0.1 * 0.9));
}

RUN_TESTS()
