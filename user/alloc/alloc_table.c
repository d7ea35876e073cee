/* SPDX-License-Identifier: MIT */
/*
 * alloc_table.c - every allocator entry point that heaptap knows; the only place with names.
 *
 * A row says what a call means: which argument is the size (or which two are its factors), which is the block, how the
 * result is returned. A symbol's name is a prefix and a row's name. Any prefix goes with any row, which costs nothing
 * and saves writing the malloc family six times.
 *
 * Not here, because their size is not an argument or the block is not one: strdup-like functions (they call an entry
 * point), mi_reallocarr (pointer to pointer), mi_heap_destroy (frees a whole heap at once), obstacks and arenas.
 */
#include "alloc/allocators.h"

#include "heaptap/abi.h"

/* clang-format off */
#define NONE HT_ARG_NONE
#define ALLOC(name, size)            {name, HT_OP_ALLOC, size, NONE, NONE, HT_RET_VALUE, 0, false}
#define ALLOC_N(name, count, size)   {name, HT_OP_ALLOC, size, count, NONE, HT_RET_VALUE, 0, false}
#define ALLOC_OUT(name, size, out)   {name, HT_OP_ALLOC, size, NONE, out, HT_RET_OUT, 0, false}
#define NEW(name, size)              {name, HT_OP_ALLOC, size, NONE, NONE, HT_RET_VALUE, HT_SITE_THROWS, false}
#define NEW_N(name, count, size)     {name, HT_OP_ALLOC, size, count, NONE, HT_RET_VALUE, HT_SITE_THROWS, false}
#define FREE(name)                   {name, HT_OP_FREE, NONE, NONE, 0, HT_RET_VALUE, 0, false}
#define REALLOC(name, p, size)       {name, HT_OP_REALLOC, size, NONE, p, HT_RET_VALUE, 0, false}
#define REALLOC_N(name, p, count, size) {name, HT_OP_REALLOC, size, count, p, HT_RET_VALUE, 0, false}
#define RESIZE(name, p, size)        {name, HT_OP_RESIZE, size, NONE, p, HT_RET_VALUE, 0, false}
/* mimalloc gives most functions a variant with alignment and one with alignment and offset */
#define ALIGNED(M, name, ...)        M(name "_aligned", __VA_ARGS__), M(name "_aligned_at", __VA_ARGS__)

static const struct alloc_row rows[] = {
	/* C and POSIX; with prefixes jemalloc (je_, _rjem_), mimalloc (mi_), gperftools (tc_) */
	ALLOC("malloc", 0), ALLOC_N("calloc", 0, 1), REALLOC("realloc", 0, 1), FREE("free"),
	ALLOC("memalign", 1), ALLOC("aligned_alloc", 1), ALLOC_OUT("posix_memalign", 2, 0),
	ALLOC("valloc", 0), {"pvalloc", HT_OP_ALLOC, 0, NONE, NONE, HT_RET_VALUE, 0, true}, REALLOC_N("reallocarray", 0, 1, 2), FREE("cfree"),
	REALLOC("reallocf", 0, 1), FREE("free_sized"), FREE("free_aligned_sized"),
	/* operator new, new[], delete, delete[]: plain, nothrow, aligned, sized */
	NEW("_Znwm", 0), NEW("_Znam", 0), NEW("_ZnwmSt11align_val_t", 0), NEW("_ZnamSt11align_val_t", 0),
	ALLOC("_ZnwmRKSt9nothrow_t", 0), ALLOC("_ZnwmSt11align_val_tRKSt9nothrow_t", 0),
	ALLOC("_ZnamRKSt9nothrow_t", 0), ALLOC("_ZnamSt11align_val_tRKSt9nothrow_t", 0),
	FREE("_ZdlPv"), FREE("_ZdlPvm"), FREE("_ZdlPvRKSt9nothrow_t"), FREE("_ZdlPvSt11align_val_t"),
	FREE("_ZdaPv"), FREE("_ZdaPvm"), FREE("_ZdaPvRKSt9nothrow_t"), FREE("_ZdaPvSt11align_val_t"),
	FREE("_ZdlPvmSt11align_val_t"), FREE("_ZdlPvSt11align_val_tRKSt9nothrow_t"),
	FREE("_ZdaPvmSt11align_val_t"), FREE("_ZdaPvSt11align_val_tRKSt9nothrow_t"),
	/* jemalloc */
	ALLOC("mallocx", 0), REALLOC("rallocx", 0, 1), RESIZE("xallocx", 0, 1), FREE("dallocx"), FREE("sdallocx"),
	/* mimalloc */
	ALLOC("mi_zalloc", 0), ALLOC("mi_malloc_small", 0), ALLOC("mi_zalloc_small", 0), ALLOC_N("mi_mallocn", 0, 1),
	ALIGNED(ALLOC, "mi_malloc", 0), ALIGNED(ALLOC, "mi_zalloc", 0), ALIGNED(ALLOC_N, "mi_calloc", 0, 1),
	REALLOC_N("mi_reallocn", 0, 1, 2), REALLOC("mi_rezalloc", 0, 1), REALLOC_N("mi_recalloc", 0, 1, 2),
	ALIGNED(REALLOC, "mi_realloc", 0, 1), ALIGNED(REALLOC, "mi_rezalloc", 0, 1),
	ALIGNED(REALLOC_N, "mi_recalloc", 0, 1, 2), FREE("mi_free_size"), FREE("mi_free_size_aligned"), FREE("mi_free_aligned"),
	NEW("mi_new", 0), NEW_N("mi_new_n", 0, 1), NEW("mi_new_aligned", 0), ALLOC("mi_new_nothrow", 0),
	ALLOC("mi_new_aligned_nothrow", 0), {"mi_new_realloc", HT_OP_REALLOC, 1, NONE, 0, HT_RET_VALUE, HT_SITE_THROWS, false},
	{"mi_new_reallocn", HT_OP_REALLOC, 2, 1, 0, HT_RET_VALUE, HT_SITE_THROWS, false},
	ALLOC("mi_heap_malloc", 1), ALLOC("mi_heap_zalloc", 1), ALLOC("mi_heap_malloc_small", 1),
	ALLOC_N("mi_heap_calloc", 1, 2), ALLOC_N("mi_heap_mallocn", 1, 2),
	ALIGNED(ALLOC, "mi_heap_malloc", 1), ALIGNED(ALLOC, "mi_heap_zalloc", 1), ALIGNED(ALLOC_N, "mi_heap_calloc", 1, 2),
	REALLOC("mi_heap_realloc", 1, 2), REALLOC_N("mi_heap_reallocn", 1, 2, 3), REALLOC("mi_heap_reallocf", 1, 2),
	REALLOC("mi_heap_rezalloc", 1, 2), REALLOC_N("mi_heap_recalloc", 1, 2, 3),
	ALIGNED(REALLOC, "mi_heap_realloc", 1, 2), ALIGNED(REALLOC, "mi_heap_rezalloc", 1, 2),
	ALIGNED(REALLOC_N, "mi_heap_recalloc", 1, 2, 3), NEW("mi_heap_alloc_new", 1), NEW_N("mi_heap_alloc_new_n", 1, 2),
	ALLOC("mi_theap_malloc", 1), ALLOC("mi_theap_zalloc", 1), ALLOC("mi_theap_malloc_small", 1), /* mimalloc 3 */
	ALLOC_N("mi_theap_calloc", 1, 2), ALIGNED(ALLOC, "mi_theap_malloc", 1), ALIGNED(ALLOC, "mi_theap_zalloc", 1),
	REALLOC("mi_theap_realloc", 1, 2), REALLOC("mi_theap_rezalloc", 1, 2), ALLOC("mi_theap_zalloc_small", 1),
	ALLOC("mi_heap_zalloc_small", 1), FREE("mi_free_small"), FREE("mi_ufree"), ALLOC("mi_umalloc", 0), ALLOC("mi_uzalloc", 0),
	ALLOC("mi_umalloc_small", 0), ALLOC("mi_umalloc_aligned", 0), ALLOC("mi_uzalloc_aligned", 0), ALLOC_N("mi_ucalloc", 0, 1),
	REALLOC("mi_urealloc", 0, 1),
	/* gperftools */
	ALLOC("tc_malloc_skip_new_handler", 0), NEW("tc_new", 0), NEW("tc_newarray", 0), NEW("tc_new_aligned", 0),
	NEW("tc_newarray_aligned", 0), ALLOC("tc_new_nothrow", 0), ALLOC("tc_newarray_nothrow", 0),
	ALLOC("tc_new_aligned_nothrow", 0), ALLOC("tc_newarray_aligned_nothrow", 0),
	FREE("tc_delete"), FREE("tc_delete_nothrow"), FREE("tc_delete_sized"), FREE("tc_delete_aligned"),
	FREE("tc_delete_sized_aligned"), FREE("tc_delete_aligned_nothrow"),
	FREE("tc_deletearray"), FREE("tc_deletearray_nothrow"), FREE("tc_deletearray_sized"), FREE("tc_deletearray_aligned"),
	FREE("tc_deletearray_sized_aligned"), FREE("tc_deletearray_aligned_nothrow"),
	/* oneTBB, with prefix scalable_ */
	ALLOC("scalable_aligned_malloc", 0), FREE("scalable_aligned_free"), REALLOC("scalable_aligned_realloc", 0, 1),
};

static const char *const prefixes[] = {"", "__libc_", "je_", "_rjem_", "mi_", "tc_", "scalable_"};

enum { GLIBC, MUSL, JEMALLOC, RUST_JEMALLOC, TCMALLOC, MIMALLOC, SANITIZER, UNKNOWN };
static const struct alloc_family families[] = {
	/*                 name             libc   zero_frees */
	[GLIBC]         = {"glibc",         true,  true},
	[MUSL]          = {"musl",          true,  false},
	[JEMALLOC]      = {"jemalloc",      false, true},
	[RUST_JEMALLOC] = {"rust-jemalloc", false, true},
	[TCMALLOC]      = {"tcmalloc",      false, true},
	[MIMALLOC]      = {"mimalloc",      false, false},
	[SANITIZER]     = {"sanitizer",     false, true},
	[UNKNOWN]       = {"malloc",        false, true},
};
static const struct { const char *name; int family; } sonames[] = {
	{"libc.so.6", GLIBC}, {"libc.so", MUSL}, {"libc.musl-", MUSL}, {"libjemalloc", JEMALLOC}, {"libtcmalloc", TCMALLOC},
	{"libmimalloc", MIMALLOC}, {"libasan.", SANITIZER}, {"libclang_rt.", SANITIZER}, {"libtsan.", SANITIZER},
	{"liblsan.", SANITIZER}, {"libhwasan.", SANITIZER},
};
static const struct { const char *name; int family; } markers[] = {
	{"_int_malloc", GLIBC}, {"__libc_malloc_impl", MUSL}, {"__malloc_alloc_meta", MUSL}, {"__dls3", MUSL}, {"mallctl", JEMALLOC},
	{"je_mallctl", JEMALLOC}, {"_rjem_mallctl", RUST_JEMALLOC}, {"mi_version", MIMALLOC}, {"tc_version", TCMALLOC},
	{"TCMallocInternalMalloc", TCMALLOC}, {"__asan_init", SANITIZER}, {"__tsan_init", SANITIZER},
};
static const int prefix_family[] = {-1, -1, JEMALLOC, RUST_JEMALLOC, MIMALLOC, TCMALLOC, UNKNOWN};
/* clang-format on */

_Static_assert(ARRAY_CNT(prefix_family) == ARRAY_CNT(prefixes), "one entry per prefix");

const struct alloc_row *alloc_table(size_t *ret_cnt)
{
	*ret_cnt = ARRAY_CNT(rows);
	return rows;
}

const char *const *alloc_prefixes(size_t *ret_cnt)
{
	*ret_cnt = ARRAY_CNT(prefixes);
	return prefixes;
}

void alloc_lookup_init(struct alloc_lookup *lk)
{
	size_t i;

	memset(lk, 0, sizeof(*lk));
	for (i = 0; i < ARRAY_CNT(rows); i++)
		lk->lengths[(uint8_t)rows[i].name[0]] |= 1ULL << strlen(rows[i].name);
}

/* A row whose name is written out with its prefix (mi_zalloc) belongs to that prefix. */
static size_t own_prefix(const char *name)
{
	size_t p;

	for (p = 1; p < ARRAY_CNT(prefixes); p++)
		if (!strncmp(name, prefixes[p], strlen(prefixes[p])))
			return p;
	return 0;
}

/* First character and length reject most of a million symbols. */
static const struct alloc_row *find_row(const struct alloc_lookup *lk, const char *name)
{
	size_t len;

	if (!lk->lengths[(uint8_t)name[0]])
		return NULL;
	len = strnlen(name, 64);
	if (len == 64 || !(lk->lengths[(uint8_t)name[0]] >> len & 1))
		return NULL;
	for (size_t i = 0; i < ARRAY_CNT(rows); i++)
		if (!strcmp(rows[i].name, name))
			return &rows[i];
	return NULL;
}

/* By a prefix of the file's own. mimalloc's "mi_" belongs to the prefix, but to the names of some rows, too. */
static const struct alloc_row *find_more(const struct alloc_lookup *lk, const char *name,
					 size_t *ret_prefix)
{
	for (size_t p = 0; p < lk->more_cnt; p++) {
		const struct alloc_more_prefix *more = &lk->more[p];
		size_t skip = strlen(more->text);
		const struct alloc_row *row;

		if (strncmp(name, more->text, skip) != 0)
			continue;
		row = find_row(lk, name + skip);
		if (more->is_mimalloc && !strncmp(name + skip, "mi_", 3))
			row = row ? row : find_row(lk, name + skip + 3);
		else if (more->is_mimalloc)
			row = NULL;
		*ret_prefix = ARRAY_CNT(prefixes) + p;
		if (row)
			return row;
	}
	return NULL;
}

const struct alloc_row *alloc_lookup_find(const struct alloc_lookup *lk, const char *name,
					  size_t *ret_prefix)
{
	for (size_t p = 0; p < ARRAY_CNT(prefixes); p++) {
		size_t skip = strlen(prefixes[p]);
		const struct alloc_row *row;

		if (strncmp(name, prefixes[p], skip) != 0)
			continue;
		row = find_row(lk, name + skip);
		if (!row)
			continue;
		*ret_prefix = p ? p : own_prefix(row->name);
		return row;
	}
	return lk->more_cnt ? find_more(lk, name, ret_prefix) : NULL;
}

const struct alloc_family *alloc_family_by_soname(const char *soname)
{
	size_t i;

	for (i = 0; soname && i < ARRAY_CNT(sonames); i++) {
		size_t len = strlen(sonames[i].name);

		/* "libc.so" and "libc.so.6" are whole names, the others are beginnings. */
		if (!strncmp(soname, sonames[i].name, len) &&
		    (strncmp(sonames[i].name, "libc.so", 7) || !soname[len]))
			return &families[sonames[i].family];
	}
	return NULL;
}

const struct alloc_family *alloc_family_by_symbol(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_CNT(markers); i++)
		if (name[0] == markers[i].name[0] && !strcmp(name, markers[i].name))
			return &families[markers[i].family];
	return NULL;
}

const struct alloc_family *alloc_family_by_prefix(const struct alloc_lookup *lk, size_t prefix)
{
	size_t more = prefix - ARRAY_CNT(prefixes);

	if (prefix >= ARRAY_CNT(prefixes))
		return more < lk->more_cnt ?
			       &families[lk->more[more].is_mimalloc ? MIMALLOC : JEMALLOC] :
			       NULL;
	return prefix < ARRAY_CNT(prefix_family) && prefix_family[prefix] >= 0 ?
		       &families[prefix_family[prefix]] :
		       NULL;
}

const struct alloc_family *alloc_family_unknown(void)
{
	return &families[UNKNOWN];
}

uint32_t alloc_family_bit(const char *name)
{
	for (size_t i = 0; i < ARRAY_CNT(families); i++)
		if (!strcmp(families[i].name, name))
			return 1U << (i == RUST_JEMALLOC ? JEMALLOC : i);
	return 0;
}

const char *alloc_family_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_CNT(families); i++)
		if (!strcmp(families[i].name, name))
			return families[i].name;
	return NULL;
}
