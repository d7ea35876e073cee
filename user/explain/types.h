/* SPDX-License-Identifier: MIT */
/*
 * explain/types.h - to which C++ class a block of the heap belongs, as its first word says.
 *
 * An object of a class with virtual functions begins with the address of the class's table of them (vtable). It is one if
 * a file is mapped there, the first function is in executable memory, and of the words before it
 *
 *	[-2]	the offset to the object's start is 0
 *	[-1]	the type_info has a mangled name, and begins with the address of another such table, whose own type_info has
 *		the name of one of the three classes that the C++ ABI has for this: __class_type_info and its two heirs
 *
 * So neither symbols nor names of files are needed. With -fno-rtti word [-1] is 0, and the file's symbol names the class.
 *
 * What is read is the process's choice, so the number of different words that are looked at, of classes and of files
 * that are opened has a bound; blocks beyond it have no class.
 */
#ifndef HT_EXPLAIN_TYPES_H
#define HT_EXPLAIN_TYPES_H

#include "explain/memory.h"
#include "profile/resident_rows.h"

#define TYPE_CNT_CAP 4096
#define TYPE_NAME_CAP 2048 /* bytes, mangled or not */

struct type_sum {
	uint64_t cnt, bytes, least_bytes; /* live blocks; least_bytes: the smallest */
	double pinned_bytes; /* free memory that they are charged with: explain/glibc.h */
	struct resident_recorded recorded;
};

struct type {
	uint64_t vtable;
	char *name; /* mangled, without _ZTV; types_finish() demangles it. NULL: not known yet */
	struct type_sum sum, pending; /* pending: of a heap that is not believed yet */
};

/* Bytes and symbols of mapped files; of pages that are not present. NULL: there are none. */
struct type_files {
	int (*read)(void *ctx, const struct mapping *map, uint64_t addr, void *buf, size_t bytes);
	/* The name of the symbol that begins at addr, or NULL. It lives until the next call. */
	const char *(*symbol)(void *ctx, const struct mapping *map, uint64_t addr);
	void *ctx;
};

struct types;

int types_new(struct memory *m, struct mappings *maps, const struct type_files *files,
	      struct types **ret);
void types_free(struct types *t);
/* The class of a block with this first word; 0: none is known. t may be NULL. */
uint32_t types_find(struct types *t, uint64_t word);
/* A live block. */
void types_add(struct types *t, uint32_t type, uint64_t bytes);
/* ... that is one of the sampled ones: resident_pins_weight(). */
void types_record(struct types *t, uint32_t type, double weight);
void types_pin(struct types *t, uint32_t type, double bytes);
/* What was added since the last call is to be believed, or forgotten. */
void types_settle(struct types *t, bool is_believed);
/* Name them. No word is looked up after this. */
void types_finish(struct types *t);
/* The classes after that: by bytes, the largest first, each name once. */
const struct type *types_list(const struct types *t, size_t *ret_cnt);

#endif
