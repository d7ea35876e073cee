/* SPDX-License-Identifier: MIT */
/* texts.c - see texts.h. */
#include "base/texts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

int texts_add(struct texts *t, const char *text)
{
	char *copy = strdup(text);

	if (!copy || vec_push(t, copy)) {
		free(copy);
		return -ENOMEM;
	}
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
