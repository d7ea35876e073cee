/* SPDX-License-Identifier: MIT */
/*
 * follow_room.h - may one more process be followed, and now? Enough descriptors have to be left for it. And since a
 * user chooses the names and the number of his processes, no user may take the places and time of others:
 *
 *   places: a user's processes may be twice as many as places are free, as in bpf/share.bpf.h;
 *   time: attaching takes some milliseconds, during which nothing else is done. In one scan, a user's new
 *         processes have ROOM_USER_NS, all together ROOM_SCAN_NS; the rest waits for the next scan.
 *
 * Root's processes are limited only by the time of all together.
 */
#ifndef HT_SERVE_FOLLOW_ROOM_H
#define HT_SERVE_FOLLOW_ROOM_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/hmap.h"

#define ROOM_USER_NS (200 * NS_PER_MS)
#define ROOM_SCAN_NS (500 * NS_PER_MS)

struct follow_room {
	size_t place_cnt;
	struct hmap followed; /* uid -> number of his followed processes */
	struct hmap spent_ns; /* uid -> time spent on him in this scan */
	uint64_t all_spent_ns;
};

void follow_room_init(struct follow_room *r, size_t place_cnt);
void follow_room_release(struct follow_room *r);

/* Begin a scan: no time is spent yet, and nobody is followed until follow_room_add() says so. */
void follow_room_begin(struct follow_room *r);
void follow_room_add(struct follow_room *r, uint32_t uid);
void follow_room_spend(struct follow_room *r, uint32_t uid, uint64_t ns);

/* followed_cnt: of all users. -EDQUOT: the user has used up his share; -EAGAIN: try in the next scan. */
int follow_room_check(const struct follow_room *r, uint32_t uid, size_t followed_cnt);
/* 0, or -EMFILE, -ENFILE. */
int follow_room_check_files(void);

#endif
