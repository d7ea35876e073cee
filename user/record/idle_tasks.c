/* SPDX-License-Identifier: MIT */
/* idle_tasks.c - see idle_tasks.h. */
#include "record/idle_tasks.h"

#include <stdlib.h>

#include "base/vec.h"
#include "kernel/engine.h"

struct idle_list {
	VEC(struct ht_instance_key) keys;
	uint64_t before_ns;
};

static int on_instance(void *ctx, const struct ht_instance_key *k, const struct ht_instance *v)
{
	struct idle_list *list = ctx;

	if (v->inuse_objects_16 || v->last_ns >= list->before_ns)
		return 0;
	return vec_push(&list->keys, *k);
}

int idle_tasks_forget(struct engine *e, uint64_t before_ns)
{
	struct idle_list list = { .before_ns = before_ns };
	int err = engine_each_instance(e, on_instance, &list);

	/* An allocation in between would be lost to the task's sums, not to its scope's: by now it
	 * has been quiet for so long that this is not worth a lock. */
	for (size_t i = 0; i < list.keys.cnt && !err; i++)
		engine_del_instance(e, &list.keys.data[i]);
	vec_release(&list.keys);
	return err;
}
