/* SPDX-License-Identifier: MIT */
/* follow_room.c - see follow.h. */
#include "serve/follow.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Descriptors that must be left before one more process is attached to: this takes some ten to forty, and requests,
 * profiles and reads of /proc need some at any time. */
#define SPARE_FILES 96
#define SHARE_OF_FREE 2

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
	follow_room_release(r);
	follow_room_init(r, r->place_cnt);
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

int follow_room_check(const struct follow_room *r, uint32_t uid, size_t followed_cnt)
{
	size_t free_cnt = r->place_cnt > followed_cnt ? r->place_cnt - followed_cnt : 0;
	uint64_t own_cnt = value_of(&r->followed, uid);

	if (uid && own_cnt && own_cnt >= SHARE_OF_FREE * free_cnt)
		return -EDQUOT;
	if (r->all_spent_ns >= ROOM_SCAN_NS || (uid && value_of(&r->spent_ns, uid) >= ROOM_USER_NS))
		return -EAGAIN;
	return 0;
}

int follow_room_check_files(void)
{
	int fds[SPARE_FILES], cnt = 0, err = 0;
	struct rlimit limit;
	struct stat st;

	/* From Linux 6.2 on the folder's size is the number of open descriptors; before, it is 0. */
	if (!stat("/proc/self/fd", &st) && st.st_size > 0 && !getrlimit(RLIMIT_NOFILE, &limit))
		return (rlim_t)st.st_size + SPARE_FILES <= limit.rlim_cur ? 0 : -EMFILE;
	for (; cnt < SPARE_FILES && !err; cnt++) {
		fds[cnt] = dup(STDERR_FILENO);
		if (fds[cnt] < 0)
			err = -errno;
	}
	while (cnt-- > 0)
		if (fds[cnt] >= 0)
			close(fds[cnt]);
	return err == -EMFILE || err == -ENFILE ? err : 0;
}
