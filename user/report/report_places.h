/* SPDX-License-Identifier: MIT */
/* report_places.h - groups stacks that are charged to the same place. Internal to the report_*.c files. */
#ifndef HT_REPORT_PLACES_H
#define HT_REPORT_PLACES_H

#include "base/std.h"
#include "report/report_rows.h"
#include "report/report_text.h"

/* A frame for display: "SessionStore::touch" and " server.cc:22". */
struct report_named {
	char name[REPORT_NAME_BUF];
	char place[96]; /* begins with a space; "" = line not known */
};
struct report_named_place {
	struct report_named own;
	const char *hint;
	struct report_named caller[3];
	size_t caller_cnt;
};
/* As VEC(). */
struct report_places {
	struct report_row *data;
	size_t cnt, cap;
};

/* The rows of r, stacks grouped by place. 0 or -ENOMEM. */
int report_find_places(const struct report *r, struct report_places *ret);
/* A row of any kind: its name, and for a stack as report_name_place(). */
void report_name_row(const struct report *r, const struct report_row *row,
		     struct report_named_place *ret);

/*
 * The names of the rows of a table, which end its lines. Rows whose names read alike in the room that there is get a
 * further line with what had none: the first frame in which they differ is there. All rows are added before the first
 * is written. `used`: columns in front of the name.
 */
struct report_names {
	size_t columns, room;
	struct strset *texts;
	VEC(uint32_t) row_cnt; /* by text */
};
/* 0 or -ENOMEM; release in any case. */
int report_names_init(struct report_names *t, const struct report *r, size_t used);
int report_names_add(struct report_names *t, const struct report_named_place *p);
void report_names_put(const struct report_names *t, const struct report_named_place *p, FILE *out);
void report_names_release(struct report_names *t);
void report_name_frame(const struct report *r, const struct report_frame *f,
		       struct report_named *ret);
/* Shorten to `columns`: cuts the name, not its line. */
char *report_fit_named(const struct report_named *n, size_t columns, char buf[REPORT_FIT_BUF]);
/* Return the number of callers. */
size_t report_name_place(const struct report *r, const struct report_row *row,
			 struct report_named_place *ret);

/* The user's own frames of a stack, and files and functions that are not. */

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
/*
 * Are most bytes charged to libraries, and does the program call them in these stacks? Then the program's own functions are
 * found by --own. Name the library of the largest stack, and the program; false: no.
 */
bool report_is_of_libraries(const struct report *r, const char **ret_library,
			    const char **ret_program);
/* Is this frame the user's own, by --own or by the tables? */
bool report_is_own(const struct report *r, const struct profile_sample *s,
		   const struct report_frame *f);

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
