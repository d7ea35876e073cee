/* SPDX-License-Identifier: MIT */
/* idle_tasks.c - see idle_tasks.h. */
#include "record/idle_tasks.h"

#include "kernel/engine.h"

void idle_tasks_release(struct idle_tasks *it)
{
	engine_walk_free(it->walk);
	it->walk = NULL;
}

/* An allocation in between would be missing from the task's sums, not from its scope's. After so long a quiet time
 * this is not worth a lock. */
static int on_instance(void *ctx, const struct ht_instance_key *k, const struct ht_instance *v)
{
	const struct idle_tasks *it = ctx;

	if (!v->inuse_objects_16 && v->last_ns < it->before_ns)
		engine_del_instance(it->engine, k);
	return 0;
}

int idle_tasks_run(struct idle_tasks *it)
{
	uint64_t begin_ns = now_ns();
	bool at_end = false;
	int err = 0;

	if (!it->walk) {
		if (begin_ns < it->due_ns)
			return 0;
		it->due_ns = begin_ns + IDLE_TASKS_INTERVAL_NS;
		it->before_ns = begin_ns - IDLE_TASK_NS;
		err = engine_walk_instances(it->engine, on_instance, it, &it->walk);
	}
	while (!err && !at_end && now_ns() < begin_ns + IDLE_TASKS_BUDGET_NS)
		err = engine_walk_step(it->walk, &at_end);
	if (err || at_end)
		idle_tasks_release(it);
	return err;
}
