/* SPDX-License-Identifier: MIT */
/* report_own_names.h - files and functions that are not the user's own. Internal to the report_*.c files. */
#ifndef HT_REPORT_OWN_NAMES_H
#define HT_REPORT_OWN_NAMES_H

#include <stdbool.h>

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
