/* SPDX-License-Identifier: MIT */
/*
 * strset.c - see strset.h. Strings live in blocks that never move; a hash table of ids finds
 * them again.
 */
#include "base/strset.h"

#include "base/hmap.h"
#include "base/printable.h"
#include "base/vec.h"

#define BLOCK_BYTES 65536

struct strset {
	VEC(char *) blocks;
	size_t block_used; /* of the last block */
	VEC(const char *) strings;
	uint32_t *table; /* id + 1, 0 = empty */
	size_t table_cap;
};

int strset_new(struct strset **ret)
{
	struct strset *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	if (strset_add(s, "") != 0) {
		strset_free(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

void strset_free(struct strset *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->blocks.cnt; i++)
		free(s->blocks.data[i]);
	vec_release(&s->blocks);
	vec_release(&s->strings);
	free(s->table);
	free(s);
}

/* Get room for n bytes that never moves. A string longer than a block gets its own block. */
static char *take_room(struct strset *s, size_t n)
{
	char *block;

	if (n <= BLOCK_BYTES && s->blocks.cnt && s->block_used + n <= BLOCK_BYTES) {
		block = s->blocks.data[s->blocks.cnt - 1] + s->block_used;
		s->block_used += n;
		return block;
	}
	block = malloc(n > BLOCK_BYTES ? n : BLOCK_BYTES);
	if (!block || vec_push(&s->blocks, block)) {
		free(block);
		return NULL;
	}
	s->block_used = n > BLOCK_BYTES ? BLOCK_BYTES : n;
	return block;
}

static bool is_valid_utf8(const char *str, size_t n)
{
	for (size_t i = 0, len; i < n; i += len) {
		len = utf8_len(str + i, n - i);
		if (!len)
			return false;
	}
	return true;
}

/* Replace every byte that is no part of a valid sequence by U+FFFD. Return the new length. */
static size_t sanitize(const char *str, size_t n, char *out)
{
	size_t used = 0;

	for (size_t i = 0; i < n;) {
		size_t len = utf8_len(str + i, n - i);

		memcpy(out + used, len ? str + i : "\xef\xbf\xbd", len ? len : 3);
		used += len ? len : 3;
		i += len ? len : 1;
	}
	return used;
}

static size_t slot_of(const struct strset *s, const char *str, size_t n)
{
	size_t i = keyed_hash(str, n) & (s->table_cap - 1);

	while (s->table[i]) {
		const char *known = s->strings.data[s->table[i] - 1];

		if (!strncmp(known, str, n) && !known[n])
			break;
		i = (i + 1) & (s->table_cap - 1);
	}
	return i;
}

static int grow_table(struct strset *s)
{
	size_t old_cap = s->table_cap;
	uint32_t *old = s->table;

	s->table_cap = old_cap ? old_cap * 2 : 64;
	s->table = calloc(s->table_cap, sizeof(*s->table));
	if (!s->table) {
		s->table = old;
		s->table_cap = old_cap;
		return -ENOMEM;
	}
	for (size_t i = 0; i < s->strings.cnt; i++) {
		const char *str = s->strings.data[i];

		s->table[slot_of(s, str, strlen(str))] = i + 1;
	}
	free(old);
	return 0;
}

static int64_t add_valid(struct strset *s, const char *str, size_t n)
{
	size_t slot;
	char *copy;

	if ((s->strings.cnt + 1) * 2 > s->table_cap && grow_table(s))
		return -ENOMEM;
	slot = slot_of(s, str, n);
	if (s->table[slot])
		return s->table[slot] - 1;
	copy = take_room(s, n + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, str, n);
	copy[n] = '\0';
	if (vec_push(&s->strings, copy))
		return -ENOMEM;
	s->table[slot] = s->strings.cnt;
	return s->strings.cnt - 1;
}

int64_t strset_add_n(struct strset *s, const char *str, size_t len)
{
	int64_t id;
	char *clean;

	if (is_valid_utf8(str, len))
		return add_valid(s, str, len);
	clean = malloc(len * 3 + 1);
	if (!clean)
		return -ENOMEM;
	id = add_valid(s, clean, sanitize(str, len, clean));
	free(clean);
	return id;
}

int64_t strset_add(struct strset *s, const char *str)
{
	return strset_add_n(s, str, strlen(str));
}

const char *strset_get(const struct strset *s, int64_t id)
{
	return id >= 0 && (size_t)id < s->strings.cnt ? s->strings.data[id] : "";
}

const char *strset_keep(struct strset *s, const char *str)
{
	int64_t id = strset_add(s, str);

	return id < 0 ? NULL : strset_get(s, id);
}

size_t strset_cnt(const struct strset *s)
{
	return s->strings.cnt;
}
