/* SPDX-License-Identifier: MIT */
/* explain/verdict.h - what most of the memory is, and what can be done about it. */
#ifndef HT_EXPLAIN_VERDICT_H
#define HT_EXPLAIN_VERDICT_H

#include <sys/types.h>

#include "explain/rows.h"

struct verdict {
	const char *cause; /* for programs: the name of a row, or what is said below */
	char text[768];
	char advice[768]; /* "": nothing is worth it */
	bool is_compared; /* set by the caller: this is the second of two looks */
};

/* pid: for the commands that are advised. */
void verdict_find(struct verdict *v, pid_t pid, const struct rows *r, const struct glibc *g,
		  const struct jemalloc *je);

#endif
