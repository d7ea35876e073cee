/* SPDX-License-Identifier: MIT */
/*
 * name_cache.h - what processes that look up names know of one another's: names of addresses, and slow files. In
 * memory that they share.
 *
 * Each profile of `heaptap serve` is made by a process of its own, and most of its addresses were in the profile
 * before. To read the debug information of a C library again takes 50 ms.
 *
 * No locks, because any of these processes may be killed at any moment: entries are only added. When there is no room,
 * or after ten minutes (somebody may have installed debug information), the process that forks the others begins a new
 * one.
 */
#ifndef HT_SYMBOL_NAME_CACHE_H
#define HT_SYMBOL_NAME_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbol/symbol.h"

struct name_cache;
struct slow_files;
struct wire_reader;

/* What names are of. */
struct name_cache_query {
	struct slow_file_key key; /* all 0: nothing is known, and nothing kept */
	bool lines, demangle;
	const uint64_t *vaddr;
	size_t vaddr_cnt;
};

int name_cache_new(struct name_cache **ret);
void name_cache_free(struct name_cache *c);
/* For the process that forks the others, now and then. */
void name_cache_renew(struct name_cache *c);

/* NULL is fine below: it knows nothing. */

/* For a child whose own children, which read files, must not see it. */
void name_cache_hide(struct name_cache *c);

/* Fill the answers that are known. Returns how many are, with those whose address is known to have no name.
 * *ret_flags: what is missing (symbol_wire.h). */
size_t name_cache_get(struct name_cache *c, const struct name_cache_query *q, struct wire_reader *r,
		      uint32_t *ret_flags);
/* Add all answers, of a reader that is done. */
void name_cache_put(struct name_cache *c, const struct name_cache_query *q,
		    const struct wire_reader *r);

/*
 * slow_files.c: which files were too slow, which helpers hang, and when it is too late for names.
 *
 * It lies in memory shared with the children that are forked after it was made. No locks, because any of them
 * may be killed at any moment. A kill can tear one entry, which then is another file's or nobody's.
 */

/* For so long a file that was too slow is not tried again. */
#define SLOW_FILES_NS (600ULL * 1000000000)
/* Limits of helpers that a kill does not end, because the kernel waits for the file's answer: for one file
 * system, and in total. At the limit, files of that file system, or all files, are not tried while the helpers
 * hang. */
#define SLOW_FILES_HUNG_DEVICE 4
#define SLOW_FILES_HUNG 32

enum slow_file_part {
	SLOW_FILE_NOTHING,
	SLOW_FILE_DWARF, /* too slow: only its DWARF; its symbol table may be read */
	SLOW_FILE_ALL,
};

int slow_files_new(struct slow_files **ret);
void slow_files_free(struct slow_files *s);
/* For a child whose own children must not see it. */
void slow_files_hide(struct slow_files *s);

/* NULL is fine in all functions below: then nothing is remembered. */
void slow_files_put(struct slow_files *s, const struct slow_file_key *key, enum slow_file_part part,
		    uint64_t now_ns);
enum slow_file_part slow_files_find(const struct slow_files *s, const struct slow_file_key *key,
				    uint64_t now_ns);
/* Note a helper that does not end. */
void slow_files_put_hung(struct slow_files *s, uint32_t dev, pid_t pid);
/* Is the limit of hanging helpers reached? */
bool slow_files_is_full(const struct slow_files *s, uint32_t dev);
/* Look up no name after this moment (CLOCK_MONOTONIC). */
void slow_files_end_at(struct slow_files *s, uint64_t end_ns);
/* UINT64_MAX: no moment was set. */
uint64_t slow_files_end_ns(const struct slow_files *s);

#endif
