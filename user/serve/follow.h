/* SPDX-License-Identifier: MIT */
/*
 * follow.h - keeps the followed processes equal to the selected ones.
 *
 * Once a second, and soon after a followed process has forked, all of /proc is looked through:
 * selected processes that are not followed are attached to, followed ones that are not selected any
 * more are let go: those that turned into another program at once, those that took another name, user
 * or control group after some seconds. A process that is not followed and maps a library or program is
 * looked at soon after it: so those that begin, or that load their allocator late, need not wait for
 * their turn. Who there is no room for is tried again within some seconds, or half a minute, after others
 * have ended. Ends are told by the tracker's events. heaptap itself is never selected by a rule.
 */
#ifndef HT_SERVE_FOLLOW_H
#define HT_SERVE_FOLLOW_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernel/attach.h"

struct engine;
struct follow;
struct select_rules;
struct tracker;

struct follow_options {
	const struct select_rules *rules;
	const pid_t *pids; /* followed whatever the rules say, until they end */
	size_t pid_cnt;
};

/* All are kept by reference, but the pids, which must be of running processes: -ESRCH, and which
 * one is not was said. */
int follow_new(struct engine *e, struct tracker *t, const struct follow_options *opts,
	       struct follow **ret);
void follow_free(struct follow *f);

/*
 * From now on these rules, by reference, and pids; of those that do not run it is said that they are
 * left out. follow_scan() then lets go who is not selected any more. -ENOMEM: all is as it was.
 */
int follow_select(struct follow *f, const struct select_rules *rules, const pid_t *pids,
		  size_t pid_cnt);

/* Costs little for processes that are as they were: see follow.c. */
int follow_scan(struct follow *f);
/* A process has mapped a file executable. Cheap; follow_look() looks at those that were noted. */
void follow_note(struct follow *f, pid_t pid);
int follow_look(struct follow *f);
/* A followed process executes another program: the next scan looks at it closely. */
void follow_note_exec(struct follow *f, pid_t pid);
/* Some were not noted: the next scan looks as closely. */
void follow_note_lost(struct follow *f);
/* Selected processes that run and cannot be followed, as of the last scan. */
size_t follow_refused_cnt(const struct follow *f);

#endif
