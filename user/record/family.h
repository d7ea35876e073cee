/* SPDX-License-Identifier: MIT */
/* family.h - the children that followed processes have already, and theirs. */
#ifndef HT_RECORD_FAMILY_H
#define HT_RECORD_FAMILY_H

struct engine;
struct targets;
struct tracker;

/*
 * Follow all descendants of the followed processes, and note them as targets. Forks are told by the
 * engine's events from when the parent is followed on, and what was forked before that is in /proc: who
 * looks after it has begun, until nobody is new, misses none. One whose parent has ended meanwhile is
 * not known for a descendant. Those that cannot be recorded are left out, and that is said.
 */
int family_add(struct engine *e, struct tracker *t, struct targets *targets);

#endif
