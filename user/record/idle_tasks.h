/* SPDX-License-Identifier: MIT */
/*
 * idle_tasks.h - forgets tasks that hold nothing and have been quiet for long.
 *
 * BPF forgets a task that is empty if the program announces its end. Programs that do not would fill the map of
 * tasks with ended ones. So a quiet, empty task is taken to be over; if it is not, it begins again with its next
 * allocation. Its scope keeps its sums.
 */
#ifndef HT_RECORD_IDLE_TASKS_H
#define HT_RECORD_IDLE_TASKS_H

#include "base/std.h"
#include "base/clock.h"

/* Time without a sampled allocation; and interval between looks through all tasks. */
#define IDLE_TASK_NS (30 * NS_PER_S)
#define IDLE_TASKS_INTERVAL_NS (5 * NS_PER_S)
/* Time that one call may take. */
#define IDLE_TASKS_BUDGET_NS (2 * NS_PER_MS)

struct engine;
struct engine_walk;

struct idle_tasks {
	struct engine *engine; /* set by its owner; the rest is 0 at first */
	struct engine_walk *walk; /* NULL: the last walk is complete */
	uint64_t before_ns; /* tasks that are quiet since then are forgotten */
	uint64_t due_ns;
};
void idle_tasks_release(struct idle_tasks *it);

/*
 * Do a slice of about IDLE_TASKS_BUDGET_NS, or nothing when nothing is due. A slice has at least one step, which is
 * some thousand tasks. Call a few times a second. After a failure it begins from the start.
 */
int idle_tasks_run(struct idle_tasks *it);

#endif
