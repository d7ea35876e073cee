/* SPDX-License-Identifier: MIT */
/* demangle.h - linkage names of C++ and Rust in words. */
#ifndef HT_SYMBOL_DEMANGLE_H
#define HT_SYMBOL_DEMANGLE_H

/* Demangle C++ and Rust (legacy and v0). Returns a malloc'ed string, or NULL when it is no
 * mangled name. */
char *demangle(const char *name);

#endif
