/* SPDX-License-Identifier: MIT */
/* live_line.c - see recorder_priv.h. */
#include "record/recorder_priv.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"

/* Growth is measured over at least this time: over one tick it would jump. */
#define RATE_NS NS_PER_S

/* Return the newest point that is old enough; NULL: none is. */
static const struct live_point *find_base(const struct live_line *l, uint64_t now_ns)
{
	size_t kept = l->cnt < LIVE_LINE_POINTS ? l->cnt : LIVE_LINE_POINTS;

	for (size_t i = 1; i <= kept; i++) {
		const struct live_point *p = &l->points[(l->cnt - i) % LIVE_LINE_POINTS];

		if (now_ns >= p->time_ns + RATE_NS)
			return p;
	}
	return NULL;
}

static void add_held(struct live_line *l, const struct live_now *now,
		     char buf[static LIVE_LINE_BYTES])
{
	const struct live_point *base = find_base(l, now->time_ns);
	char held[UNITS_BUF], rate[UNITS_BUF];
	size_t len = strlen(buf);
	double per_s;

	l->points[l->cnt++ % LIVE_LINE_POINTS] =
		(struct live_point){ now->time_ns, now->held_bytes };
	len += (size_t)snprintf(buf + len, LIVE_LINE_BYTES - len, "in use %s",
				format_bytes(now->held_bytes, held, sizeof(held)));
	if (!base)
		return;
	per_s = (now->held_bytes - base->held_bytes) * NS_PER_S /
		(double)(now->time_ns - base->time_ns);
	snprintf(buf + len, LIVE_LINE_BYTES - len, " (%c%s/s)", per_s < 0 ? '-' : '+',
		 format_bytes(fabs(per_s), rate, sizeof(rate)));
}

static void add_cost(const struct live_now *now, char buf[static LIVE_LINE_BYTES])
{
	size_t len = strlen(buf);
	double percent = 100 * now->cost;

	if (isnan(percent))
		snprintf(buf + len, LIVE_LINE_BYTES - len, ", cost unknown");
	else
		snprintf(buf + len, LIVE_LINE_BYTES - len, ", cost %s%.*f %%%s",
			 now->is_largest_cost ? "up to " : "", percent < 0.95 ? 1 : 0, percent,
			 now->is_of_one_cpu ? " of one CPU" : "");
}

void live_line_text(struct live_line *l, const struct live_now *now,
		    char buf[static LIVE_LINE_BYTES])
{
	char elapsed[UNITS_BUF];
	size_t len;

	snprintf(buf, LIVE_LINE_BYTES,
		 "%s: ", format_duration(now->elapsed_ns, elapsed, sizeof(elapsed)));
	if (now->has_held) {
		add_held(l, now, buf);
	} else {
		l->cnt = 0; /* the sum is another one from here on */
		len = strlen(buf);
		snprintf(buf + len, LIVE_LINE_BYTES - len, "in use unknown");
	}
	add_cost(now, buf);
	len = strlen(buf);
	if (now->loss)
		snprintf(buf + len, LIVE_LINE_BYTES - len, ", %s", now->loss);
}
