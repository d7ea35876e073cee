/* SPDX-License-Identifier: MIT */
/* follow_room.c - see follow.h. */
#include "serve/follow.h"

#define SHARE_OF_FREE 2
/* heaptap's own CPU time is looked at over about this time: a burst of starts is no reason to wait. */
#define OWN_WINDOW_NS (10 * NS_PER_S)

void follow_room_init(struct follow_room *r, size_t place_cnt)
{
	*r = (struct follow_room){ .place_cnt = place_cnt };
	hmap_init(&r->followed, sizeof(uint32_t));
	hmap_init(&r->spent_ns, sizeof(uint32_t));
}

void follow_room_release(struct follow_room *r)
{
	hmap_release(&r->followed);
	hmap_release(&r->spent_ns);
}

void follow_room_begin(struct follow_room *r)
{
	const struct follow_own own = r->own;

	follow_room_release(r);
	follow_room_init(r, r->place_cnt);
	r->own = own;
}

static uint64_t value_of(const struct hmap *m, uint32_t uid)
{
	const uint64_t *v = hmap_get(m, &uid);

	return v ? *v : 0;
}

/* Without memory for the count, the user's share is not limited. */
void follow_room_add(struct follow_room *r, uint32_t uid)
{
	(void)hmap_put(&r->followed, &uid, value_of(&r->followed, uid) + 1);
}

void follow_room_spend(struct follow_room *r, uint32_t uid, uint64_t ns)
{
	r->all_spent_ns += ns;
	(void)hmap_put(&r->spent_ns, &uid, value_of(&r->spent_ns, uid) + ns);
}

void follow_room_note_own(struct follow_room *r, uint64_t now, uint64_t cpu_ns)
{
	struct follow_own *own = &r->own;

	if (own->at_ns && now > own->at_ns && cpu_ns >= own->cpu_ns) {
		double wall_ns = (double)(now - own->at_ns);
		double last = (double)(cpu_ns - own->cpu_ns) / wall_ns;

		own->share += (last - own->share) * -expm1(-wall_ns / (double)OWN_WINDOW_NS);
	}
	own->at_ns = now;
	own->cpu_ns = cpu_ns;
}

int follow_room_check(const struct follow_room *r, uint32_t uid, size_t followed_cnt,
		      uint64_t age_ns)
{
	size_t free_cnt = r->place_cnt > followed_cnt ? r->place_cnt - followed_cnt : 0;
	uint64_t own_cnt = value_of(&r->followed, uid);

	if (uid && own_cnt && own_cnt >= SHARE_OF_FREE * free_cnt)
		return -EDQUOT;
	if (r->all_spent_ns >= ROOM_SCAN_NS || (uid && value_of(&r->spent_ns, uid) >= ROOM_USER_NS))
		return -EAGAIN;
	if (r->own.share >= ROOM_OWN_SHARE && age_ns < ROOM_AGE_NS)
		return -EAGAIN;
	return 0;
}
