/* SPDX-License-Identifier: MIT */
/* vec.c - see vec.h. */
#include "base/vec.h"

int vec_grow(void **data, size_t *cap, size_t need, size_t elem_bytes)
{
	size_t new_cap = *cap ? *cap : 8;
	void *p;

	while (new_cap < need) {
		if (new_cap > SIZE_MAX / 2)
			return -ENOMEM;
		new_cap *= 2;
	}
	if (new_cap > SIZE_MAX / elem_bytes)
		return -ENOMEM;
	p = realloc(*data, new_cap * elem_bytes);
	if (!p)
		return -ENOMEM;
	*data = p;
	*cap = new_cap;
	return 0;
}

void *sorted_get(const void *list, size_t cnt, size_t elem_bytes, size_t off, uint64_t key)
{
	size_t i = sorted_find(list, cnt, elem_bytes, off, key, false);
	const char *found = i < cnt ? (const char *)list + i * elem_bytes : NULL;

	return found && !memcmp(found + off, &key, sizeof(key)) ? (void *)found : NULL;
}

static int compare_at(const void *a, const void *b, void *off)
{
	uint64_t x, y;

	memcpy(&x, (const char *)a + *(const size_t *)off, sizeof(x));
	memcpy(&y, (const char *)b + *(const size_t *)off, sizeof(y));
	return x < y ? -1 : x > y;
}

void sorted_make(void *list, size_t cnt, size_t elem_bytes, size_t off)
{
	if (cnt)
		qsort_r(list, cnt, elem_bytes, compare_at, &off);
}

int texts_add(struct texts *t, const char *text)
{
	if (vec_reserve(t, t->cnt + 1))
		return -ENOMEM;
	t->data[t->cnt] = strdup(text);
	if (!t->data[t->cnt])
		return -ENOMEM;
	t->cnt++;
	return 0;
}

void texts_release(struct texts *t)
{
	for (size_t i = 0; i < t->cnt; i++)
		free(t->data[i]);
	vec_release(t);
}
