/* SPDX-License-Identifier: MIT */
/*
 * watch.h - the running processes of which profiles may be saved: what each holds, how near its
 * cgroup is to its limit, and which reasons to keep a profile that gives.
 *
 * This says what there is a reason for. Whether and when it is done is saver.c's.
 */
#ifndef HT_SAVED_WATCH_H
#define HT_SAVED_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "saved/job.h"
#include "saved/name.h"
#include "saved/rules.h"

struct engine;
struct ht_event;
struct saved_cgroup;
struct saved_watch;
struct tracker;

/* Why a profile is kept of a process that goes on running, and the one that is. */
struct saved_want {
	bool is_wanted;
	struct saved_pace pace;
	double kept_bytes; /* that the saved profile shows */
	bool has_inuse; /* it does show what was held: frees were probed */
	struct saved_name file; /* the saved profile, when pid is not 0 */
};

struct watched {
	struct saved_name name; /* comm, pid, start */
	uint32_t generation;
	struct saved_cgroup *cgroup; /* NULL: not known */
	struct saved_usage usage;
	bool is_sampled; /* BPF has sums of it */
	bool has_inuse; /* its frees are watched: the sums mean something. For the caller to set */
	bool is_followed; /* while syncing */
	struct saved_want peak, limit;
};

/* limit_share: as saved_cgroups_new(). -ENOMEM. */
int saved_watch_new(double limit_share, struct saved_watch **ret);
void saved_watch_set_limit(struct saved_watch *kw, double limit_share);
/* NULL is fine. */
void saved_watch_free(struct saved_watch *kw);

/* Pointers hold until the next add or del. NULL: it is not watched. */
struct watched *saved_watch_find(const struct saved_watch *kw, pid_t pid);
size_t saved_watch_cnt(const struct saved_watch *kw);
/* Del moves the last one to the place of the one that goes. */
struct watched *saved_watch_at(const struct saved_watch *kw, size_t i);

/* comm: for when /proc does not tell it any more, because the process is ending; need not end in
 * \0. -ESRCH: the tracker does not follow it; -ENOMEM. */
int saved_watch_add(struct saved_watch *kw, const struct tracker *t, pid_t pid, const char *comm,
		    size_t comm_bytes);
void saved_watch_del(struct saved_watch *kw, struct watched *w);

/* It is another program from now on, which has no peak yet. event: HT_EVENT_EXEC. */
void watched_begin_image(struct watched *w, const struct ht_event *event);

/* Reads what all of them hold, and says what is wanted. A few times a second. rate_bytes: between
 * samples. */
void saved_watch_tick(struct saved_watch *kw, struct engine *e, uint64_t rate_bytes,
		      uint64_t now_ns);

#endif
