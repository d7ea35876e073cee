/* SPDX-License-Identifier: MIT */
/* inuse_growth.c - see inuse_past.h. */
#include "http/inuse_past.h"

#include <math.h>

#define QUARTERS 4
#define NOISE_DEVIATIONS 2 /* ups and downs within a quarter, in standard deviations */
#define STILL_PART \
	0.1 /* the last quarter's part of growth that goes on: with a steady pace, a third */

struct quarter {
	double sum, squares;
	size_t cnt;
};

static double mean(const struct quarter *q)
{
	return q->sum / (double)q->cnt;
}

/* NAN if a quarter has no value. */
static double deviation(const struct quarter q[QUARTERS])
{
	double squares = 0, cnt = 0;

	for (int i = 0; i < QUARTERS; i++) {
		if (!q[i].cnt)
			return NAN;
		squares += q[i].squares - q[i].sum * mean(&q[i]);
		cnt += (double)q[i].cnt;
	}
	return sqrt(fmax(squares, 0) / cnt);
}

static enum inuse_trend trend_of(const struct quarter q[QUARTERS], double noise)
{
	double change = mean(&q[3]) - mean(&q[0]);

	if (!(fabs(change) > noise))
		return INUSE_TREND_STEADY;
	if (change < 0)
		return INUSE_TREND_SHRINKS;
	return mean(&q[3]) - mean(&q[2]) > STILL_PART * change ? INUSE_TREND_GROWS :
								 INUSE_TREND_GREW;
}

void inuse_growth(const float *values, size_t cnt, double step_s, double error_bytes,
		  struct inuse_growth *ret)
{
	struct quarter q[QUARTERS] = { 0 };
	size_t first = 0, last = cnt;
	double spread, sampling = error_bytes > 0 ? 1.96 * M_SQRT2 * error_bytes : 0;

	*ret = (struct inuse_growth){ .trend = INUSE_TREND_UNKNOWN };
	while (first < cnt && isnan(values[first]))
		first++;
	while (last > first && isnan(values[last - 1]))
		last--;
	cnt = last - first;
	ret->minutes = cnt ? (double)(cnt - 1) * step_s / 60 : 0;
	if (cnt < INUSE_GROWTH_POINTS_LEAST)
		return;
	for (size_t i = 0; i < cnt; i++) {
		struct quarter *to = &q[i * QUARTERS / cnt];
		double value = (double)values[first + i];

		if (isnan(value))
			continue;
		to->sum += value;
		to->squares += value * value;
		to->cnt++;
	}
	spread = deviation(q);
	if (isnan(spread))
		return;
	ret->trend = trend_of(q, fmax(sampling, NOISE_DEVIATIONS * spread));
	/* The middles of the outer quarters are three quarters of the time apart. */
	ret->bytes_per_min = (mean(&q[3]) - mean(&q[0])) /
			     ((double)cnt * step_s / 60 * (QUARTERS - 1) / QUARTERS);
}

const char *inuse_trend_text(enum inuse_trend trend)
{
	static const char *const texts[] = {
		[INUSE_TREND_UNKNOWN] = NULL,	   [INUSE_TREND_GROWS] = "grows",
		[INUSE_TREND_GREW] = "grew",	   [INUSE_TREND_STEADY] = "steady",
		[INUSE_TREND_SHRINKS] = "shrinks",
	};

	return texts[trend];
}
