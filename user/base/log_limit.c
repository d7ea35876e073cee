/* SPDX-License-Identifier: MIT */
/* log_limit.c - see log_limit.h. */
#include "base/log_limit.h"

bool log_limit_allows(struct log_limit *l, uint64_t now)
{
	if (l->paid_until_ns < now)
		l->paid_until_ns = now;
	if (l->paid_until_ns - now > (l->burst - 1) * l->every_ns) {
		l->left_out_cnt++;
		return false;
	}
	l->paid_until_ns += l->every_ns;
	return true;
}

uint64_t log_limit_left_out(struct log_limit *l)
{
	uint64_t cnt = l->left_out_cnt;

	l->left_out_cnt = 0;
	return cnt;
}
