/* SPDX-License-Identifier: MIT */
/* rules.c - see saver_priv.h. */
#include "saved/saver_priv.h"

bool saved_has_grown(double inuse_bytes, double kept_bytes, uint64_t rate_bytes)
{
	double more = inuse_bytes - kept_bytes;

	if (kept_bytes <= 0)
		return inuse_bytes > 0;
	return more >= kept_bytes * KEEP_GROWTH && more >= (double)rate_bytes * 2;
}

bool saved_pace_allows(const struct saved_pace *p, uint64_t now_ns)
{
	return !p->taken_ns || now_ns >= p->taken_ns + p->interval_ns;
}

void saved_pace_take(struct saved_pace *p, uint64_t now_ns)
{
	/* Growth had stopped for a while: this is another burst. */
	bool has_rested = !p->taken_ns || now_ns >= p->taken_ns + 2 * KEEP_PACE_MAX_NS;

	p->interval_ns = has_rested ? KEEP_PACE_MIN_NS : p->interval_ns * 2;
	if (p->interval_ns > KEEP_PACE_MAX_NS)
		p->interval_ns = KEEP_PACE_MAX_NS;
	p->taken_ns = now_ns;
}

bool saved_rest_is_over(const struct saved_rest *r, uint64_t now_ns, enum saved_class of)
{
	static const uint64_t times[] = {
		[KEEP_DEATH] = 5, [KEEP_NEAR_LIMIT] = 10, [KEEP_ENDED] = 10, [KEEP_AT_PEAK] = 32
	};

	if (of == KEEP_ENDED && r->had_ended)
		of = KEEP_AT_PEAK;
	return now_ns >= r->end_ns + r->took_ns * times[of];
}

bool saved_limit_reached(struct saved_limit *l, uint64_t used_bytes, uint64_t limit_bytes,
			 uint64_t event_cnt, double share)
{
	double used = limit_bytes ? (double)used_bytes / (double)limit_bytes : 0;
	bool was_near = l->is_near;
	bool has_new = l->has_events && event_cnt > l->event_cnt;

	l->event_cnt = event_cnt;
	l->has_events = true; /* events before the first look are not new */
	if (used >= share)
		l->is_near = true;
	else if (used < share - KEEP_LIMIT_SLACK)
		l->is_near = false;
	return has_new || (l->is_near && !was_near);
}

int saved_candidate_order(const void *a, const void *b)
{
	const struct saved_candidate *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->taken_epoch_ms > y->taken_epoch_ms) - (x->taken_epoch_ms < y->taken_epoch_ms);
}
