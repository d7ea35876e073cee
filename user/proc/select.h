/* SPDX-License-Identifier: MIT */
/*
 * select.h - which processes are to be followed. Pure: gets facts about a process, answers yes or no.
 *
 * A process is selected when it is named by its pid. Otherwise all of these must hold: at least one of the
 * kinds comm, exe, users, cgroups and containers is given and every given kind has a value that fits, or all
 * processes are wanted; it is as large as min_rss_bytes; and `exclude` fits neither its name nor its
 * executable. A followed process stays selected when it shrinks, or executes a program that is still small.
 */
#ifndef HT_PROC_SELECT_H
#define HT_PROC_SELECT_H

#include "base/std.h"
#include "base/vec.h"

struct cgroup_place;
struct err;

struct select_options {
	bool has_pids; /* processes are named by pid: the other kinds may be left out */
	bool is_all; /* none of the kinds is given: only min_rss_bytes and exclude */
	/* POSIX extended regular expressions that match anywhere; one match in a list is enough */
	struct texts comm, exe, exclude;
	struct texts users; /* names or numbers */
	const struct cgroup_place *cgroups; /* the process is in one of them or below */
	size_t cgroup_cnt;
	struct texts containers; /* beginnings of ids */
	uint64_t min_rss_bytes;
};

struct select_candidate {
	const char *comm;
	const char *exe; /* as the target sees it; "" = not known */
	uid_t uid;
	uint64_t rss_bytes;
	const char *cgroup; /* its /proc/PID/cgroup; wanted if select_needs() says so */
	const char *container_id; /* "" = none; likewise */
	bool is_named; /* by its pid */
	bool is_followed; /* already */
};

struct select_rules;

#define SELECT_COMM_CHARS 15
/*
 * The name of a process: its comm, of which the kernel keeps SELECT_COMM_CHARS; of a longer name the whole one, if it is its
 * executable's. That of a link or a script is not known: its arguments are in its own memory, and may keep a reader
 * waiting. Returns comm, or a part of exe.
 */
const char *select_name(const char *comm, const char *exe);

/* opts is not needed afterwards. -EINVAL with a sentence for the user in why. */
int select_rules_new(const struct select_options *opts, struct select_rules **ret, struct err *why);
void select_rules_free(struct select_rules *r);

/* Check one value: 0, or -EINVAL with a sentence in why. */
int select_check_pattern(const char *text, struct err *why);
int select_check_user(const char *text, struct err *why);

/* Is no process selected but those that are named by their pids? */
bool select_is_of_pids(const struct select_rules *r);
/* What the rules ask of who looks at processes. */
struct select_needs {
	/* Does select_matches() need these texts of a candidate that is not named? Each takes reading a file. */
	bool cgroup, container;
	bool is_all;
	/* May the answer for a process change later, though it has executed no other program and has the same size? */
	bool may_change;
	uint64_t min_rss_bytes;
};
struct select_needs select_needs(const struct select_rules *r);
bool select_matches(const struct select_rules *r, const struct select_candidate *c);

#endif
