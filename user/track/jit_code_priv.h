/* SPDX-License-Identifier: MIT */
/* jit_code_priv.h - a part of jit_code.c: reused addresses. */
#ifndef HT_TRACK_JIT_CODE_PRIV_H
#define HT_TRACK_JIT_CODE_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hmap.h"
#include "base/vec.h"

/*
 * jit_reuse.c: which addresses have had code, to see whether memory is reused for other code.
 *
 * One bit for every 8 bytes: 16 KiB for each MiB of code. Smaller pieces of code that do not begin
 * at a multiple of 8 may be missed. Code that does not fit counts as new.
 */

struct jit_reuse {
	struct hmap idx; /* address / 1 MiB -> index in chunk */
	VEC(uint8_t *) chunk;
};

void jit_reuse_init(struct jit_reuse *r);
void jit_reuse_release(struct jit_reuse *r);
/* Has any part of the range had code? */
bool jit_reuse_has(const struct jit_reuse *r, uint64_t start_addr, uint64_t end_addr);
/* Mark the range. 0 or -ENOMEM. */
int jit_reuse_add(struct jit_reuse *r, uint64_t start_addr, uint64_t end_addr);

#endif
