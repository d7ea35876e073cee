/* SPDX-License-Identifier: MIT */
/*
 * survey_tags.h - which tags a mapped file publishes in a process: its scopes (heaptap/scope.h),
 * and the labels of other formats that are read as well.
 */
#ifndef HT_PROC_SURVEY_TAGS_H
#define HT_PROC_SURVEY_TAGS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/vec.h"
#include "heaptap/abi.h"
#include "proc/scope_descriptor.h"

struct elf_file;

struct survey_tag {
	uint32_t kind; /* HT_TAG_* */
	struct err problem; /* it is left out: a sentence, and the rest is unknown. "" = none */
	/* How a thread's own is found. HT_TLS_NOT_READY: not at this moment, the loader or the
	 * program's constructor has not got there yet. */
	uint32_t tls_mode;
	int64_t tls_off; /* HT_TLS_STATIC: from the thread pointer; HT_TLS_DTV: in the block */
	uint64_t tls_module; /* HT_TLS_DTV */
	bool has_descriptor; /* HT_TAG_SCOPE, and the program has filled it */
	struct scope_descriptor descriptor;
};

struct survey_tags {
	VEC(struct survey_tag) all; /* none: this file publishes nothing */
};

/*
 * Adds to ret. tid: any live thread; bias: of the file in the process; dtv_shift: tag_dtv_shift().
 * 0, -ENOMEM, or -ESRCH: the process has ended. What cannot be read is a problem of that tag.
 */
int survey_tags_read(pid_t tid, struct elf_file *ef, uint64_t bias, uint32_t dtv_shift,
		     struct survey_tags *ret);

#endif
