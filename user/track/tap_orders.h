/* SPDX-License-Identifier: MIT */
/*
 * tap_orders.h - orders to tap one file of one process (tap/tap.h): a place for the code, and the
 * code for that place. Several places are tried in turn, because the process may map something
 * between two looks.
 */
#ifndef HT_TRACK_TAP_ORDERS_H
#define HT_TRACK_TAP_ORDERS_H

#include "base/std.h"

struct alloc_file;
struct err;
struct reader;
struct tap_order;
struct track_file;

#define TAP_TRIES 8

/*
 * Make the order of the nth try, from 0, for one of the copies of the file that the process maps.
 * Memory of removed taps is tried first. why has a sentence with every error; -ENOENT: no more tries;
 * -ENODATA: no such copy.
 */
int tap_order_make(struct reader *reader, const struct track_file *file, pid_t pid, pid_t live_tid,
		   uint64_t rate_bytes, unsigned int copy, unsigned int nth, struct tap_order *ret,
		   struct err *why);

/* An allocator as proc/survey.h has it. */
struct tap_order_file {
	const struct alloc_file *alloc;
	uint64_t ino, bias;
	uint32_t dev;
};
/* Make the order of the first try, for inspection only. why has a sentence with every error. */
int tap_order_preview(struct reader *reader, const struct tap_order_file *file, pid_t pid,
		      pid_t live_tid, struct tap_order *ret, struct err *why);

/* Remove taps that ended heaptaps, or ended guardians, left in the process. *ret_cnt: how many. */
int tap_orders_clear(struct reader *reader, pid_t pid, pid_t live_tid, uint32_t *ret_cnt,
		     struct err *why);

#endif
