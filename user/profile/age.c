/* SPDX-License-Identifier: MIT */
/*
 * age.c - see age.h.
 *
 * Each class is a third to a half wider than the one before: fine enough for a median, few enough that every sample of
 * a file can have its own.
 */
#include "profile/age.h"

#include <math.h>
#include <stdio.h>

#define S 1000000000ULL
#define MIN (60 * S)
#define H (60 * MIN)
#define D (24 * H)

static const uint64_t bounds_ns[AGE_CLASS_CNT] = {
	0,	  S / 10,  S / 5,    S / 2,   S,	2 * S,	  3 * S,    5 * S,
	7 * S,	  10 * S,  15 * S,   20 * S,  30 * S,	45 * S,	  MIN,	    90 * S,
	2 * MIN,  3 * MIN, 5 * MIN,  7 * MIN, 10 * MIN, 15 * MIN, 20 * MIN, 30 * MIN,
	45 * MIN, H,	   90 * MIN, 2 * H,   3 * H,	5 * H,	  8 * H,    12 * H,
	18 * H,	  D,	   2 * D,    3 * D,   5 * D,	7 * D,
};

uint32_t age_class_of(uint64_t age_ns)
{
	uint32_t c = AGE_CLASS_CNT - 1;

	while (bounds_ns[c] > age_ns)
		c--;
	return c;
}

uint64_t age_bound_ns(uint32_t age_class)
{
	return age_class < AGE_CLASS_CNT ? bounds_ns[age_class] : UINT64_MAX;
}

char *age_bound_name(uint32_t age_class, char buf[AGE_NAME_BUF])
{
	uint64_t ns = bounds_ns[age_class < AGE_CLASS_CNT ? age_class : AGE_CLASS_CNT - 1];

	if (ns < MIN || ns == 90 * S)
		snprintf(buf, AGE_NAME_BUF, "%g s", (double)ns / S);
	else if (ns < H || ns == 90 * MIN)
		snprintf(buf, AGE_NAME_BUF, "%g min", (double)ns / MIN);
	else if (ns < D)
		snprintf(buf, AGE_NAME_BUF, "%g h", (double)ns / H);
	else
		snprintf(buf, AGE_NAME_BUF, "%g d", (double)ns / D);
	return buf;
}

char *age_class_name(uint32_t age_class, char buf[AGE_NAME_BUF])
{
	char from[AGE_NAME_BUF], to[AGE_NAME_BUF];

	age_bound_name(age_class, from);
	if (age_class >= AGE_CLASS_CNT - 1) {
		snprintf(buf, AGE_NAME_BUF, "%.16s or more", from);
		return buf;
	}
	age_bound_name(age_class + 1, to);
	if (!age_class)
		snprintf(buf, AGE_NAME_BUF, "under %.16s", to);
	else
		snprintf(buf, AGE_NAME_BUF, "%.16s to %.16s", from, to);
	return buf;
}

void age_merge(struct age_sums *sums, const struct age_sums *other)
{
	for (size_t c = 0; c < AGE_CLASS_CNT; c++)
		sums->bytes[c] += other->bytes[c];
	if (other->oldest_ns > sums->oldest_ns)
		sums->oldest_ns = other->oldest_ns;
}

bool age_median_s(const struct age_sums *sums, double *ret)
{
	double all = 0, below = 0;

	for (size_t c = 0; c < AGE_CLASS_CNT; c++)
		all += sums->bytes[c];
	if (!(all > 0))
		return false;
	for (uint32_t c = 0; c < AGE_CLASS_CNT; c++) {
		double from = (double)bounds_ns[c], to = (double)sums->oldest_ns;

		if (below + sums->bytes[c] < all / 2) {
			below += sums->bytes[c];
			continue;
		}
		if (c + 1 < AGE_CLASS_CNT && (double)bounds_ns[c + 1] < to)
			to = (double)bounds_ns[c + 1];
		to = fmax(to, from);
		*ret = (from + (to - from) * (all / 2 - below) / sums->bytes[c]) / S;
		break;
	}
	return true;
}
