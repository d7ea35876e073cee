/* SPDX-License-Identifier: MIT */
/* report_own.h - the user's own frames of a stack, and files and functions that are not. Internal to the report_*.c files. */
#ifndef HT_REPORT_OWN_H
#define HT_REPORT_OWN_H

#include <stdbool.h>

#include "report/report_rows.h"

/* The place that a stack is charged to. */
struct report_place {
	struct report_frame frame;
	struct report_frame_pos behind; /* position of its first caller */
	const char *hint; /* what it was doing, "vector grows", or NULL */
};

/*
 * Find the first own frame from the leaf: by --own, else by the tables. In a stack without one: the first frame with a
 * name that is in no system library, else the first with a name, else the leaf. false: no frames.
 */
bool report_find_place(const struct report *r, const struct profile_sample *s,
		       struct report_place *ret);
/* Is this frame the user's own, by --own or by the tables? */
bool report_is_own(const struct report *r, const struct profile_sample *s,
		   const struct report_frame *f);
/* Find the next own frame from pos on, by the tables alone; false: none. */
bool report_next_own(const struct report *r, const struct profile_sample *s,
		     struct report_frame_pos *pos, struct report_frame *ret);

/* report_own_names.c */

/* Does this file allocate on behalf of others? (An allocator, the C or C++ library.) */
bool report_is_system_module(const char *module);
/* Does this function allocate on behalf of others, or start threads or programs? */
bool report_is_system_function(const char *name);
/* Is this source file of a language's library, compiled into the program? */
bool report_is_system_source(const char *file);
/*
 * Does this file belong to a runtime: a JVM, Node, Python? In a stack with a frame of code that a
 * runtime compiled or interpreted, the runtime's frames are not the user's own.
 */
bool report_is_runtime_module(const char *module);
/* Is this code, made at run time, of the runtime or its language's library? name: as in the profile. */
bool report_is_runtime_code(const char *name, const char *file);
/* Skip the result type of a name: "f(int)" of "int* f(int)". */
const char *report_skip_result(const char *name);
/* Cut what a runtime marks a function with that it has compiled again: for comparing, not for showing. */
void report_strip_tier(char *name);
/* What a container's function does when it allocates: "vector grows", or NULL. */
const char *report_growth_hint(const char *name);

#endif
