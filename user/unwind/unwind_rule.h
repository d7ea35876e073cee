/* SPDX-License-Identifier: MIT */
/*
 * unwind_rule.h - what CFI says of a pc, as one struct ht_row. All that depends on the machine is
 * here: register numbers, and which rules the rows can say.
 */
#ifndef HT_UNWIND_RULE_H
#define HT_UNWIND_RULE_H

#include <stdbool.h>

#include "unwind/cfi.h"
#include "heaptap/abi.h"

struct unwind_arch {
	int machine; /* EM_* */
	struct cfi_regs regs;
	/* pc_lo is left 0. What a row cannot say becomes HT_CFA_UNSUPPORTED. */
	struct ht_row (*row)(const struct cfi_row *row, bool is_signal);
};

/* NULL: a machine that has no rows yet. */
const struct unwind_arch *unwind_arch_find(int machine);

#endif
