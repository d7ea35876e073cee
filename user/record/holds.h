/* SPDX-License-Identifier: MIT */
/*
 * holds.h - makes a started program wait at each exec until it is probed, with --follow also its children.
 * guardian/exec_hold.h says how, guardian/tracer.c what the program can see of it.
 */
#ifndef HT_RECORD_HOLDS_H
#define HT_RECORD_HOLDS_H

#include <stdbool.h>
#include <sys/types.h>

struct engine;
struct guardian;
struct holds;
struct process_events;
struct tracker;

struct holds_parts {
	struct guardian *guardian;
	struct engine *engine;
	struct tracker *tracker;
	struct process_events *events; /* NULL: there are none */
};

/* Begin with the process that waits to be executed. Logs what is not possible. -errno: nothing is held. */
int holds_begin(const struct holds_parts *parts, pid_t pid, bool is_family, struct holds **ret);
/* Let all go on. NULL is fine. */
void holds_end(struct holds *h);
int holds_fd(const struct holds *h);
/* Handle the processes that are held now. */
void holds_work(struct holds *h);

#endif
