/* SPDX-License-Identifier: MIT */
/*
 * tap_layout.h - memory layout of a tap in a process: code, control, data, one behind the other. Compiled into
 * the stub, which runs in the process, and into the code that puts it there.
 *
 * Code (read, execute; private, of a memory file): struct tap_header, then the slow path (stub/: the same for
 * all), then the way in of each site (written by tap/tap_code.c). Control (shared, of the same file): struct
 * tap_control, which heaptap reads and writes in a mapping of its own, so that it never waits for a page of the
 * process. Data (private, anonymous, wiped in a forked child): struct tap_data. Without its mark, as in a forked
 * child, nothing is sampled.
 */
#ifndef HT_TAP_TAP_LAYOUT_H
#define HT_TAP_TAP_LAYOUT_H

#include <stdint.h>

#define TAP_MAGIC 0x7061742d70616568ULL /* "heap-tap" as bytes */
#define TAP_VERSION 2
#define TAP_SITES_CAP 64
#define TAP_PATCH_CAP 16 /* bytes of the longest instruction */
#define TAP_HOP_BYTES 2 /* a short jump to the long jump of the patch before it */

/* Calls are counted in the way in and reach the slow path when the counter has run out; without this flag every
 * call reaches it. */
#define TAP_SITE_COUNTS 1
/* May end in an exception: real_addr is the form that returns NULL; when it does, the stub jumps to entry_addr. */
#define TAP_SITE_THROWS 2

/* Meaning of a call; argument numbers as in heaptap/abi.h. */
struct tap_site {
	uint64_t real_addr; /* target of the real call */
	uint64_t entry_addr; /* of the function */
	uint8_t op; /* HT_OP_* */
	uint8_t size_arg, count_arg, ptr_arg; /* HT_ARG_NONE: none */
	uint8_t ret; /* HT_RET_* */
	uint8_t flags; /* TAP_SITE_* */
	uint8_t reserved[2];
};

/* A change, to be undone later. */
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
	/* Set in the stub: offsets from the header. */
	uint32_t alloc_entry_off, alloc_nop_off, alloc_return_off;
	uint32_t free_entry_off, free_nop_off;
	/* at the nop: distance from rsp to the return address of the call */
	uint32_t alloc_frame_bytes;
	/* Written by the process that puts it in. */
	uint32_t site_cnt, patch_cnt;
	uint64_t control_addr, data_addr, data_bytes;
	struct tap_site site[TAP_SITES_CAP];
	struct tap_patch patch[TAP_PATCHES_CAP];
};

/*
 * Each thread counts in a slot found by a hash of its thread pointer: the slot's offset is (tp * TAP_SLOT_FACTOR) >> 32,
 * masked by TAP_SLOT_MASK. Two threads may have the same one (of 100 some do two times in three): they take bytes from one
 * counter, of which some get lost when both do so at once; in the slow path each has its own draw.
 */
#define TAP_SLOT_FACTOR 0x4f1bbcddU
#ifndef TAP_SLOTS /* a test has fewer */
#define TAP_SLOTS 4096
#endif
#define TAP_SLOT_BYTES 64
#define TAP_SLOT_MASK ((TAP_SLOTS - 1) * TAP_SLOT_BYTES)
#define TAP_FILTER_CNT (1 << 16)
#define TAP_LINE_SHIFT 13
#define TAP_LINE_SLOTS 8
#define TAP_SET_SLOTS (TAP_LINE_SLOTS << TAP_LINE_SHIFT)

#define TAP_GUESTS_CAP 3

struct tap_slot {
	/* bytes until the next kept block; below 0, where every call gets to the slow path, while that has the counter */
	uint64_t left_bytes;
	uint64_t random;
	uint64_t rate_bytes; /* rate by which left_bytes was drawn; 0: not drawn */
	/* Thread pointers of those in the slow path; 0: none. The first one has the counter until it leaves, those that
	 * come meanwhile are its guests. */
	uint64_t owner, guest[TAP_GUESTS_CAP], guest_cnt;
};
_Static_assert(sizeof(struct tap_slot) == TAP_SLOT_BYTES, "one line of the cache");

struct tap_control {
	uint64_t rate_bytes; /* 0: nothing is sampled */
	uint64_t seed; /* set with a rate; each thread takes the next */
	/* kept blocks for which the set had no room, and blocks for which the slot had no place for a guest */
	uint64_t dropped_cnt;
	/* kept blocks that a failed realloc left as they were, and that are lost */
	uint64_t failed_cnt;
	int64_t owner_pid; /* of the heaptap, in its own PID namespace; for messages */
};

struct tap_data {
	uint64_t mark; /* TAP_MAGIC; 0 where a fork has wiped it */
	uint64_t reserved[7];
	struct tap_slot slot[TAP_SLOTS];
	uint8_t filter[TAP_FILTER_CNT]; /* number of blocks in the set with this hash */
	uint64_t set[TAP_SET_SLOTS]; /* addresses of kept blocks that are not freed */
};

#endif
