/* SPDX-License-Identifier: MIT */
/*
 * heap_kind.h - whose memory would be seen in a recording? What a program's runtime keeps for itself, no
 * probe on malloc sees; and what to say about that, for all who say it.
 */
#ifndef HT_PROC_HEAP_KIND_H
#define HT_PROC_HEAP_KIND_H

#include <stdbool.h>
#include <stddef.h>

struct process_info;

struct heap_kind {
	bool is_go; /* its executable was made by Go's linker */
	bool is_static, has_names; /* its executable: no loader; a symbol table */
	bool is_cpython;
	bool has_plain_malloc; /* CPython that was told so: PYTHONMALLOC=malloc */
	size_t file_cnt, unread_cnt; /* with code that it maps; of them those that cannot be read */
};

/* Of a running process. What cannot be read is taken for ordinary. */
void heap_kind_read(const struct process_info *info, struct heap_kind *ret);
/* Of a program that will map these files, its executable first, with our environment. */
void heap_kind_of_files(const char *const *paths, size_t cnt, struct heap_kind *ret);
/* Is this the interpreter, or its library? By its name. */
bool heap_kind_is_cpython_file(const char *path);

struct heap_words {
	char what[320];
	char advice[320]; /* what to do; "" = nothing */
};

#define HEAP_KIND_LOOKED_FOR "malloc, jemalloc, tcmalloc, mimalloc, operator new"

/* No allocator is mapped: nothing can be recorded. */
void heap_words_none(const struct heap_kind *k, struct heap_words *ret);
/* An allocator is mapped, but what the program keeps in memory is elsewhere. false: it is not. */
bool heap_words_partial(const struct heap_kind *k, struct heap_words *ret);

#endif
