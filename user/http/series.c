/* SPDX-License-Identifier: MIT */
/* series.c - see series.h. */
#include "http/series.h"

#include "base/strset.h"
#include "profile/profile.h"
#include "profile/profile_copy.h"
#include "profile/thread_pool.h"

/* Pyroscope accepts by default 30 labels of a series, and values of 2048 bytes. The labels of the whole profile
 * need their share. */
#define PAIRS_MAX 16
#define VALUE_BYTES_MAX 2048
#define NAME_BYTES_MAX 128
/* For each pair: two ids and their separators. */
#define KEY_BYTES (PAIRS_MAX * 44)

struct series_pair {
	int64_t key, value; /* ids in texts */
};

struct series_group {
	uint32_t pair_first, pair_cnt; /* sorted by key */
	int64_t inuse_bytes, alloc_bytes;
	uint32_t rank; /* 0 = the largest */
};

/* Rows by the labels that are kept: a bounded number of groups, and an order in which equal rows lie side by side. */
struct series_groups {
	const struct profile *p;
	struct strset *texts;
	struct strset *keys; /* a group as a text: its id is the group's index + 1 */
	VEC(struct series_pair) pairs;
	VEC(struct series_group) groups;
	uint32_t *group_of; /* of each row; groups that went into the rest have its number */
	uint32_t *order; /* rows by (rank of the group, stack): the rest last */
	size_t folded_cnt;
};

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

static void release_groups(struct series_groups *g)
{
	strset_free(g->texts);
	strset_free(g->keys);
	vec_release(&g->pairs);
	vec_release(&g->groups);
	free(g->group_of);
	free(g->order);
	memset(g, 0, sizeof(*g));
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
		release_groups(g);
		return err;
	}
	for (size_t i = 0; i < p->samples.cnt; i++)
		g->order[i] = i;
	qsort_r(g->order, p->samples.cnt, sizeof(*g->order), compare_rows, g);
	return 0;
}

/* Return the value of a group's label, or NULL. */
static const char *group_text(const struct series_groups *g, uint32_t group, const char *key)
{
	const struct series_group *from = &g->groups.data[group];

	for (uint32_t i = 0; i < from->pair_cnt; i++) {
		const struct series_pair *pair = &g->pairs.data[from->pair_first + i];

		if (!strcmp(strset_get(g->texts, pair->key), key))
			return strset_get(g->texts, pair->value);
	}
	return NULL;
}

/* Rows with the same group and stack are neighbours in order: sum up those from i on. Return the first row after
 * them. */
static size_t sum_equal_rows(const struct series_groups *g, size_t i, int64_t *sums,
			     bool *ret_is_zero)
{
	const struct profile *p = g->p;
	uint32_t first = g->order[i];

	*ret_is_zero = true;
	memset(sums, 0, p->types.cnt * sizeof(*sums));
	for (; i < p->samples.cnt; i++) {
		uint32_t row = g->order[i];
		const int64_t *values = p->values.data + p->samples.data[row].value_first;

		if (g->group_of[row] != g->group_of[first] || compare_stacks(p, row, first))
			break;
		for (size_t k = 0; k < p->types.cnt; k++) {
			if (__builtin_add_overflow(sums[k], values[k], &sums[k]))
				sums[k] = INT64_MAX;
			*ret_is_zero = *ret_is_zero && !sums[k];
		}
	}
	return i;
}

static int add_row(struct profile_copy *c, uint32_t row, const int64_t *sums,
		   const struct profile_label *labels, size_t label_cnt)
{
	const struct profile_sample *s = &c->from->samples.data[row];
	int err = profile_copy_stack(c, c->from->sample_locs.data + s->loc_first, s->loc_cnt);

	return err ? err :
		     profile_add_sample(c->to, c->stack.data, s->loc_cnt, sums, labels, label_cnt,
					NULL);
}

static int add_series(struct series_set *set, const struct series_groups *g, uint32_t group,
		      struct profile_copy *c)
{
	struct series s = {
		.scope = strdup(group_text(g, group, "scope")),
		.pool = strdup(group_text(g, group, "thread")),
	};

	if (!s.scope || !s.pool || vec_push(&set->list, s)) {
		free(s.scope);
		free(s.pool);
		return -ENOMEM;
	}
	set->list.data[set->list.cnt - 1].profile = profile_copy_take(c);
	return 0;
}

/* Make the profile of the group that begins at *i. */
static int split_one(struct series_set *set, const struct series_groups *g, size_t *i,
		     int64_t *sums)
{
	uint32_t group = g->group_of[g->order[*i]];
	struct profile_copy c;
	int err = profile_copy_begin(&c, g->p, false);

	if (err)
		return err;
	while (!err && *i < g->p->samples.cnt && g->group_of[g->order[*i]] == group) {
		uint32_t row = g->order[*i];
		bool is_zero;

		*i = sum_equal_rows(g, *i, sums, &is_zero);
		if (!is_zero)
			err = add_row(&c, row, sums, NULL, 0);
	}
	if (!err && c.to->samples.cnt)
		err = add_series(set, g, group, &c);
	profile_copy_release(&c);
	return err;
}

int series_split(const struct profile *p, size_t max_cnt, struct series_set *ret)
{
	int64_t *sums = calloc(p->types.cnt + 1, sizeof(*sums));
	struct series_groups g = { 0 };
	int err;

	memset(ret, 0, sizeof(*ret));
	if (!sums)
		return -ENOMEM;
	err = group_all(p, max_cnt, pairs_of_pool, NULL, &g);
	for (size_t i = 0; i < p->samples.cnt && !err;)
		err = split_one(ret, &g, &i, sums);
	if (err)
		series_release(ret);
	else
		ret->folded_cnt = g.folded_cnt;
	release_groups(&g);
	free(sums);
	return err;
}

void series_release(struct series_set *set)
{
	for (size_t i = 0; i < set->list.cnt; i++) {
		profile_free(set->list.data[i].profile);
		free(set->list.data[i].scope);
		free(set->list.data[i].pool);
	}
	vec_release(&set->list);
	set->folded_cnt = 0;
}

/* Write the group's labels as labels of a row; labels has room for all. */
static int row_labels(struct profile_copy *c, const struct series_groups *g, uint32_t group,
		      struct profile_label *labels)
{
	const struct series_group *from = &g->groups.data[group];

	for (uint32_t i = 0; i < from->pair_cnt; i++) {
		const struct series_pair *pair = &g->pairs.data[from->pair_first + i];

		labels[i] = (struct profile_label){
			.key_str = profile_str(c->to, strset_get(g->texts, pair->key)),
			.str = profile_str(c->to, strset_get(g->texts, pair->value)),
		};
		if (labels[i].key_str < 0 || labels[i].str < 0)
			return -ENOMEM;
	}
	return 0;
}

static int copy_rows(struct profile_copy *c, const struct series_groups *g, int64_t *sums,
		     struct profile_label *labels)
{
	uint32_t last = HT_NO_INDEX;
	int err = 0;

	for (size_t i = 0; i < g->p->samples.cnt && !err;) {
		uint32_t row = g->order[i], group = g->group_of[row];
		bool is_zero;

		i = sum_equal_rows(g, i, sums, &is_zero);
		if (is_zero)
			continue;
		if (group != last)
			err = row_labels(c, g, group, labels);
		last = group;
		if (!err)
			err = add_row(c, row, sums, labels, g->groups.data[group].pair_cnt);
	}
	return err;
}

int series_rows(const struct profile *p, size_t max_cnt, const char *const *taken,
		struct profile **ret, size_t *ret_folded_cnt)
{
	int64_t *sums = calloc(p->types.cnt + 1, sizeof(*sums));
	struct profile_label *labels = NULL;
	struct series_groups g = { 0 };
	struct profile_copy c = { 0 };
	int err = sums ? group_all(p, max_cnt, pairs_of_labels, taken, &g) : -ENOMEM;

	if (!err) {
		labels = calloc(g.pairs.cnt + 1, sizeof(*labels));
		err = labels ? profile_copy_begin(&c, p, true) : -ENOMEM;
	}
	if (!err)
		err = copy_rows(&c, &g, sums, labels);
	if (!err) {
		*ret = profile_copy_take(&c);
		*ret_folded_cnt = g.folded_cnt;
	}
	profile_copy_release(&c);
	release_groups(&g);
	free(labels);
	free(sums);
	return err;
}
