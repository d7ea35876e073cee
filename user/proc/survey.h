/* SPDX-License-Identifier: MIT */
/*
 * survey.h - what a recording of a process would find, without recording: for each mapped file its allocator,
 * unwind rows, symbols and tags, and whether foreign probes are in its text already.
 */
#ifndef HT_PROC_SURVEY_H
#define HT_PROC_SURVEY_H

#include "base/std.h"
#include "alloc/allocators.h"
#include "base/err.h"
#include "base/vec.h"
#include "elf/elf_file.h"
#include "heaptap/abi.h"
#include "proc/process.h"
#include "proc/runtime_kind.h"
#include "proc/tag_sources.h"

struct elf_file;
struct file_sampler;

/*
 * The tags that a mapped file publishes in a process: its scopes (heaptap/scope.h), and the
 * labels of other formats that are read as well.
 */

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

enum survey_debug {
	SURVEY_DEBUG_NONE,
	SURVEY_DEBUG_OWN, /* DWARF in the file itself */
	SURVEY_DEBUG_SEPARATE, /* in a debug file that was found */
};

struct survey_file {
	char *path; /* as the target sees it; "[vdso]" */
	char build_id[2 * BUILD_ID_BYTES_CAP + 1];
	uint64_t exec_bytes;
	uint64_t ino;
	uint32_t dev;
	uint64_t bias; /* address - vaddr of the first mapping */
	bool is_deleted;
	int open_err; /* why the other members are unknown, 0 = they are known */
	bool is_go, is_static; /* a Go program; no dynamic section and no loader */
	bool has_code; /* some libraries hold only data, and map a little as executable */
	int unwind_err; /* -ENOENT: no frame information */
	uint32_t row_cnt, unsupported_row_cnt, bad_fde_cnt;
	bool has_symtab; /* else only the exported functions have names */
	bool has_mini_symtab; /* .gnu_debugdata */
	size_t symbol_cnt;
	enum survey_debug debug;
	struct alloc_file *alloc; /* NULL: no known entry point */
	struct alloc_unseen unseen; /* an allocator in it whose functions have no names */
	struct file_sampler *sampler; /* NULL: the file has none */
	/* for each site of alloc: the text differs from the file, so a probe or breakpoint is on it */
	bool *is_probed;
	uint32_t probed_cnt;
	/* For a file that is mapped twice (dlmopen): of the first mapping. */
	struct survey_tags tags;
};

struct survey {
	VEC(struct survey_file) files; /* with executable mappings, in address order */
	uint32_t jit_area_cnt; /* executable areas without a file */
	uint64_t jit_bytes;
	bool has_jit_map; /* /tmp/perf-PID.map in its root, that would be read */
	bool has_jit_dump; /* a jitdump is mapped */
	struct runtime runtime;
	bool has_uprobes_area; /* the process has been probed before */
	/* Names of the label keys of OpenTelemetry's thread context, when a file has one. */
	int otel_keys_err; /* of otel_process_ctx_read(); -ENOENT: no file has it, or no names */
	size_t otel_key_cnt;
	uint64_t took_ns;
};

/* -ESRCH, -EACCES: see process_check(). A file that cannot be read is no error. */
int survey_process(const struct process_info *info, struct survey **ret);
void survey_free(struct survey *s);

#endif
