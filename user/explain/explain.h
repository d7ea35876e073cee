/* SPDX-License-Identifier: MIT */
/*
 * explain/explain.h - what all resident memory of a process is, read from outside.
 *
 * Nothing is stopped, called or written, and no page becomes resident by it. The process can make a reader wait for
 * ever, so it is for a child that may be killed: sandbox_run_reading().
 */
#ifndef HT_EXPLAIN_EXPLAIN_H
#define HT_EXPLAIN_EXPLAIN_H

#include "base/std.h"
#include "explain/glibc.h"
#include "explain/jemalloc.h"
#include "explain/memory.h"
#include "explain/rows.h"
#include "explain/types.h"
#include "profile/resident_rows.h"

struct err;

/* What is different since an earlier look. */
struct explain_change {
	bool is_known; /* there was one */
	uint64_t apart_ns;
	int64_t rss_bytes;
	int64_t rows[ROW_CNT]; /* by kind */
	char text[512]; /* the main difference, and whose it is */
};

struct explanation {
	pid_t pid;
	char comm[16];
	uint64_t start_time_ticks, looked_ns; /* of the process; when it was looked at */
	struct mappings maps;
	struct glibc glibc;
	struct jemalloc jemalloc;
	struct runtimes runtimes;
	struct types *types; /* NULL: not wanted */
	struct rows rows;
	struct verdict verdict;
	struct explain_change change;
	uint64_t took_ns;
};

/* What takes longer than the limit is left to its mapping. wants_types: live blocks by C++ class, too, for which files of
 * the process are opened. pins: NULL, or blocks; what each pins is valid only if all heaps are proved. A negative
 * errno, with a sentence in why. */
int explain_process(pid_t pid, bool wants_types, struct resident_pins *pins, uint64_t limit_ns,
		    struct explanation *ret, struct err *why);
void explain_release(struct explanation *x);
/* Fill x->change with what is different from an earlier look at the same process. */
void explain_compare(struct explanation *x, const struct explanation *before);

/* columns: at most so many in a line. is_verbose: all rows, arenas, and what was compared. */
void explain_print_text(const struct explanation *x, int columns, bool is_verbose, FILE *out);
/* Which live blocks keep free memory from being returned: by size, and by C++ class. */
void explain_print_pins(const struct explanation *x, int columns, FILE *out);
/* What is not in the rows: memory besides RSS, and whether heaps could be read. */
void explain_print_notes(const struct explanation *x, int columns, FILE *out);
void explain_print_json(const struct explanation *x, FILE *out);
/* A page for a browser. 0 or -ENOMEM. */
int explain_print_html(const struct explanation *x, bool shows_pins, FILE *out);

#endif
