/* SPDX-License-Identifier: MIT */
/*
 * keep_watch.h - the running processes of which profiles may be kept: what each holds, how near its
 * cgroup is to its limit, and which reasons to keep a profile that gives.
 *
 * This says what there is a reason for. Whether and when it is done is keeper.c's.
 */
#ifndef HT_SAVED_KEEP_WATCH_H
#define HT_SAVED_KEEP_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "saved/keep_job.h"
#include "saved/keep_name.h"
#include "saved/keep_rules.h"

struct engine;
struct ht_event;
struct keep_cgroup;
struct keep_watch;
struct tracker;

/* Why a profile is kept of a process that goes on running, and the one that is. */
struct keep_want {
	bool is_wanted;
	struct keep_pace pace;
	double kept_bytes; /* that the kept profile shows */
	bool has_inuse; /* it does show what was held: frees were probed */
	struct keep_name file; /* the kept profile, when pid is not 0 */
};

struct watched {
	struct keep_name name; /* comm, pid, start */
	uint32_t generation;
	struct keep_cgroup *cgroup; /* NULL: not known */
	struct keep_usage usage;
	bool is_sampled; /* BPF has sums of it */
	bool has_inuse; /* its frees are watched: the sums mean something. For the caller to set */
	bool is_followed; /* while syncing */
	struct keep_want peak, limit;
};

/* limit_share: as keep_cgroups_new(). -ENOMEM. */
int keep_watch_new(double limit_share, struct keep_watch **ret);
void keep_watch_set_limit(struct keep_watch *kw, double limit_share);
/* NULL is fine. */
void keep_watch_free(struct keep_watch *kw);

/* Pointers hold until the next add or del. NULL: it is not watched. */
struct watched *keep_watch_find(const struct keep_watch *kw, pid_t pid);
size_t keep_watch_cnt(const struct keep_watch *kw);
/* Del moves the last one to the place of the one that goes. */
struct watched *keep_watch_at(const struct keep_watch *kw, size_t i);

/* comm: for when /proc does not tell it any more, because the process is ending; need not end in
 * \0. -ESRCH: the tracker does not follow it; -ENOMEM. */
int keep_watch_add(struct keep_watch *kw, const struct tracker *t, pid_t pid, const char *comm,
		   size_t comm_bytes);
void keep_watch_del(struct keep_watch *kw, struct watched *w);

/* It is another program from now on, which has no peak yet. event: HT_EVENT_EXEC. */
void watched_begin_image(struct watched *w, const struct ht_event *event);

/* Reads what all of them hold, and says what is wanted. A few times a second. rate_bytes: between
 * samples. */
void keep_watch_tick(struct keep_watch *kw, struct engine *e, uint64_t rate_bytes, uint64_t now_ns);

#endif
