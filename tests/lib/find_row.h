/* SPDX-License-Identifier: MIT */
/* find_row.h - the search for an unwind row that BPF does (bpf/walk.bpf.h), in user space. */
#ifndef TEST_FIND_ROW_H
#define TEST_FIND_ROW_H

#include "elf/unwind_table.h"

/* The row that holds for vaddr, or NULL. */
const struct ht_row *find_row(const struct unwind_table *t, uint64_t vaddr);

#endif
