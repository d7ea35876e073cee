/* SPDX-License-Identifier: MIT */
/*
 * strset.h - interned strings: equal strings have equal ids, ids run from 0 without gaps, and
 * id 0 is always "". Invalid UTF-8 is replaced (U+FFFD) on the way in, so every string that
 * comes out is valid.
 */
#ifndef HT_BASE_STRSET_H
#define HT_BASE_STRSET_H

#include "base/std.h"

struct strset;

int strset_new(struct strset **ret);
void strset_free(struct strset *s);
/* id >= 0, or -ENOMEM. */
int64_t strset_add(struct strset *s, const char *str);
int64_t strset_add_n(struct strset *s, const char *str, size_t len);
/* Valid until strset_free(); never moves. */
const char *strset_get(const struct strset *s, int64_t id);
/* Add str and return the stored string; NULL when there is no memory, never "" instead. */
const char *strset_keep(struct strset *s, const char *str);
size_t strset_cnt(const struct strset *s);

#endif
