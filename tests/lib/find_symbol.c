/* SPDX-License-Identifier: MIT */
/* find_symbol.c - see find_symbol.h. */
#include "find_symbol.h"

#include <errno.h>
#include <string.h>

struct by_name {
	const char *name;
	struct elf_symbol *ret;
};

static int match_name(void *ctx, const struct elf_symbol *sym)
{
	struct by_name *q = ctx;

	if (strcmp(sym->name, q->name))
		return 0;
	*q->ret = *sym;
	return 1;
}

int find_symbol(const struct elf_symbols *s, const char *name, struct elf_symbol *ret)
{
	struct by_name q = { .name = name, .ret = ret };

	if (!elf_symbols_each(s, match_name, &q))
		return -ENOENT;
	ret->name = name;
	return 0;
}
