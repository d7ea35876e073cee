/* SPDX-License-Identifier: MIT */
/*
 * survey_tags.h - the tags that a mapped file publishes in a process: its scopes (heaptap/scope.h), and the
 * labels of other formats that are read as well.
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
	/* why the tag is left out, as a sentence; the rest is then unknown. "" = none */
	struct err problem;
	/* How a thread's own record is found. HT_TLS_NOT_READY: not yet, the loader or the program's
	 * constructor has not got there. */
	uint32_t tls_mode;
	int64_t tls_off; /* HT_TLS_STATIC: from the thread pointer; HT_TLS_DTV: in the block */
	uint64_t tls_module; /* HT_TLS_DTV */
	bool has_descriptor; /* HT_TAG_SCOPE, and the program has filled the descriptor */
	struct scope_descriptor descriptor;
};

struct survey_tags {
	VEC(struct survey_tag) all; /* none: this file publishes nothing */
};

/*
 * Add to ret. tid: any live thread; bias: of the file in the process; dtv_shift: tag_dtv_shift(). 0, -ENOMEM,
 * or -ESRCH: the process has ended. An unreadable tag gets a problem and is no error.
 */
int survey_tags_read(pid_t tid, struct elf_file *ef, uint64_t bias, uint32_t dtv_shift,
		     struct survey_tags *ret);

#endif
