/* SPDX-License-Identifier: MIT */
/*
 * heap_kind.h - which part of a program's memory would be seen in a recording? Probes on malloc do not see the
 * memory that a runtime manages itself. This module has the words about that, for all who report it.
 */
#ifndef HT_PROC_HEAP_KIND_H
#define HT_PROC_HEAP_KIND_H

#include <stdbool.h>
#include <stddef.h>

#include "proc/runtime_kind.h"

struct process_info;

/* Where there is a reader (reader.h), executables are read by a job of it, behind a seal. Run a job of this kind; for
 * reader_start(). */
#define HEAP_KIND_JOB 3
int heap_kind_run_job(const void *args, size_t args_bytes, int out_fd);

struct heap_kind {
	bool is_go; /* its executable was made by Go's linker */
	bool is_static, has_names; /* of the executable: no loader; it has a symbol table */
	enum runtime_kind runtime;
	struct runtime_words own; /* the memory that the runtime manages itself, if any */
	size_t file_cnt, unread_cnt; /* mapped files with code; of those, the unreadable ones */
};

/* Of a running process. Files that cannot be read are taken for ordinary. */
void heap_kind_read(const struct process_info *info, struct heap_kind *ret);
/* Of a program that will map these files, its executable first, with our environment. */
void heap_kind_of_files(const char *const *paths, size_t cnt, struct heap_kind *ret);

struct heap_words {
	char what[320];
	char advice[320]; /* what to do; "" = nothing */
};

#define HEAP_KIND_LOOKED_FOR "malloc, jemalloc, tcmalloc, mimalloc, operator new"

/* No allocator is mapped: nothing can be recorded. */
void heap_words_none(const struct heap_kind *k, struct heap_words *ret);
/* An allocator is mapped, but the program keeps its data elsewhere. false: it does not. */
bool heap_words_partial(const struct heap_kind *k, struct heap_words *ret);

#endif
