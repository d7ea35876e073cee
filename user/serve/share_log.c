/* SPDX-License-Identifier: MIT */
/* share_log.c - see share_log.h. */
#include "serve/share_log.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/hmap.h"
#include "base/log.h"
#include "heaptap/abi.h"
#include "kernel/engine.h"
#include "proc/process.h"

struct share_log {
	struct engine *engine;
	struct hmap told; /* struct ht_image_key -> bit mask of tables */
	struct hmap next; /* the same, of the images that are there at this look */
};

static const struct {
	const char *table, *loss;
} words[] = {
	[HT_SHARED_LIVE] = { "live samples (--max-live)",
			     "what it allocates from now on is missing from in-use" },
	[HT_SHARED_TOTALS] = { "sums (--max-stacks)",
			       "what it allocates from now on is missing from allocated" },
	[HT_SHARED_STACKS] = { "stacks (--max-stacks)", "its new stacks are not kept" },
	[HT_SHARED_CONTEXTS] = { "threads and scopes", "its new ones are not told apart" },
	[HT_SHARED_SCOPES] = { "scopes", "its new ones are shown as (other)" },
	[HT_SHARED_LABELS] = { "labels", "its new ones are not kept" },
	[HT_SHARED_INSTANCES] = { "live tasks", "its new ones are not told apart" },
};
_Static_assert(sizeof(words) / sizeof(*words) == HT_SHARED_CNT, "one for each table");

int share_log_new(struct engine *e, struct share_log **ret)
{
	struct share_log *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->engine = e;
	hmap_init(&s->told, sizeof(struct ht_image_key));
	hmap_init(&s->next, sizeof(struct ht_image_key));
	*ret = s;
	return 0;
}

void share_log_free(struct share_log *s)
{
	if (!s)
		return;
	hmap_release(&s->told);
	hmap_release(&s->next);
	free(s);
}

static void tell(const struct ht_image_key *key, const struct ht_image *image, enum ht_shared table)
{
	struct process_info info = { 0 };

	process_glance((pid_t)key->tgid, &info);
	log_warn(
		"serve: PID %u (%s) has used up its share of the table of %s, with %u entries: %s; "
		"no other process loses anything",
		key->tgid, info.comm, words[table].table, image->used[table], words[table].loss);
}

static int on_image(void *ctx, const struct ht_image_key *key, const struct ht_image *image)
{
	struct share_log *s = ctx;
	const uint64_t *told = hmap_get(&s->told, key);
	uint64_t mask = 0;

	for (int table = 0; table < HT_SHARED_CNT; table++) {
		if (!image->refused[table])
			continue;
		mask |= UINT64_C(1) << table;
		if (!told || !(*told >> table & 1))
			tell(key, image, (enum ht_shared)table);
	}
	return mask ? hmap_put(&s->next, key, mask) : 0;
}

int share_log_look(struct share_log *s)
{
	struct hmap told = s->told;
	int err = engine_each_image(s->engine, on_image, s);

	s->told = s->next;
	hmap_release(&told);
	hmap_init(&s->next, sizeof(struct ht_image_key));
	return err;
}
