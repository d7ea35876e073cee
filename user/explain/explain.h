/* SPDX-License-Identifier: MIT */
/*
 * explain/explain.h - what all resident memory of a process is, read from outside.
 *
 * Nothing is stopped, called or written, and no page becomes resident by it. The process can make a reader wait for
 * ever, so it is for a child that may be killed: sandbox_run_reading().
 */
#ifndef HT_EXPLAIN_EXPLAIN_H
#define HT_EXPLAIN_EXPLAIN_H

#include <stdio.h>
#include <sys/types.h>

#include "explain/glibc.h"
#include "explain/jemalloc.h"
#include "explain/mappings.h"
#include "explain/rows.h"
#include "explain/verdict.h"

struct err;

struct explanation {
	pid_t pid;
	char comm[16];
	struct mappings maps;
	struct glibc glibc;
	struct jemalloc jemalloc;
	struct rows rows;
	struct verdict verdict;
	uint64_t took_ns;
};

/* What takes longer than the limit is left to its mapping. A negative errno, with a sentence in why. */
int explain_process(pid_t pid, uint64_t limit_ns, struct explanation *ret, struct err *why);
void explain_release(struct explanation *x);

/* columns: at most so many in a line. is_verbose: all rows, arenas, and what was compared. */
void explain_print_text(const struct explanation *x, int columns, bool is_verbose, FILE *out);
void explain_print_json(const struct explanation *x, FILE *out);

#endif
