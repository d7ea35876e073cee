/* SPDX-License-Identifier: MIT */
/* tap_rate.c - see tracker_priv.h. */
#include "track/tracker_priv.h"

static double limit_ns(const struct tap_rate_cost *c)
{
	double ns = (double)(c->cpu_ns > c->time_ns ? c->cpu_ns : c->time_ns) * TAP_RATE_SHARE;

	return ns < c->allowed_ns * TAP_RATE_OF_ALLOWED ? ns : c->allowed_ns * TAP_RATE_OF_ALLOWED;
}

uint64_t tap_rate_next(uint64_t rate_bytes, const struct tap_rate_cost *cost, uint64_t *calm_ns)
{
	double spent_ns = (double)cost->spent_ns;

	/* Half the rate is twice the cost; the rest of the factor 4 avoids going back and forth. */
	if (spent_ns * 4 < limit_ns(cost)) {
		*calm_ns += cost->time_ns;
		return *calm_ns >= TAP_RATE_CALM_NS && rate_bytes >= 2 * TAP_RATE_FINEST ?
			       rate_bytes / 2 :
			       rate_bytes;
	}
	*calm_ns = 0;
	for (; spent_ns > limit_ns(cost) && rate_bytes < TAP_RATE_COARSEST; spent_ns /= 2)
		rate_bytes *= 2;
	return rate_bytes;
}
