/* SPDX-License-Identifier: MIT */
/* texts.h - a list of texts that owns them. Zero-initialised. */
#ifndef HT_BASE_TEXTS_H
#define HT_BASE_TEXTS_H

#include <stdbool.h>
#include <stddef.h>

struct texts {
	char **data;
	size_t cnt, cap;
};

/* Add a copy of text. -ENOMEM leaves the list as it was. */
int texts_add(struct texts *t, const char *text);
void texts_release(struct texts *t);
bool texts_equal(const struct texts *a, const struct texts *b);

#endif
