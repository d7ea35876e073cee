/* SPDX-License-Identifier: MIT */
/*
 * tag_sources.h - where the threads of a process say what they allocate for.
 *
 * In two steps, like all that is asked of mapped files: what a file says (once per file, cheap
 * for the many that say nothing), and what that means in a process that maps it, which depends on
 * what its loader wrote.
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

/* Of one file; a linked object has one. */
#define TAG_DESCRIPTORS_CAP 4

struct tag_file {
	uint64_t descriptor_vaddr[TAG_DESCRIPTORS_CAP]; /* of heaptap/scope.h */
	uint32_t descriptor_cnt;
	bool has_otel, has_custom;
	struct tls_symbol otel, custom;
	/* Something is there and cannot be used: a sentence, of two such things the last. "" = none */
	char problem[160];
	uint32_t problem_kind; /* HT_TAG_* that it is about */
};
/* -ENOENT: nothing about tags in this file. -ENOMEM. */
int tag_file_scan(struct elf_file *ef, struct tag_file *ret);

struct tag_sources {
	struct ht_tag_source source[HT_TAG_SOURCES_CAP];
	uint32_t cnt;
	bool is_pending; /* one is not ready yet (the loader is at work): ask again */
	struct err problem; /* as in tag_file, of this process */
};
/*
 * The sources of one mapped file. tid: any live thread. dtv_shift: tag_dtv_shift(). 0, or the
 * error that says that the process cannot be read (-ESRCH, -EPERM, -EACCES).
 */
int tag_sources_read(pid_t tid, const struct tag_file *file, uint64_t bias, uint32_t dtv_shift,
		     struct tag_sources *ret);

/* log2 of the bytes of an entry of the dynamic thread vector of the process's C library. */
uint32_t tag_dtv_shift(const struct proc_maps *maps);

#endif
