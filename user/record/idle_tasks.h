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

struct engine;

/* Those without a sampled allocation since before_ns (CLOCK_MONOTONIC). */
int idle_tasks_forget(struct engine *e, uint64_t before_ns);

#endif
