/* SPDX-License-Identifier: MIT */
/*
 * tap_layout.h - what a tap lays out in a process: code, and data right behind it. Compiled into the stub, which runs in
 * the process, and into who puts it there.
 *
 * Code (read, execute; private): struct tap_header, the slow path (stub/: the same for all), then for each
 * site its way in (tap/tap_code.c writes these). Data (private, anonymous, wiped in a forked child): struct
 * tap_data. All zero means "no rate": nothing is sampled.
 */
#ifndef HT_TAP_TAP_LAYOUT_H
#define HT_TAP_TAP_LAYOUT_H

#include <stdint.h>

#define TAP_MAGIC 0x7061742d70616568ULL /* "heap-tap" as bytes */
#define TAP_VERSION 1
#define TAP_SITES_CAP 64
#define TAP_PATCH_CAP 16 /* bytes: of the longest instruction */
#define TAP_HOP_BYTES 2 /* a short jump, to the long one of the patch before it */

/* A call counts in the way in, and comes to the slow path when its counter has run out; else it always comes. */
#define TAP_SITE_COUNTS 1
/* May end in an exception: real_addr is the form that returns NULL, and then entry_addr is jumped to. */
#define TAP_SITE_THROWS 2

/* What a call means; the arguments by number, as in heaptap/abi.h. */
struct tap_site {
	uint64_t real_addr; /* where the real call goes */
	uint64_t entry_addr; /* of the function */
	uint8_t op; /* HT_OP_* */
	uint8_t size_arg, count_arg, ptr_arg; /* HT_ARG_NONE: none */
	uint8_t ret; /* HT_RET_* */
	uint8_t flags; /* TAP_SITE_* */
	uint8_t reserved[2];
};

/* What was changed, to be put back. */
struct tap_patch {
	uint64_t addr;
	uint8_t byte_cnt;
	uint8_t reserved[7];
	uint8_t original[TAP_PATCH_CAP], patched[TAP_PATCH_CAP];
};

#define TAP_PATCHES_CAP (2 * TAP_SITES_CAP)

struct tap_header {
	uint64_t magic;
	uint32_t version, header_bytes;
	/* In the stub: offsets from the header. */
	uint32_t alloc_entry_off, alloc_nop_off, alloc_return_off;
	uint32_t free_entry_off, free_nop_off;
	uint32_t alloc_frame_bytes; /* at the nop: from rsp up to the return address of the call */
	/* Written by who puts it in. */
	int32_t owner_pid;
	uint32_t site_cnt, patch_cnt, reserved;
	uint64_t owner_start; /* field 22 of its stat */
	uint64_t data_addr, data_bytes;
	struct tap_site site[TAP_SITES_CAP];
	struct tap_patch patch[TAP_PATCHES_CAP];
};

/*
 * Each thread counts in a slot of its own, found by a hash of its thread pointer: (tp * TAP_SLOT_FACTOR) >> 32, and
 * of that TAP_SLOT_MASK is the offset. Two on one race harmlessly.
 */
#define TAP_SLOT_FACTOR 0x4f1bbcddU
#define TAP_SLOTS 1024
#define TAP_SLOT_BYTES 64
#define TAP_SLOT_MASK ((TAP_SLOTS - 1) * TAP_SLOT_BYTES)
#define TAP_FILTER_CNT (1 << 16)
#define TAP_LINE_SHIFT 13
#define TAP_LINE_SLOTS 8
#define TAP_SET_SLOTS (TAP_LINE_SLOTS << TAP_LINE_SHIFT)

struct tap_slot {
	uint64_t left_bytes; /* to the next block that is kept; TAP_PARKED: the slow path is at work */
	uint64_t random;
	uint64_t rate_bytes; /* by which left_bytes was drawn; 0: by none */
	uint8_t reserved[TAP_SLOT_BYTES - 24];
};
#define TAP_PARKED (1ULL << 62)

struct tap_data {
	uint64_t rate_bytes; /* 0: nothing is sampled */
	uint64_t seed; /* comes with a rate; each thread takes the next */
	uint64_t dropped_cnt; /* kept blocks that the set had no room for */
	uint64_t failed_cnt; /* kept blocks that a failed realloc left as they were, and that are lost */
	uint64_t reserved[4];
	/* Up to here it is read from outside. */
	struct tap_slot slot[TAP_SLOTS];
	uint8_t filter[TAP_FILTER_CNT]; /* how many blocks of the set have this hash */
	uint64_t set[TAP_SET_SLOTS]; /* addresses of the blocks that were kept and are not freed */
};

#endif
