/* SPDX-License-Identifier: MIT */
/*
 * auto_rate.c - see budget.h.
 *
 * The rate becomes coarser at once when many samples come at once. It becomes finer only after a
 * quiet time, because a burst meets the rate of the quiet before it: at 4 KiB a block of 1 KiB is
 * kept one time in five, for an interval or two.
 */
#include "track/budget.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"

#define RECENT_NS (3.0 * NS_PER_S)
/* Time to a finer rate: from the beginning, because until then samples weigh much, and from the last change. */
#define FIRST_LOOK_NS (300 * NS_PER_MS)
#define LOOK_NS (1 * NS_PER_S)
#define QUIET_NS (5 * NS_PER_S) /* from a burst to a finer rate */
#define BURST 4 /* times AUTO_RATE_PER_S, in one interval */

void auto_rate_begin(struct auto_rate *a, uint64_t now_ns)
{
	memset(a, 0, sizeof(*a));
	a->rate_bytes = AUTO_RATE_USUAL;
	a->begin_ns = a->seen_ns = a->changed_ns = now_ns;
}

static double target_per_s(const struct auto_rate *a)
{
	double part = fmax(1, (double)a->sample_cnt / AUTO_RATE_PLENTY);

	return AUTO_RATE_PER_S / (part * part);
}

/* The finest power of two that keeps the target, given per_s samples at the present rate. */
static uint64_t wanted(const struct auto_rate *a, double per_s)
{
	double bytes = (double)a->rate_bytes * per_s / target_per_s(a);
	uint64_t rate_bytes = AUTO_RATE_FINEST;

	while (rate_bytes < AUTO_RATE_USUAL && (double)rate_bytes < bytes)
		rate_bytes *= 2;
	return rate_bytes;
}

static bool change(struct auto_rate *a, uint64_t now_ns, uint64_t rate_bytes)
{
	if (rate_bytes == a->rate_bytes)
		return false;
	a->cnt *= (double)a->rate_bytes / (double)rate_bytes;
	a->rate_bytes = rate_bytes;
	a->changed_ns = now_ns;
	return true;
}

bool auto_rate_update(struct auto_rate *a, uint64_t now_ns, uint64_t sample_cnt, bool may_be_fine)
{
	double ns = (double)(now_ns - a->seen_ns);
	double cnt = sample_cnt > a->sample_cnt ? (double)(sample_cnt - a->sample_cnt) : 0;
	double keep = exp(-ns / RECENT_NS), per_s;
	uint64_t rate_bytes, look_ns;

	if (ns <= 0)
		return false;
	a->ns_per_byte += ns / (double)a->rate_bytes;
	a->seen_ns = now_ns;
	a->sample_cnt = sample_cnt;
	a->cnt = a->cnt * keep + cnt;
	a->wall_ns = a->wall_ns * keep + ns;
	if (!may_be_fine)
		return change(a, now_ns, AUTO_RATE_USUAL);
	per_s = cnt / ns * NS_PER_S;
	if (per_s > BURST * AUTO_RATE_PER_S) {
		a->burst_ns = now_ns;
		return change(a, now_ns, wanted(a, per_s));
	}
	per_s = a->cnt / a->wall_ns * NS_PER_S;
	rate_bytes = wanted(a, per_s);
	look_ns = a->changed_ns == a->begin_ns ? FIRST_LOOK_NS : LOOK_NS;
	if (rate_bytes < a->rate_bytes &&
	    (now_ns - a->changed_ns < look_ns || (a->burst_ns && now_ns - a->burst_ns < QUIET_NS)))
		return false;
	/* Do not go back and forth: a small excess changes nothing. */
	if (rate_bytes > a->rate_bytes && per_s < 1.5 * target_per_s(a))
		return false;
	return change(a, now_ns, rate_bytes);
}

uint64_t auto_rate_mean(const struct auto_rate *a)
{
	double ns = (double)(a->seen_ns - a->begin_ns);

	return a->ns_per_byte > 0 ? (uint64_t)llround(ns / a->ns_per_byte) : a->rate_bytes;
}
