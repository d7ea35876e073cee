/* SPDX-License-Identifier: MIT */
/*
 * draw.h - the arithmetic of a sampler in a program, in whole numbers: it runs in signal handlers, before main(), and
 * without libm.
 *
 * The suffix of a name says in what its fraction is: _q57 in 2^-57. Weights are right to a part in 10^8 and 1 byte,
 * logarithms to 10^-10: tests/unit/test_draw.c compares them with libm's.
 */
#ifndef HEAPTAP_DRAW_H
#define HEAPTAP_DRAW_H

#include <stdint.h>

#define DRAW_LN2_Q64 0xb17217f7d1cf79acULL /* ln 2 */
#define DRAW_LOG2E_Q63 0xb8aa3b295c17f0bcULL /* log2 e, in 2^-63 */

static inline uint64_t draw_high(uint64_t a, uint64_t b)
{
	return (uint64_t)((unsigned __int128)a * b >> 64);
}

static inline uint64_t draw_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

/* -log2(u / 2^64) in 2^-57, for u > 0: 0 to 64. The mantissa is squared bit by bit. */
static inline uint64_t draw_minus_log2_q57(uint64_t u)
{
	uint32_t zeros = (uint32_t)__builtin_clzll(u);
	uint64_t m = u << zeros, fraction = 0; /* m / 2^63 in [1, 2) */

	for (int bit = 56; bit >= 20; bit--) {
		unsigned __int128 square = (unsigned __int128)m * m; /* / 2^126, in [1, 4) */

		if (square >> 127) {
			fraction |= 1ULL << bit;
			m = (uint64_t)(square >> 64);
		} else {
			m = (uint64_t)(square >> 63);
		}
	}
	return ((uint64_t)(zeros + 1) << 57) - fraction;
}

/* Exponential with mean rate_bytes. */
static inline uint64_t draw_interval(uint64_t *state, uint64_t rate_bytes)
{
	uint64_t u = draw_random(state);
	uint64_t ln_q57 = draw_high(draw_minus_log2_q57(u ? u : 1), DRAW_LN2_Q64);

	return (uint64_t)((unsigned __int128)ln_q57 * rate_bytes >> 57);
}

/* 2^-x in 2^-64 for x in 2^-63 and below 1: the series of exp(-x ln 2). */
static inline uint64_t draw_exp2_fraction(uint64_t x_q63)
{
	uint64_t y = draw_high(x_q63 << 1, DRAW_LN2_Q64), term = y, sum = 0; /* y in 2^-64 */

	/* 1 - y + y^2/2 - ...: the 1 is 2^64, which is left out; what is summed is negative. */
	for (uint64_t i = 2; term; i++) {
		sum = i & 1 ? sum - term : sum + term;
		term = draw_high(term, y) / i;
	}
	return -sum;
}

/*
 * How many bytes a block of that size stands for, if blocks are kept with p = 1 - exp(-size / rate): size / p, rounded.
 * A block much larger than the rate stands for itself.
 */
static inline uint64_t draw_weight(uint64_t size, uint64_t rate_bytes)
{
	unsigned __int128 x_q63;
	uint64_t n, e, p_q64;

	if (!size)
		size = 1;
	if (rate_bytes <= 1 || size / rate_bytes >= 40)
		return size;
	if (size < rate_bytes >>
	    10) /* x / (1 - exp(-x)) = 1 + x/2 + x^2/12 - ...: no cancellation */
		return rate_bytes + (uint64_t)(((unsigned __int128)6 * size * rate_bytes +
						(unsigned __int128)size * size +
						(unsigned __int128)6 * rate_bytes) /
					       ((unsigned __int128)12 * rate_bytes));
	x_q63 = ((unsigned __int128)size << 63) / rate_bytes; /* below 40 */
	x_q63 = (x_q63 >> 6) * DRAW_LOG2E_Q63 >> 57; /* times log2 e */
	n = (uint64_t)(x_q63 >> 63);
	e = draw_exp2_fraction((uint64_t)x_q63 & ~(1ULL << 63));
	if (!e) /* 2^-0 is 1 */
		p_q64 = n ? -(1ULL << (64 - n)) : 1;
	else
		p_q64 = -(e >> n);
	return (uint64_t)((((unsigned __int128)size << 64) - 1) / p_q64);
}

#endif
