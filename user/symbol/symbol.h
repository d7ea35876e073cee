/* SPDX-License-Identifier: MIT */
/* symbol.h - what addresses of a file are called. */
#ifndef HT_SYMBOL_SYMBOL_H
#define HT_SYMBOL_SYMBOL_H

#include "base/std.h"

struct name_cache;
struct slow_files;

/* Identity of a file's present content; all 0: what is found out about the file is not remembered. */
struct slow_file_key {
	uint32_t dev;
	uint64_t ino;
	int64_t changed_ns;
};

struct symbol_options {
	bool lines; /* DWARF: files, lines, inlines; else the symbol table only */
	bool demangle;
	uint64_t memory_limit_bytes; /* of the helper, without file pages; 0 = 1 GiB */
	uint64_t time_limit_ns; /* afterwards the symbol table is used for the rest; 0 = 30 s */
	/* CLOCK_MONOTONIC: addresses not looked up by then have no name; 0: no such moment */
	uint64_t end_ns;
	/* Half of the time until end_ns is for DWARF: what it has not named then has the symbol table's names. */
	bool is_hurried;
	bool wants_all; /* -ETIME when an address is not looked up by end_ns */
	struct slow_files *slow; /* NULL: nothing is remembered */
	struct name_cache *names; /* NULL: each name is looked up */
};

struct symbol_file {
	int fd; /* the ELF file, perhaps O_PATH; -1: not available */
	/* as the target sees it: used as the last resort and to find debug files */
	const char *name;
	const char *module; /* what it is called in the last resort; NULL: as name */
	const char *build_id_hex; /* "" = none */
	const char *root; /* "/proc/PID/root" or "": where debug files are looked for first */
	struct slow_file_key key; /* of symbol_options.slow and names */
};

struct symbol_frame {
	const char *name; /* demangled, valid UTF-8, never NULL or "" */
	const char *system_name; /* linkage name */
	const char *file; /* "" = unknown */
	uint32_t line; /* 0 = unknown */
	uint32_t start_line;
};

/* Frames of vaddr[i] are frames[first[i]] .. frames[first[i+1]-1], innermost inline first. */
struct symbol_result {
	size_t addr_cnt;
	uint32_t *first; /* addr_cnt + 1 */
	struct symbol_frame *frames;
	bool has_functions, has_lines, has_inlines;
	bool is_slow; /* something is missing because it took too long, now or in an earlier try */
	bool is_late; /* ...because the caller's time was over */
	char note[128]; /* "" or what is missing: "no debug info", "time limit", ... */
	void *owner;
};

/*
 * (file, vaddr) -> functions, files, lines, inlines.
 *
 * Files and debug information are not trusted, and DWARF readers leak by design: so the work runs in a forked
 * helper with rlimits and without privileges. Addresses that DWARF does not know fall back to the symbol table
 * (read in the helper as well), then to "module+0xvaddr". Every requested address gets at least one frame with
 * a name.
 *
 * vaddr: of the instruction to look up (return address - 1), sorted, unique. */
int symbolize(const struct symbol_options *opts, const struct symbol_file *file,
	      const uint64_t *vaddr, size_t vaddr_cnt, struct symbol_result **ret);
void symbol_result_free(struct symbol_result *r);

/* demangle.c: C++ and Rust (legacy and v0). Returns a malloc'ed string, or NULL when name is not mangled. */
char *demangle(const char *name);

/*
 * profile_symbols.c: names for a profile without names: other allocators' dumps have only addresses and the
 * mappings of the process.
 */

struct profile;

/*
 * Look up every location without a line in the file of its mapping, as the file is on this machine now: a dump
 * does not say with which version of a file it was made. Files with a known but different build id are left
 * alone, and so are files that cannot be opened; *ret_missing (or NULL) is the number of such files with
 * locations. Where names were found, the allocator's own functions are removed from the leaf end, as in a
 * recorded profile. 0 or -ENOMEM.
 */
int profile_symbolize(struct profile *p, const struct symbol_options *opts, size_t *ret_missing);

/* One file of a profile, after the search for it. */
struct profile_symbol_file {
	const char *path, *build_id_hex;
	size_t wanted_cnt,
		named_cnt; /* locations without lines; of these, the ones that got names or lines */
	bool is_found; /* the file, or its debug information, was found somewhere */
};

/* Where to look for files by build id, in this order, before and after the place where they were recorded. */
struct profile_symbol_places {
	const char *const *dirs; /* folders of collected files */
	size_t dir_cnt;
	/* The nth file (from 0) that servers have for a build id: 0 is its debug information. An fd, -ENOENT,
	 * or -ERANGE: there are no more. NULL: nobody is asked. */
	int (*fetch)(void *ctx, const char *build_id_hex, unsigned nth);
	void (*on_file)(void *ctx, const struct profile_symbol_file *file); /* or NULL */
	void *ctx;
};

/*
 * The same for a profile that was recorded elsewhere, without names, lines or both: a location without a line
 * is looked up in any file of the same build id, and gets a result that says more than it had. A file without a
 * build id is read from its own place, as in profile_symbolize(). Allocator functions that appear at the leaf
 * end are removed, unless the profile had such already. 0 or -ENOMEM.
 */
int profile_symbolize_elsewhere(struct profile *p, const struct symbol_options *opts,
				const struct profile_symbol_places *places);

/*
 * name_cache.c: what processes that look up names know of one another's, in memory that they share.
 *
 * Each profile of `heaptap serve` is made by a process of its own, and most of its addresses were in the profile
 * before. To read the debug information of a C library again takes 50 ms.
 *
 * No locks, because any of these processes may be killed at any moment: entries are only added. When there is no room,
 * or after ten minutes (somebody may have installed debug information), the process that forks the others begins a new
 * one.
 */

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
 * Which files were too slow, which helpers hang, and when it is too late for names.
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
