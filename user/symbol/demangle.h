/* SPDX-License-Identifier: MIT */
/* demangle.h - turns linkage names of C++ and Rust into readable names. */
#ifndef HT_SYMBOL_DEMANGLE_H
#define HT_SYMBOL_DEMANGLE_H

/* Demangle C++ and Rust (legacy and v0). Returns a malloc'ed string, or NULL when name is not mangled. */
char *demangle(const char *name);

#endif
