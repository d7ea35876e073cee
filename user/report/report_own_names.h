/* SPDX-License-Identifier: MIT */
/* report_own_names.h - files and functions that are not the user's own. Internal to the report_*.c files. */
#ifndef HT_REPORT_OWN_NAMES_H
#define HT_REPORT_OWN_NAMES_H

#include <stdbool.h>

/* A file that allocates on somebody's behalf: an allocator, the C or C++ library. */
bool report_is_system_module(const char *module);
/* A function that allocates on somebody's behalf, or starts threads or programs. */
bool report_is_system_function(const char *name);
/*
 * What runs other people's code: a JVM, Node, Python. Where a stack has a frame that such a one compiled or
 * interpreted, what belongs to the runtime is not the user's own.
 */
bool report_is_runtime_module(const char *module);
/* Code made at run time that is the runtime's, or its language's library. name: as in the profile. */
bool report_is_runtime_code(const char *name, const char *file);
/* The name behind its result type: "f(int)" of "int* f(int)". */
const char *report_skip_result(const char *name);
/* What a function of a container is doing when it allocates, "vector grows", or NULL. */
const char *report_growth_hint(const char *name);

#endif
