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

#include <stdbool.h>
#include <stdint.h>

#define TAP_MAGIC 0x7061742d70616568ULL /* "heap-tap" as bytes */
#define TAP_VERSION 3
#define TAP_SITES_CAP 128
#define TAP_PATCH_CAP 16 /* bytes of the longest instruction */

/* Calls are counted in the way in and reach the slow path when the counter has run out; without this flag every
 * call reaches it. */
#define TAP_SITE_COUNTS 1
/* May end in an exception: real_addr is a function that returns NULL instead; when it does, the stub goes on at
 * orig_addr, as if the function had just been called. */
#define TAP_SITE_THROWS 2
/* real_addr takes arguments 0 and 1 in the other order */
#define TAP_SITE_SWAPS 4

/* Meaning of a call; argument numbers as in heaptap/abi.h. */
struct tap_site {
	uint64_t real_addr; /* target of the real call */
	uint64_t orig_addr; /* does what the untapped function does */
	uint64_t entry_addr; /* of the function */
	uint8_t op; /* HT_OP_* */
	uint8_t size_arg, count_arg, ptr_arg; /* HT_ARG_NONE: none */
	uint8_t ret; /* HT_RET_* */
	uint8_t flags; /* TAP_SITE_* */
	uint8_t reserved[2];
};

/* A change, to be undone later. The patch of a gap, where a long jump is, comes before that of the short jump to it. */
struct tap_patch {
	uint64_t addr;
	uint64_t site_addr; /* of the instruction that is replaced, also for the gap: calls come from there */
	uint8_t byte_cnt;
	uint8_t is_gap;
	uint8_t site_byte; /* the first byte at site_addr, which may not be a part of the patch */
	uint8_t reserved[5];
	uint8_t original[TAP_PATCH_CAP], patched[TAP_PATCH_CAP];
};

#define TAP_PATCHES_CAP (2 * TAP_SITES_CAP)

struct tap_header {
	uint64_t magic;
	uint32_t version, header_bytes;
	/* Set in the stub: offsets from the header. */
	uint32_t alloc_entry_off, alloc_nop_off;
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
 * Bytes are counted in slots, one line of the cache each. Which slot a call counts in follows from its stack pointer sp at
 * the function's entry, so threads have different ones, without a look at the thread: the slot's offset is
 * (uint32_t)((sp >> TAP_STACK_SHIFT) * TAP_SLOT_FACTOR) >> TAP_SLOT_SHIFT, masked by TAP_SLOT_MASK. A thread may use
 * several, each with a draw of its own. Two threads may use the same one: then some bytes get lost when both count at once.
 */
#define TAP_STACK_SHIFT 14 /* the smallest stack of a thread */
#define TAP_SLOT_FACTOR 0x4f1bbcddU
#define TAP_SLOT_SHIFT 14
#ifndef TAP_SLOTS /* a test has fewer */
#define TAP_SLOTS 4096
#endif
#define TAP_SLOT_BYTES 64
#define TAP_SLOT_MASK ((TAP_SLOTS - 1) * TAP_SLOT_BYTES)
#define TAP_FILTER_CNT (1 << 16)
#define TAP_LINE_SHIFT 13
#define TAP_LINE_SLOTS 8
#define TAP_SET_SLOTS (TAP_LINE_SLOTS << TAP_LINE_SHIFT)

struct tap_slot {
	uint64_t left_bytes; /* bytes until the next kept block; below 0: not drawn */
	uint64_t random;
	uint64_t rate_bytes; /* rate by which left_bytes was drawn; 0: not drawn with one */
	uint64_t reserved[5];
};
_Static_assert(sizeof(struct tap_slot) == TAP_SLOT_BYTES, "one line of the cache");

/* The threads that are in the slow path: a line by a hash of the thread pointer, any place in it. */
#ifndef TAP_INSIDE_LINES
#define TAP_INSIDE_LINES 512
#endif
#define TAP_INSIDE_LINE 4

struct tap_inside {
	uint64_t tp; /* thread pointer; 0: nobody */
	uint64_t sp; /* stack pointer of its call, about */
};

#define TAP_PEERS_CAP 7

struct tap_control {
	uint64_t rate_bytes; /* 0: nothing is sampled */
	uint64_t seed; /* set with a rate; each slot takes the next */
	/* kept blocks for which the set had no room, and blocks of threads for which there was no place in inside[] */
	uint64_t dropped_cnt;
	/* kept blocks that a failed realloc left as they were, and that are lost */
	uint64_t failed_cnt;
	int64_t owner_pid; /* of the heaptap, in its own PID namespace; for messages */
};

struct tap_data {
	uint64_t mark; /* TAP_MAGIC; 0 where a fork has wiped it */
	/* Addresses of the tap_data of the process's other taps; 0 behind the last. They stay mapped. */
	uint64_t peer_addr[TAP_PEERS_CAP];
	/* Members up to here are used from outside. */
	struct tap_slot slot[TAP_SLOTS] __attribute__((aligned(TAP_SLOT_BYTES)));
	struct tap_inside inside[TAP_INSIDE_LINES][TAP_INSIDE_LINE];
	uint8_t filter[TAP_FILTER_CNT]; /* number of blocks in the set with this hash */
	uint64_t set[TAP_SET_SLOTS]; /* addresses of kept blocks that are not freed */
};

static inline uint64_t tap_filter_idx(uint64_t ptr)
{
	return ptr >> 4 & (TAP_FILTER_CNT - 1);
}

/* A block is in one of the 2 * TAP_LINE_SLOTS slots from here on. */
static inline uint64_t tap_set_first(uint64_t ptr)
{
	return ((ptr >> 4) * 0xd6e8feb86659fd93ULL >> (64 - TAP_LINE_SHIFT)) * TAP_LINE_SLOTS;
}

/* Filter and set of a new tap: blocks that are kept already, because probes have sampled them before. */
struct tap_seeds {
	uint8_t filter[TAP_FILTER_CNT];
	uint64_t set[TAP_SET_SLOTS];
};

/* false: there is no room for the block. */
static inline bool tap_seeds_add(struct tap_seeds *s, uint64_t ptr)
{
	uint8_t *cnt = &s->filter[tap_filter_idx(ptr)];

	for (uint64_t i = 0, first = tap_set_first(ptr); i < 2 * TAP_LINE_SLOTS; i++) {
		uint64_t *at = &s->set[(first + i) & (TAP_SET_SLOTS - 1)];

		if (*at)
			continue;
		*at = ptr;
		*cnt += *cnt != UINT8_MAX;
		return true;
	}
	return false;
}

#endif
