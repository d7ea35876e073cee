/* SPDX-License-Identifier: MIT */
/* file.h - what is known of a file that processes map. files.h makes and keeps these. */
#ifndef HT_TRACK_FILE_H
#define HT_TRACK_FILE_H

#include "base/std.h"
#include "alloc/allocators.h"
#include "base/vec.h"
#include "elf/elf_file.h"
#include "proc/process.h"
#include "symbol/symbol.h"

struct file_sampler;
struct file_tags;
struct jit_code;
struct track_file;

struct track_segment {
	uint64_t off, bytes, vaddr;
};

/* What a file means for programs that are held at an exec: see loaders.c. */
struct track_loader {
	uint64_t loaded_off; /* where a loader tells debuggers of new libraries; 0: no loader */
	/* Distance in memory from there to the state of the library list. 0: not known; musl does
	 * not export its state, and calls only when the list is settled. */
	uint64_t to_state;
	bool traces; /* calls ptrace(), or traces the process at its end to check for leaks */
};

struct track_file {
	uint32_t id; /* the engine's file id; without an engine, a number of its own */
	uint32_t dev;
	uint64_t ino;
	int fd; /* O_PATH, for regular_file_reopen(); -1: could not be opened (special mappings) */
	struct file_facts facts; /* as they were when it was read */
	bool is_vdso;
	bool is_jit; /* code made at run time, no file: see track_files_add_jit() */
	struct jit_code *jit; /* then: the code it stands for */
	uint32_t jit_period;
	/* Number of the last reading of mappings that met it (struct tracked) */
	uint64_t listed_in;
	uint32_t user_cnt; /* tracked processes that map it */
	bool is_partly_read; /* reading all of it was too costly: see file_content.h */
	uint64_t read_steps; /* cost of reading it... */
	bool is_unpaid; /* ... not yet charged to any process */
	bool is_retired; /* BPF no longer finds it: see track_files_reclaim() */
	char *path; /* as the target sees it */
	char *root; /* "/proc/PID/root" of the process in which it was found, or "" */
	char build_id_hex[2 * BUILD_ID_BYTES_CAP + 1];
	VEC(struct track_segment) exec; /* executable segments */
	struct alloc_file *alloc; /* NULL: defines no known allocator */
	struct alloc_unseen unseen; /* an allocator in it whose functions have no names */
	bool is_unseen_logged, is_late_logged;
	bool is_go; /* a program that Go's linker made */
	struct file_tags *tags; /* NULL: the file has no tags */
	struct file_sampler *sampler; /* NULL: the file has no sampler of its own */
	struct track_loader loader;
};

/* Names of places in the file, or in code made at run time: as symbolize(). module: what the file is called where
 * there is no name; NULL: as its path. */
int file_symbolize(const struct symbol_options *opts, const struct track_file *file,
		   const char *module, const uint64_t *vaddr, size_t cnt,
		   struct symbol_result **ret);

#endif
