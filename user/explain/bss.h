/* SPDX-License-Identifier: MIT */
/* explain/bss.h - the .bss of programs and libraries: anonymous memory behind their .data. */
#ifndef HT_EXPLAIN_BSS_H
#define HT_EXPLAIN_BSS_H

#include "explain/mappings.h"
#include "explain/memory.h"

/* It lies right behind the .data of a file. below: the mapping before, or NULL. */
bool is_bss(const struct mapping *map, const struct mapping *below);
/*
 * Where the .bss that begins the mapping ends: the kernel merges it with what is mapped behind it. 0: the file's program
 * headers are not there. first: of all mappings.
 */
uint64_t bss_end(struct memory *m, const struct mapping *map, const struct mapping *first);

#endif
