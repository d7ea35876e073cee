/* SPDX-License-Identifier: MIT */
/* texts.c - see texts.h. */
#include "base/texts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

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

bool texts_equal(const struct texts *a, const struct texts *b)
{
	bool is = a->cnt == b->cnt;

	for (size_t i = 0; i < a->cnt && is; i++)
		is = !strcmp(a->data[i], b->data[i]);
	return is;
}
