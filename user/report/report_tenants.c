/* SPDX-License-Identifier: MIT */
/*
 * report_tenants.c - a summary of the labels that a program put on its threads: for each key, the
 * values that hold most. --by label:KEY has all of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hmap.h"
#include "base/units.h"
#include "report/report_rows.h"
#include "report/report_text.h"

#define KEYS_MAX 2

/* Keys of heaptap itself. */
static const char *const own_keys[] = { "scope", "thread", "task", "task_state", "pid", "comm" };

struct tenant {
	int64_t key_str, value_str; /* strings of the profile */
	int64_t value;
};

struct tenants {
	VEC(struct tenant) list;
	struct hmap index; /* {key, value} -> index in list */
	int64_t keys[KEYS_MAX];
	size_t key_cnt;
};

static bool is_wanted(struct tenants *t, const struct profile *p, const struct profile_label *l)
{
	const char *key = profile_text(p, l->key_str);

	if (!l->str)
		return false;
	for (size_t i = 0; i < sizeof(own_keys) / sizeof(*own_keys); i++)
		if (!strcmp(key, own_keys[i]))
			return false;
	for (size_t i = 0; i < t->key_cnt; i++)
		if (t->keys[i] == l->key_str)
			return true;
	if (t->key_cnt == KEYS_MAX)
		return false;
	t->keys[t->key_cnt++] = l->key_str;
	return true;
}

static int add(struct tenants *t, const struct profile_label *l, int64_t value)
{
	const int64_t id[2] = { l->key_str, l->str };
	const uint64_t *known = hmap_get(&t->index, id);
	struct tenant fresh = { l->key_str, l->str, 0 };
	int err;

	if (known) {
		int64_t *sum = &t->list.data[*known].value;

		*sum = report_add_saturating(*sum, value);
		return 0;
	}
	fresh.value = value;
	err = vec_push(&t->list, fresh);
	return err ? err : hmap_put(&t->index, id, t->list.cnt - 1);
}

static int collect(const struct report *r, struct tenants *t)
{
	const uint32_t *i;
	int err = 0;

	vec_each(&r->chosen, i) {
		const struct profile_sample *s = &r->p->samples.data[*i];
		int64_t value = r->p->values.data[s->value_first + (uint32_t)r->value_type];

		for (uint32_t k = 0; k < s->label_cnt && !err; k++) {
			const struct profile_label *l = &r->p->labels.data[s->label_first + k];

			if (is_wanted(t, r->p, l))
				err = add(t, l, value);
		}
	}
	return err;
}

static int compare_tenants(const void *a, const void *b)
{
	const struct tenant *x = a, *y = b;

	if (x->value != y->value)
		return x->value > y->value ? -1 : 1;
	return x->value_str < y->value_str ? -1 : x->value_str > y->value_str;
}

static size_t count_held(const struct tenants *t, int64_t key_str)
{
	size_t cnt = 0;

	for (size_t i = 0; i < t->list.cnt; i++)
		cnt += t->list.data[i].key_str == key_str && t->list.data[i].value;
	return cnt;
}

/* Write as many values as fit in one line. */
static void put_key(const struct report *r, const struct tenants *t, int64_t key_str, FILE *out)
{
	size_t columns = report_columns(r), used, left = count_held(t, key_str);
	char name[REPORT_FIT_BUF], value[UNITS_BUF];
	bool is_first = true;

	if (!left)
		return;
	used = report_put_name(out, profile_text(r->p, key_str), 16) + 1;
	fputc(':', out);
	for (size_t i = 0; i < t->list.cnt && left; i++) {
		const struct tenant *one = &t->list.data[i];
		size_t width;

		if (one->key_str != key_str || !one->value)
			continue;
		report_fit_name(profile_text(r->p, one->value_str), 20, name);
		report_format_value(r, (double)one->value, value);
		width = report_width(name) + strlen(value) + 3;
		if (!is_first && used + width + (left > 1 ? 12 : 0) > columns)
			break;
		fprintf(out, "%s %s %s", is_first ? "" : ",", name, value);
		used += width;
		is_first = false;
		left--;
	}
	if (left)
		fprintf(out, ", %zu more", left);
	fputc('\n', out);
}

/* Left out if memory runs out: it only summarizes --by label. */
void report_put_tenants(const struct report *r, FILE *out)
{
	struct tenants t = { 0 };

	hmap_init(&t.index, 2 * sizeof(int64_t));
	if (!collect(r, &t)) {
		if (t.list.cnt)
			qsort(t.list.data, t.list.cnt, sizeof(*t.list.data), compare_tenants);
		for (size_t i = 0; i < t.key_cnt; i++)
			put_key(r, &t, t.keys[i], out);
	}
	vec_release(&t.list);
	hmap_release(&t.index);
}
