/* SPDX-License-Identifier: MIT */
/* extents.c - see extents.h. */
#include "base/extents.h"

int extents_init(struct extents *x, uint32_t first, uint32_t cnt)
{
	memset(x, 0, sizeof(*x));
	return cnt ? vec_push(&x->free, (struct extent){ first, cnt }) : 0;
}

void extents_release(struct extents *x)
{
	vec_release(&x->free);
}

static void remove_at(struct extents *x, size_t i)
{
	x->free.cnt--;
	memmove(&x->free.data[i], &x->free.data[i + 1], (x->free.cnt - i) * sizeof(*x->free.data));
}

int extents_take(struct extents *x, uint32_t cnt, uint32_t *ret_first)
{
	struct extent *e;

	vec_each(&x->free, e) {
		if (e->cnt < cnt)
			continue;
		*ret_first = e->first;
		e->first += cnt;
		e->cnt -= cnt;
		if (!e->cnt)
			remove_at(x, e - x->free.data);
		return 0;
	}
	return -ENOSPC;
}

/* Index of the first free run after number n. */
static size_t find_behind(const struct extents *x, uint32_t n)
{
	size_t low = 0, high = x->free.cnt;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (x->free.data[mid].first > n)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

int extents_give(struct extents *x, uint32_t first, uint32_t cnt)
{
	size_t at = find_behind(x, first);
	struct extent *before = at ? &x->free.data[at - 1] : NULL;
	struct extent *behind = at < x->free.cnt ? &x->free.data[at] : NULL;
	int err;

	if (!cnt)
		return 0;
	if (before && before->first + before->cnt == first) {
		before->cnt += cnt;
		if (behind && behind->first == first + cnt) {
			before->cnt += behind->cnt;
			remove_at(x, at);
		}
		return 0;
	}
	if (behind && behind->first == first + cnt) {
		behind->first = first;
		behind->cnt += cnt;
		return 0;
	}
	err = vec_reserve(&x->free, x->free.cnt + 1);
	if (err)
		return err;
	memmove(&x->free.data[at + 1], &x->free.data[at],
		(x->free.cnt - at) * sizeof(*x->free.data));
	x->free.data[at] = (struct extent){ first, cnt };
	x->free.cnt++;
	return 0;
}

uint32_t extents_free_cnt(const struct extents *x)
{
	const struct extent *e;
	uint32_t cnt = 0;

	vec_each(&x->free, e)
		cnt += e->cnt;
	return cnt;
}
