/* SPDX-License-Identifier: MIT */
/* push_time.c - see push_time.h. */
#include "push/push_time.h"

#include <limits.h>
#include <sys/random.h>

#include "base/clock.h"

/* Evenly distributed in [low, high]. */
static uint64_t random_between(uint64_t low, uint64_t high)
{
	uint64_t r;

	if (getrandom(&r, sizeof(r), GRND_NONBLOCK) != sizeof(r))
		r = now_ns() * 0x9e3779b97f4a7c15ULL;
	return low + r % (high - low + 1);
}

void push_clock_set(struct push_clock *c, uint64_t interval_ns, uint64_t now)
{
	if (c->interval_ns == interval_ns)
		return;
	c->interval_ns = interval_ns;
	c->due_ns = interval_ns ? now + random_between(1, interval_ns) : 0;
}

bool push_clock_is_due(struct push_clock *c, uint64_t now)
{
	if (!c->interval_ns || now < c->due_ns)
		return false;
	c->due_ns += c->interval_ns;
	if (c->due_ns <= now)
		c->due_ns = now + c->interval_ns;
	return true;
}

int push_clock_wait_ms(const struct push_clock *c, uint64_t now)
{
	uint64_t left_ms;

	if (!c->interval_ns)
		return -1;
	if (now >= c->due_ns)
		return 0;
	left_ms = (c->due_ns - now - 1) / NS_PER_MS + 1;
	return left_ms < INT_MAX ? (int)left_ms : INT_MAX;
}

uint64_t push_retry_delay_ns(uint64_t min_ns, uint64_t max_ns, unsigned int fail_cnt)
{
	uint64_t delay = min_ns;

	for (unsigned int i = 1; i < fail_cnt && delay < max_ns; i++)
		delay *= 2;
	if (delay > max_ns)
		delay = max_ns;
	return random_between(delay / 2, delay);
}
