/* SPDX-License-Identifier: MIT */
/*
 * usdt_operand.h - where the arguments of a statically defined probe are.
 *
 * A note describes them as the assembler wrote them down, "8@%rdi -4@$5 8@-16(%rbp)": for each its size in
 * bytes, with a minus when it has a sign, and an operand in the syntax of the machine. The source of the
 * format is SystemTap's <sys/sdt.h>; the size may be missing, then it is the machine's word.
 */
#ifndef HT_ELF_USDT_OPERAND_H
#define HT_ELF_USDT_OPERAND_H

#include <stddef.h>

#include "heaptap/abi.h"

/*
 * The first cnt operands of a note's arguments, in order; there may be more. -EINVAL: there are fewer, or
 * one is not understood. -ENOTSUP: it is at a place that heaptap does not read (a float, a symbol).
 */
int usdt_operands_parse(const char *args, struct ht_operand *ret, size_t cnt);

#endif
