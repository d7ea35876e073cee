/* SPDX-License-Identifier: MIT */
/* alloc_prefix.c - see allocators_priv.h. */
#include "alloc/allocators_priv.h"

#include <stdbool.h>
#include <string.h>

#define ARRAY_CNT(a) (sizeof(a) / sizeof((a)[0]))

/* The first of a family's names must be there, and one of the others. */
static const struct {
	const char *suffix;
	bool is_mimalloc;
	uint32_t bit;
} suffixes[] = {
	{ "mallctl", false, 1 },	{ "nallocx", false, 2 },  { "mallocx", false, 4 },
	{ "sdallocx", false, 8 },	{ "mi_malloc", true, 1 }, { "mi_heap_malloc", true, 2 },
	{ "mi_theap_malloc", true, 4 }, { "mi_zalloc", true, 8 },
};

/* A prefix is a word of its own: "duckdb_je_". Those of the table are known. */
static bool is_prefix(const char *name, size_t bytes)
{
	const char *const *known;
	size_t cnt;

	if (!bytes || bytes >= sizeof(((struct alloc_more_prefix *)NULL)->text) ||
	    name[bytes - 1] != '_')
		return false;
	known = alloc_prefixes(&cnt);
	for (size_t i = 0; i < cnt; i++)
		if (strlen(known[i]) == bytes && !strncmp(known[i], name, bytes))
			return false;
	return true;
}

static void note(struct alloc_prefix_finder *pf, const char *name, size_t bytes, size_t suffix)
{
	struct alloc_more_prefix prefix = { .is_mimalloc = suffixes[suffix].is_mimalloc };
	size_t i;

	memcpy(prefix.text, name, bytes);
	for (i = 0; i < pf->cnt; i++)
		if (pf->all[i].prefix.is_mimalloc == prefix.is_mimalloc &&
		    !strcmp(pf->all[i].prefix.text, prefix.text))
			break;
	if (i == ALLOC_CANDIDATES_CAP)
		return;
	if (i == pf->cnt) {
		pf->all[i].prefix = prefix;
		pf->all[i].seen = 0;
		pf->cnt++;
	}
	pf->all[i].seen |= suffixes[suffix].bit;
}

void alloc_prefix_note(struct alloc_prefix_finder *pf, const char *name)
{
	size_t bytes, len;

	/* mangled names are the most, and have no such prefix */
	if (name[0] == '_' && (name[1] == 'Z' || name[1] == 'R'))
		return;
	bytes = strlen(name);
	for (size_t i = 0; i < ARRAY_CNT(suffixes); i++) {
		len = strlen(suffixes[i].suffix);
		if (bytes > len && !strcmp(name + bytes - len, suffixes[i].suffix) &&
		    is_prefix(name, bytes - len))
			note(pf, name, bytes - len, i);
	}
}

void alloc_prefix_take(const struct alloc_prefix_finder *pf, struct alloc_lookup *lk)
{
	for (size_t i = 0; i < pf->cnt && lk->more_cnt < ALLOC_MORE_PREFIXES_CAP; i++)
		if (pf->all[i].seen & 1 && pf->all[i].seen & ~1U)
			lk->more[lk->more_cnt++] = pf->all[i].prefix;
}
