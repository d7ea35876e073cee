/* SPDX-License-Identifier: MIT */
/*
 * idle_tasks.h - forget tasks that hold nothing and have been quiet for long.
 *
 * A task whose end the program announces is forgotten by BPF when it is empty. Programs that do
 * not announce it would fill the map of tasks with ended ones; such a task is taken to be over, and
 * if it is not, begins again with its next allocation. Its scope keeps what it has summed up.
 */
#ifndef HT_RECORD_IDLE_TASKS_H
#define HT_RECORD_IDLE_TASKS_H

#include <stdint.h>

#include "base/clock.h"

/* Without a sampled allocation for so long; and how often all are looked through. */
#define IDLE_TASK_NS (30 * NS_PER_S)
#define IDLE_TASKS_INTERVAL_NS (5 * NS_PER_S)
/* What may be done at once. */
#define IDLE_TASKS_BUDGET_NS (2 * NS_PER_MS)

struct engine;
struct idle_tasks;

int idle_tasks_new(struct engine *e, struct idle_tasks **ret);
void idle_tasks_free(struct idle_tasks *it);

/*
 * A slice of about IDLE_TASKS_BUDGET_NS, nothing when nothing is due: of one step at least, which is some
 * thousand tasks. To be called a few times a second. After a failure it begins from the start.
 */
int idle_tasks_run(struct idle_tasks *it);

#endif
