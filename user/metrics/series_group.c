/* SPDX-License-Identifier: MIT */
/* series_group.c - see series_group.h. */
#include "metrics/series_group.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strset.h"
#include "profile/profile.h"
#include "profile/thread_pool.h"

/* Pyroscope accepts by default 30 labels of a series, and values of 2048 bytes. The labels of the whole profile
 * need their share. */
#define PAIRS_MAX 16
#define VALUE_BYTES_MAX 2048
#define NAME_BYTES_MAX 128
/* For each pair: two ids and their separators. */
#define KEY_BYTES (PAIRS_MAX * 44)

struct pair_list {
	struct series_pair pairs[PAIRS_MAX];
	size_t cnt;
};

static int64_t add_value(struct series_groups *g, const char *value)
{
	size_t n = strlen(value);

	if (n > VALUE_BYTES_MAX) {
		n = VALUE_BYTES_MAX;
		while (n && ((unsigned char)value[n] & 0xc0) == 0x80)
			n--;
	}
	return strset_add_n(g->texts, value, n);
}

/* Insert a pair in order; an existing key keeps its value. One pair too many is left out. */
static int add_pair(struct series_groups *g, struct pair_list *list, const char *key,
		    const char *value)
{
	struct series_pair pair = { strset_add(g->texts, key), add_value(g, value) };
	size_t at = 0;

	if (pair.key < 0 || pair.value < 0)
		return -ENOMEM;
	while (at < list->cnt && list->pairs[at].key < pair.key)
		at++;
	if ((at < list->cnt && list->pairs[at].key == pair.key) || list->cnt == PAIRS_MAX)
		return 0;
	memmove(&list->pairs[at + 1], &list->pairs[at], (list->cnt - at) * sizeof(pair));
	list->pairs[at] = pair;
	list->cnt++;
	return 0;
}

static int add_pool(struct series_groups *g, struct pair_list *list, const char *thread)
{
	char pool[256];

	/* A name this long is not the kernel's; use it as it is. */
	if (thread_pool_name(thread, pool, sizeof(pool)) < 0)
		return add_pair(g, list, "thread", thread);
	return add_pair(g, list, "thread", pool);
}

/* Return the group of these labels; add it if it is new. */
static int64_t intern_group(struct series_groups *g, const struct pair_list *list)
{
	struct series_group group = { .pair_first = g->pairs.cnt, .pair_cnt = list->cnt };
	char key[KEY_BYTES] = "none";
	size_t used = 0;
	int64_t id;

	for (size_t i = 0; i < list->cnt; i++)
		used += snprintf(key + used, sizeof(key) - used, "%" PRId64 "=%" PRId64 ",",
				 list->pairs[i].key, list->pairs[i].value);
	id = strset_add(g->keys, key);
	if (id < 0)
		return id;
	if ((size_t)id <= g->groups.cnt)
		return id - 1;
	for (size_t i = 0; i < list->cnt; i++)
		if (vec_push(&g->pairs, list->pairs[i]))
			return -ENOMEM;
	return vec_push(&g->groups, group) ? -ENOMEM : id - 1;
}

static int pairs_of_pool(struct series_groups *g, const struct profile_sample *s,
			 const char *const *taken, struct pair_list *list)
{
	const char *scope = profile_sample_label(g->p, s, "scope");
	const char *thread = profile_sample_label(g->p, s, "thread");
	int err = add_pair(g, list, "scope", scope ? scope : SERIES_NONE);

	(void)taken;
	return err ? err : add_pool(g, list, thread ? thread : SERIES_NONE);
}

/* Make a name that Prometheus accepts, and that the series does not have yet. */
static void clean_name(const char *name, const char *const *taken, char *to, size_t cap)
{
	static const char prefix[] = "exported_";
	size_t used = snprintf(to, cap, "%s", name), room = cap - sizeof(prefix);
	bool is_taken;

	if (used >= cap)
		used = cap - 1;
	for (size_t i = 0; i < used; i++)
		if (!isalnum((unsigned char)to[i]) || (!i && isdigit((unsigned char)to[i])))
			to[i] = '_';
	is_taken = !strncmp(to, "__", 2) || !*to;
	for (; !is_taken && *taken; taken++)
		is_taken = !strcmp(to, *taken);
	if (!is_taken)
		return;
	to[used < room ? used : room] = '\0';
	memmove(to + sizeof(prefix) - 1, to, strlen(to) + 1);
	memcpy(to, prefix, sizeof(prefix) - 1);
}

static int pairs_of_labels(struct series_groups *g, const struct profile_sample *s,
			   const char *const *taken, struct pair_list *list)
{
	char name[NAME_BYTES_MAX];
	int err = 0;

	for (uint32_t i = 0; i < s->label_cnt && !err; i++) {
		const struct profile_label *l = &g->p->labels.data[s->label_first + i];
		const char *key = profile_text(g->p, l->key_str);

		if (!l->str || !strcmp(key, "task") || !strcmp(key, "task_state"))
			continue;
		clean_name(key, taken, name, sizeof(name));
		if (!strcmp(name, "thread"))
			err = add_pool(g, list, profile_text(g->p, l->str));
		else
			err = add_pair(g, list, name, profile_text(g->p, l->str));
	}
	return err;
}

typedef int (*pairs_fn)(struct series_groups *g, const struct profile_sample *s,
			const char *const *taken, struct pair_list *list);

static int64_t saturating_add(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? (a < 0 ? INT64_MIN : INT64_MAX) : sum;
}

static int group_rows(struct series_groups *g, pairs_fn fn, const char *const *taken)
{
	int inuse = profile_find_type(g->p, "inuse_space");
	int alloc = profile_find_type(g->p, "alloc_space");

	for (size_t i = 0; i < g->p->samples.cnt; i++) {
		const struct profile_sample *s = &g->p->samples.data[i];
		const int64_t *values = g->p->values.data + s->value_first;
		struct pair_list list = { .cnt = 0 };
		int64_t id;
		int err = fn(g, s, taken, &list);

		if (err)
			return err;
		id = intern_group(g, &list);
		if (id < 0)
			return (int)id;
		g->group_of[i] = id;
		if (inuse >= 0)
			g->groups.data[id].inuse_bytes =
				saturating_add(g->groups.data[id].inuse_bytes, values[inuse]);
		if (alloc >= 0)
			g->groups.data[id].alloc_bytes =
				saturating_add(g->groups.data[id].alloc_bytes, values[alloc]);
	}
	return 0;
}

/* Compare indexes last: the order must not depend on the sort. */
static int compare_groups(const void *a, const void *b, void *ctx)
{
	const struct series_groups *g = ctx;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct series_group *x = &g->groups.data[i], *y = &g->groups.data[k];

	if (x->inuse_bytes != y->inuse_bytes)
		return x->inuse_bytes > y->inuse_bytes ? -1 : 1;
	if (x->alloc_bytes != y->alloc_bytes)
		return x->alloc_bytes > y->alloc_bytes ? -1 : 1;
	return i < k ? -1 : i > k;
}

static int64_t intern_other(struct series_groups *g, bool has_thread)
{
	struct pair_list list = { .cnt = 0 };
	int err = add_pair(g, &list, "scope", SERIES_OTHER);

	if (!err && has_thread)
		err = add_pair(g, &list, "thread", SERIES_OTHER);
	return err ? err : intern_group(g, &list);
}

/* Keep the first max_cnt - 1 groups; merge the others into one, which comes last. */
static int fold_groups(struct series_groups *g, size_t max_cnt, bool other_has_thread)
{
	size_t cnt = g->groups.cnt;
	uint32_t *by_size = calloc(cnt + 1, sizeof(*by_size));
	int64_t other = -1;
	int err = by_size ? 0 : -ENOMEM;

	for (size_t i = 0; i < cnt && !err; i++)
		by_size[i] = i;
	if (!err)
		qsort_r(by_size, cnt, sizeof(*by_size), compare_groups, g);
	if (!err && cnt > max_cnt) {
		other = intern_other(g, other_has_thread);
		err = other < 0 ? (int)other : 0;
	}
	for (size_t i = 0; i < cnt && !err; i++)
		g->groups.data[by_size[i]].rank = i;
	if (!err && other >= 0) {
		/* The group may exist already, and even be a large one, as the program may use that name. */
		g->groups.data[other].rank = UINT32_MAX;
		for (size_t i = 0; i < g->p->samples.cnt; i++)
			if (g->groups.data[g->group_of[i]].rank >= max_cnt - 1)
				g->group_of[i] = other;
		g->folded_cnt = cnt - (max_cnt - 1);
	}
	free(by_size);
	return err;
}

static int compare_stacks(const struct profile *p, uint32_t a, uint32_t b)
{
	const struct profile_sample *x = &p->samples.data[a], *y = &p->samples.data[b];

	if (x->loc_cnt != y->loc_cnt)
		return x->loc_cnt < y->loc_cnt ? -1 : 1;
	if (!x->loc_cnt)
		return 0;
	return memcmp(p->sample_locs.data + x->loc_first, p->sample_locs.data + y->loc_first,
		      x->loc_cnt * sizeof(*p->sample_locs.data));
}

bool series_same_stack(const struct profile *p, uint32_t a, uint32_t b)
{
	return !compare_stacks(p, a, b);
}

static int compare_rows(const void *a, const void *b, void *ctx)
{
	const struct series_groups *g = ctx;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	uint32_t x = g->groups.data[g->group_of[i]].rank, y = g->groups.data[g->group_of[k]].rank;
	int stacks;

	if (x != y)
		return x < y ? -1 : 1;
	stacks = compare_stacks(g->p, i, k);
	return stacks ? stacks : i < k ? -1 : i > k;
}

static int group_all(const struct profile *p, size_t max_cnt, pairs_fn fn, const char *const *taken,
		     struct series_groups *ret)
{
	struct series_groups *g = ret;
	int err;

	memset(g, 0, sizeof(*g));
	g->p = p;
	g->group_of = calloc(p->samples.cnt + 1, sizeof(*g->group_of));
	g->order = calloc(p->samples.cnt + 1, sizeof(*g->order));
	err = g->group_of && g->order ? strset_new(&g->texts) : -ENOMEM;
	if (!err)
		err = strset_new(&g->keys);
	if (!err)
		err = group_rows(g, fn, taken);
	if (!err)
		err = fold_groups(g, max_cnt, fn == pairs_of_pool);
	if (err) {
		series_groups_release(g);
		return err;
	}
	for (size_t i = 0; i < p->samples.cnt; i++)
		g->order[i] = i;
	qsort_r(g->order, p->samples.cnt, sizeof(*g->order), compare_rows, g);
	return 0;
}

int series_groups_by_pool(const struct profile *p, size_t max_cnt, struct series_groups *ret)
{
	return group_all(p, max_cnt, pairs_of_pool, NULL, ret);
}

int series_groups_by_labels(const struct profile *p, size_t max_cnt, const char *const *taken,
			    struct series_groups *ret)
{
	return group_all(p, max_cnt, pairs_of_labels, taken, ret);
}

void series_groups_release(struct series_groups *g)
{
	strset_free(g->texts);
	strset_free(g->keys);
	vec_release(&g->pairs);
	vec_release(&g->groups);
	free(g->group_of);
	free(g->order);
	memset(g, 0, sizeof(*g));
}

const char *series_group_text(const struct series_groups *g, uint32_t group, const char *key)
{
	const struct series_group *from = &g->groups.data[group];

	for (uint32_t i = 0; i < from->pair_cnt; i++) {
		const struct series_pair *pair = &g->pairs.data[from->pair_first + i];

		if (!strcmp(strset_get(g->texts, pair->key), key))
			return strset_get(g->texts, pair->value);
	}
	return NULL;
}
