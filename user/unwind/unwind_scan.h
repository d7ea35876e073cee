/* SPDX-License-Identifier: MIT */
/*
 * unwind_scan.h - unwind rows for code without frame information, by following its instructions.
 */
#ifndef HT_UNWIND_SCAN_H
#define HT_UNWIND_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heaptap/abi.h"

/* Larger pieces of code are not looked at (-EFBIG). */
#define UNWIND_SCAN_BYTES_CAP (2U << 20)

struct unwind_scanner;

/* -ENOTSUP: no decoder for the machine (EM_*). */
int unwind_scanner_open(int machine, struct unwind_scanner **ret);
void unwind_scanner_close(struct unwind_scanner *s);

struct unwind_code {
	const uint8_t *data;
	size_t bytes;
	uint64_t vaddr;
	/* where functions begin, as far as that is known, sorted; others are found */
	const uint64_t *entries;
	size_t entry_cnt;
};

/* row holds from vaddr up to the next call's; vaddr rises, all within the code. != 0 stops. */
typedef int unwind_scan_fn(void *arg, uint64_t vaddr, const struct ht_row *row);
int unwind_scan(struct unwind_scanner *s, const struct unwind_code *code, unwind_scan_fn *fn,
		void *arg);

#endif
