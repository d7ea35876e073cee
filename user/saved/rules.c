/* SPDX-License-Identifier: MIT */
/* rules.c - see rules.h. */
#include "saved/rules.h"

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

void saved_credit_init(struct saved_credit *c, uint64_t now_ns)
{
	c->left_ns = (int64_t)KEEP_CREDIT_MAX_NS;
	c->filled_ns = now_ns;
}

bool saved_credit_is_left(struct saved_credit *c, uint64_t now_ns, enum saved_need need)
{
	static const int64_t debt_ns[] = {
		[KEEP_NEED_LIMIT] = (int64_t)KEEP_DEBT_LIMIT_NS,
		[KEEP_NEED_DEATH] = (int64_t)KEEP_DEBT_MAX_NS,
	};

	c->left_ns += (int64_t)((double)(now_ns - c->filled_ns) * KEEP_CPU_SHARE);
	if (c->left_ns > (int64_t)KEEP_CREDIT_MAX_NS)
		c->left_ns = (int64_t)KEEP_CREDIT_MAX_NS;
	c->filled_ns = now_ns;
	return c->left_ns > -debt_ns[need];
}

void saved_credit_spend(struct saved_credit *c, uint64_t cpu_ns)
{
	c->left_ns -= (int64_t)cpu_ns;
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
