/* SPDX-License-Identifier: MIT */
/*
 * child_cleaner.h - forked children without the breakpoints that they have inherited.
 *
 * A child forked from a probed process inherits the breakpoints in its copy of the text, and pays
 * a trap for each although no link wants its hits. Attaching and closing another link at the
 * same sites makes the kernel take them out of every address space that nobody asked for.
 *
 * They go when that link begins to be closed; its end waits for grace periods (120 ms on a Linux 6.18 of
 * two CPUs). So a thread of its own does each, and a child that comes meanwhile need not wait for it.
 */
#ifndef HT_KERNEL_CHILD_CLEANER_H
#define HT_KERNEL_CHILD_CLEANER_H

#include <stdbool.h>

struct attach_request;
struct child_cleaner;

/* -ENOMEM. */
int child_cleaner_new(struct child_cleaner **ret);
/* Waits for what is under way. */
void child_cleaner_free(struct child_cleaner *c);
/* False: so much is under way that more would slow down who forks. */
bool child_cleaner_has_room(struct child_cleaner *c);
/* Clean the children that exist now. Of *req only prog_fd must stay valid until the wait. -errno. */
int child_cleaner_ask(struct child_cleaner *c, const struct attach_request *req);
/* Until no link of it is left. */
void child_cleaner_wait(struct child_cleaner *c);

#endif
