/* SPDX-License-Identifier: MIT */
/*
 * alloc_unseen.h - allocators in a file that lost the names of its functions: what they allocate, or free, is not seen.
 * A stripped file still has the texts of an allocator's messages, by which it is known.
 */
#ifndef HT_ALLOC_UNSEEN_H
#define HT_ALLOC_UNSEEN_H

#include <stdint.h>

struct alloc_file;
struct elf_file;

enum alloc_unseen_kind {
	ALLOC_UNSEEN_NONE,
	ALLOC_UNSEEN_ALL, /* an allocator of which no function has a name */
	ALLOC_UNSEEN_PARTS, /* malloc and free have names; functions for aligned blocks have none */
	ALLOC_UNSEEN_FREES, /* ... and blocks may be freed by a function that has none */
	ALLOC_UNSEEN_INLINED, /* the allocator is inlined into its callers */
	ALLOC_UNSEEN_FOREIGN, /* the file is not probed, because another user could let that wait for ever */
	ALLOC_UNSEEN_CNT,
};

struct alloc_unseen {
	uint32_t kind; /* enum alloc_unseen_kind */
	char family[16]; /* "jemalloc" */
};

/* af: what alloc_file_scan() found in the file, or NULL. */
void alloc_unseen_find(struct elf_file *ef, const struct alloc_file *af, struct alloc_unseen *ret);

/* Room for the words below. */
#define ALLOC_UNSEEN_WORDS 160
/* "contains jemalloc, whose functions have no names: what it allocates is not seen" */
const char *alloc_unseen_words(const struct alloc_unseen *u, char buf[ALLOC_UNSEEN_WORDS]);

#endif
