/* SPDX-License-Identifier: MIT */
/* alloc_unseen.c - see alloc_unseen.h. */
#include "alloc/alloc_unseen.h"

#include <stdio.h>
#include <string.h>

#include "alloc/alloc_contents.h"
#include "alloc/allocators.h"

void alloc_unseen_find(struct elf_file *ef, const struct alloc_file *af, struct alloc_unseen *ret)
{
	const char *family = "jemalloc";

	memset(ret, 0, sizeof(*ret));
	if (af && af->inlined) {
		family = af->inlined;
		ret->kind = ALLOC_UNSEEN_INLINED;
	} else if (af && af->plain != ALLOC_PLAIN_NOT) {
		ret->kind =
			af->plain == ALLOC_PLAIN_FREED ? ALLOC_UNSEEN_PARTS : ALLOC_UNSEEN_FREES;
	} else {
		family = alloc_contents(ef, af ? af->family_bits : 0);
		ret->kind = family ? ALLOC_UNSEEN_ALL : ALLOC_UNSEEN_NONE;
	}
	snprintf(ret->family, sizeof(ret->family), "%s", family ? family : "");
}

const char *alloc_unseen_words(const struct alloc_unseen *u, char buf[ALLOC_UNSEEN_WORDS])
{
	static const char *const words[ALLOC_UNSEEN_CNT] = {
		[ALLOC_UNSEEN_NONE] = "",
		[ALLOC_UNSEEN_ALL] =
			"contains %s, whose functions have no names: what it allocates is not seen",
		[ALLOC_UNSEEN_PARTS] =
			"contains %s, of which only malloc and free have names: aligned blocks are "
			"not seen",
		[ALLOC_UNSEEN_FREES] =
			"contains %s, of which only malloc and free have names: other frees are not "
			"seen",
		[ALLOC_UNSEEN_INLINED] =
			"contains %s, inlined into its callers: what these allocate is not seen",
		[ALLOC_UNSEEN_FOREIGN] =
			"contains %s, but is on a file system that another user serves (FUSE) and is not "
			"probed: what it allocates is not seen",
	};

	/* NOLINTNEXTLINE(clang-diagnostic-format-nonliteral) */
	snprintf(buf, ALLOC_UNSEEN_WORDS, words[u->kind < ALLOC_UNSEEN_CNT ? u->kind : 0],
		 u->family);
	return buf;
}
