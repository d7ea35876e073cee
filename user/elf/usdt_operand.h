/* SPDX-License-Identifier: MIT */
/*
 * usdt_operand.h - the places of the arguments of a statically defined probe.
 *
 * A note describes them as the assembler wrote them, "8@%rdi -4@$5 8@-16(%rbp)": for each argument its size in bytes,
 * negative if it is signed, and an operand in the syntax of the machine. The source of the format is SystemTap's
 * <sys/sdt.h>. The size may be missing: then it is the machine's word.
 */
#ifndef HT_ELF_USDT_OPERAND_H
#define HT_ELF_USDT_OPERAND_H

#include <stddef.h>

#include "heaptap/abi.h"

/*
 * Parse the first cnt operands of a note's arguments, in order; there may be more. -EINVAL: there are fewer, or one is
 * not understood. -ENOTSUP: an argument is in a place that heaptap does not read (a float, a symbol).
 */
int usdt_operands_parse(const char *args, struct ht_operand *ret, size_t cnt);

#endif
