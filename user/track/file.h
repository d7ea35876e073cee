/* SPDX-License-Identifier: MIT */
/* file.h - what is known of a file that processes map. Of files.h, who makes and keeps them. */
#ifndef HT_TRACK_FILE_H
#define HT_TRACK_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "elf/elf_file.h"
#include "proc/process.h"

struct alloc_file;
struct file_sampler;
struct file_tags;
struct jit_code;

struct track_segment {
	uint64_t off, bytes, vaddr;
};

/* What a file has to do with programs that are held at an exec: see loaders.c. */
struct track_loader {
	uint64_t loaded_off; /* where a loader tells debuggers that libraries have come; 0: it is no loader */
	/* From there, when both are in memory, to the state of the list; 0: not known, as musl's is not
	 * exported, which calls only when it is settled. */
	uint64_t to_state;
	bool traces; /* asks for ptrace(), or checks for leaks at its end, which traces the process */
};

struct track_file {
	uint32_t id; /* the engine's file id; without one, a number of its own */
	uint32_t dev;
	uint64_t ino;
	int fd; /* -1: could not be opened (special mappings) */
	struct file_facts facts; /* when it was read */
	bool is_vdso;
	bool is_jit; /* not a file: see track_files_add_jit() */
	struct jit_code *jit; /* whose it is then */
	uint32_t jit_period;
	uint64_t listed_in; /* the last reading of mappings that met it (struct tracked) */
	uint32_t user_cnt; /* see track_file_hold() */
	bool is_partly_read; /* it was too costly: see file_content.h */
	uint64_t read_steps; /* what it cost... */
	bool is_unpaid; /* ... which no process has paid for yet */
	bool is_retired; /* nothing leads to it: see track_files_reclaim() */
	char *path; /* as the target sees it */
	char *root; /* "/proc/PID/root" of the process that showed it, or "" */
	char build_id_hex[2 * BUILD_ID_BYTES_CAP + 1];
	VEC(struct track_segment) exec; /* executable segments */
	struct alloc_file *alloc; /* NULL: defines no known allocator */
	struct file_tags *tags; /* NULL: says nothing of what its memory is for */
	struct file_sampler *sampler; /* NULL: brings none */
	struct track_loader loader;
};

#endif
