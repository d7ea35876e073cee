/* SPDX-License-Identifier: MIT */
/*
 * tap_orders.h - what is to be done to tap one file of one process (tap/tap.h): where its code may lie, and the code
 * for there. Places are tried one after the other: between two looks the process may map something.
 */
#ifndef HT_TRACK_TAP_ORDERS_H
#define HT_TRACK_TAP_ORDERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct alloc_file;
struct err;
struct tap_order;
struct track_file;

#define TAP_TRIES 8

/*
 * The nth try, from 0: the memory of taps that were taken out first. why has a sentence with every error; -ENOENT: so
 * many tries there are not.
 */
int tap_order_make(const struct track_file *file, pid_t pid, pid_t live_tid, uint64_t rate_bytes,
		   unsigned int nth, struct tap_order *ret, struct err *why);

/* An allocator as proc/survey.h has it. */
struct tap_order_file {
	const struct alloc_file *alloc;
	uint64_t ino, bias;
	uint32_t dev;
};
/* The order that would be the first, to be looked at. why has a sentence with every error. */
int tap_order_preview(const struct tap_order_file *file, pid_t pid, pid_t live_tid,
		      struct tap_order *ret, struct err *why);

/* Takes out the taps that heaptaps which are gone have left in it, and, is_own, those of this one, whose guardian is
 * gone; how many they were. */
int tap_orders_clear(pid_t pid, pid_t live_tid, bool is_own, uint32_t *ret_cnt, struct err *why);

#endif
