/* SPDX-License-Identifier: MIT */
/*
 * follow.h - keeps the followed processes equal to the selected ones.
 *
 * Once a second /proc is scanned; of processes that no rule can select nothing is read. Selected processes that are
 * not followed yet are attached to. Followed processes that are not selected any more are let go: at once if they
 * execute another program, after some seconds if their name, user or control group changed. A process that is not
 * followed and maps a library or program is checked soon after that, and so is a child of a followed process, so new
 * processes, and those that load their allocator late, need not wait for the scan. Processes without room are tried again
 * within some seconds, or half a minute, after others have ended. The tracker's events report ends. Rules never select
 * heaptap itself.
 */
#ifndef HT_SERVE_FOLLOW_H
#define HT_SERVE_FOLLOW_H

#include "base/std.h"
#include "base/clock.h"
#include "base/hmap.h"
#include "kernel/attach.h"

struct engine;
struct follow;
struct guardian;
struct ht_event;
struct reader;
struct select_rules;
struct tracker;

struct follow_options {
	struct reader *reader; /* see proc/reader.h */
	const struct select_rules *rules;
	const pid_t *pids; /* followed whatever the rules say, until they end */
	size_t pid_cnt;
	struct guardian *guardian; /* asks who handles SIGSYS; NULL: nobody is asked */
};

/* Keeps everything by reference except the pids. These must be of running processes: else -ESRCH, and the pid was
 * logged. */
int follow_new(struct engine *e, struct tracker *t, const struct follow_options *opts,
	       struct follow **ret);
void follow_free(struct follow *f);

/*
 * Use these rules (by reference) and pids from now on; pids that do not run are logged and left out. The next
 * follow_scan() lets go what is not selected any more. -ENOMEM: nothing has changed.
 */
int follow_select(struct follow *f, const struct select_rules *rules, const pid_t *pids,
		  size_t pid_cnt);

/* Cheap for processes that have not changed: see follow.c. */
int follow_scan(struct follow *f);
/* Note that a process has mapped a file executable. Cheap; follow_look() checks the noted processes. */
void follow_note(struct follow *f, pid_t pid);
int follow_look(struct follow *f);
/* Note that a followed process has forked, or executes another program. true: there are too many children to be noted, and
 * only a scan finds them. */
bool follow_on_event(struct follow *f, const struct ht_event *event);
/* Note that some notes were lost: the next scan checks every process closely. */
void follow_note_lost(struct follow *f);
/* CPU time of heaptap so far: of main, its guardian, its reader, and all children that have ended. */
uint64_t follow_own_cpu_ns(const struct follow *f);
/* Number of selected running processes that cannot be followed, as of the last scan. */
size_t follow_refused_cnt(const struct follow *f);

/*
 * May one more process be followed, and now? Enough descriptors have to be left for it. And since a
 * user chooses the names and the number of his processes, no user may take the places and time of others:
 *
 *   places: a user's processes may be twice as many as places are free, as in bpf/share.bpf.h;
 *   time: attaching takes some milliseconds, during which nothing else is done. In one scan, a user's new
 *         processes have ROOM_USER_NS, all together ROOM_SCAN_NS; the rest waits for the next scan.
 *   own cost: where processes come and go, most of heaptap's CPU time is for those that live for less than a second.
 *         While heaptap takes more than ROOM_OWN_SHARE of one CPU, a process is attached to when it is ROOM_AGE_NS old.
 *
 * Root's processes are limited only by the time of all together and the own cost.
 */

#define ROOM_USER_NS (200 * NS_PER_MS)
#define ROOM_SCAN_NS (500 * NS_PER_MS)
#define ROOM_OWN_SHARE 0.12
#define ROOM_AGE_NS (3 * NS_PER_S)

/* The CPU time of heaptap's own processes. */
struct follow_own {
	uint64_t at_ns, cpu_ns; /* of the last reading; 0: none yet */
	double share; /* of one CPU, lately */
};

struct follow_room {
	size_t place_cnt;
	struct hmap followed; /* uid -> number of his followed processes */
	struct hmap spent_ns; /* uid -> time spent on him in this scan */
	uint64_t all_spent_ns;
	struct follow_own own;
};

void follow_room_init(struct follow_room *r, size_t place_cnt);
void follow_room_release(struct follow_room *r);

/* Begin a scan: no time is spent yet, and nobody is followed until follow_room_add() says so. */
void follow_room_begin(struct follow_room *r);
void follow_room_add(struct follow_room *r, uint32_t uid);
void follow_room_spend(struct follow_room *r, uint32_t uid, uint64_t ns);
/* cpu_ns: of all of heaptap's processes so far, as of now. */
void follow_room_note_own(struct follow_room *r, uint64_t now_ns, uint64_t cpu_ns);

/* followed_cnt: of all users. -EDQUOT: the user has used up his share; -EAGAIN: try in the next scan. */
int follow_room_check(const struct follow_room *r, uint32_t uid, size_t followed_cnt,
		      uint64_t age_ns);

#endif
