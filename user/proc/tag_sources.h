/* SPDX-License-Identifier: MIT */
/*
 * tag_sources.h - where the threads of a process say what they allocate for.
 *
 * Done in two steps, like everything about mapped files: what a file says (once per file, cheap for the many
 * that say nothing), and what that means in a process that maps it, which depends on what the process's loader
 * wrote.
 */
#ifndef HT_PROC_TAG_SOURCES_H
#define HT_PROC_TAG_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "elf/tls_symbol.h"
#include "heaptap/abi.h"

struct elf_file;
struct proc_maps;

/* Per file; a linked object has one. */
#define TAG_DESCRIPTORS_CAP 4

struct tag_file {
	uint64_t descriptor_vaddr[TAG_DESCRIPTORS_CAP]; /* of heaptap/scope.h */
	uint32_t descriptor_cnt;
	bool has_otel, has_custom;
	struct tls_symbol otel, custom;
	/* Something is there but cannot be used: a sentence; the last one if there are two. "" = none */
	char problem[160];
	uint32_t problem_kind; /* HT_TAG_* of the problem */
};
/* -ENOENT: the file has nothing about tags. -ENOMEM. */
int tag_file_scan(struct elf_file *ef, struct tag_file *ret);

struct tag_sources {
	struct ht_tag_source source[HT_TAG_SOURCES_CAP];
	uint32_t cnt;
	bool is_pending; /* a source is not ready yet (the loader is at work): ask again */
	struct err problem; /* as in tag_file, for this process */
};
/*
 * The sources of one mapped file. tid: any live thread. dtv_shift: tag_dtv_shift(). 0, or the error with which
 * the process cannot be read (-ESRCH, -EPERM, -EACCES).
 */
int tag_sources_read(pid_t tid, const struct tag_file *file, uint64_t bias, uint32_t dtv_shift,
		     struct tag_sources *ret);

/* log2 of the entry size in bytes of the dynamic thread vector in the process's C library. */
uint32_t tag_dtv_shift(const struct proc_maps *maps);

#endif
