/* SPDX-License-Identifier: MIT */
/* symbolizer_priv.h - internal part of symbolizer.c: the child that reads the file. */
#ifndef HT_SYMBOL_SYMBOLIZER_PRIV_H
#define HT_SYMBOL_SYMBOLIZER_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbol/symbol.h"

struct wire_answer;

/*
 * symbol_helper.c: the child process that reads the ELF file and its DWARF.
 */

struct helper_job {
	const struct symbol_options *opts;
	const struct symbol_file *file;
	const uint64_t *vaddr;
	size_t vaddr_cnt;
	/* of an earlier helper: addresses with an answer are not asked again */
	const struct wire_answer *answers;
	bool use_dwarf;
	uint64_t memory_bytes, cpu_seconds;
};

/* Fork the helper. *ret_fd is the read end of the pipe with its answers (symbol_wire.h). It exits with
 * DWARF_EXIT_NO_MEMORY when memory ran out, with 0 when all went well. */
int helper_start(const struct helper_job *job, pid_t *ret_pid, int *ret_fd);

/* demangle.c: turns linkage names of C++ and Rust into readable names. */

/* Demangle C++ and Rust (legacy and v0). Returns a malloc'ed string, or NULL when name is not mangled. */
char *demangle(const char *name);

#endif
