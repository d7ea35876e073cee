/* SPDX-License-Identifier: MIT */
/*
 * cell.h - the program of test_matrix.sh: three translation units (C, C, C++) that make one path
 * together, and a library of two that does the same with a table of its own.
 */
#ifndef SCOPE_CELL_H
#define SCOPE_CELL_H

#ifdef __cplusplus
extern "C" {
#endif
/* Called with "Top" pushed; pushes "A" in C, then "B" in C++. 0, or a line is printed and it is 1. */
int cell_part(void);
int cell_part_cxx(void);
/* Pushes "Lib" and "Inner", the latter in its other unit. With a thread of its own. */
__attribute__((visibility("default"))) int cell_lib(unsigned long *ret_descriptor);
int cell_lib_part(void);
int cell_lib_expect(const char *expected);
/* The path that is current as the image that has `inside` says it. */
int cell_expect(const void *inside, const char *expected);
#ifdef __cplusplus
}
#endif

#endif
