/* SPDX-License-Identifier: MIT */
/* tap_spot_priv.h - tap_gap.c: nearby bytes that are never executed. */
#ifndef HT_ALLOC_TAP_SPOT_PRIV_H
#define HT_ALLOC_TAP_SPOT_PRIV_H

#include <capstone/capstone.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alloc/tap_spot.h"

#define TAP_RUNS_CAP 64

struct tap_run {
	uint64_t start, end;
};

struct tap_gap_search {
	const struct elf_file *ef;
	const struct fde_index *fdes;
	const struct elf_symbols *syms;
	const struct tap_gaps *gaps;
	uint64_t fn_vaddr;
	struct tap_run run[TAP_RUNS_CAP];
	size_t run_cnt;
	bool has_runs; /* run[] was filled */
};

bool insn_is_nop(const cs_insn *in);
/* Find the function at vaddr. Static programs have no table of functions; their symbols serve as one. */
bool tap_function_at(const struct fde_index *fdes, const struct elf_symbols *syms, uint64_t vaddr,
		     uint64_t *ret_start, uint64_t *ret_end);
/* Find a gap for a short jump that ends at from_vaddr; 0: none. */
uint64_t tap_gap_find(struct tap_gap_search *gs, uint64_t from_vaddr);

#endif
