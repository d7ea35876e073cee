/* SPDX-License-Identifier: MIT */
/*
 * probes_kept.c - see probes_kept.h.
 */
#include "track/probes_kept.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/hmap.h"

struct kept_table {
	struct hmap map; /* pid (0: all) -> enum probes_kept, unless it is PROBES_ALL */
	struct hmap sampled; /* pid -> 1: the process samples itself */
	bool is_shared, is_held;
};

int kept_table_new(bool is_shared, struct kept_table **ret)
{
	struct kept_table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->is_shared = is_shared;
	hmap_init(&t->map, sizeof(uint32_t));
	hmap_init(&t->sampled, sizeof(uint32_t));
	*ret = t;
	return 0;
}

void kept_table_free(struct kept_table *t)
{
	if (!t)
		return;
	hmap_release(&t->map);
	hmap_release(&t->sampled);
	free(t);
}

int kept_table_set(struct kept_table *t, pid_t pid, enum probes_kept kept)
{
	uint32_t key = t->is_shared ? 0 : (uint32_t)pid;

	if (kept != PROBES_ALL)
		return hmap_put(&t->map, &key, kept);
	hmap_del(&t->map, &key);
	return 0;
}

int kept_table_set_sampled(struct kept_table *t, pid_t pid, bool is_sampled)
{
	uint32_t key = (uint32_t)pid;

	if (is_sampled)
		return hmap_put(&t->sampled, &key, 1);
	hmap_del(&t->sampled, &key);
	return 0;
}

void kept_table_forget(struct kept_table *t, pid_t pid)
{
	uint32_t key = (uint32_t)pid;

	hmap_del(&t->sampled, &key);
	hmap_del(&t->map, &key);
}

void kept_table_hold(struct kept_table *t, bool hold)
{
	t->is_held = hold;
}

enum probes_kept kept_table_of(const struct kept_table *t, pid_t pid)
{
	uint32_t key = t->is_shared ? 0 : (uint32_t)pid;
	const uint64_t *kept = hmap_get(&t->map, &key);

	if (kept)
		return (enum probes_kept) * kept;
	return t->is_held ? PROBES_NONE : PROBES_ALL;
}

enum probes_kept kept_table_allocator_of(const struct kept_table *t, pid_t pid)
{
	uint32_t key = (uint32_t)pid;

	return !t->is_shared && hmap_get(&t->sampled, &key) ? PROBES_NONE : kept_table_of(t, pid);
}

enum probes_kept kept_table_of_everyone(const struct kept_table *t)
{
	return t->is_shared ? kept_table_of(t, 0) : PROBES_ALL;
}
