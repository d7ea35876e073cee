/* SPDX-License-Identifier: MIT */
/*
 * wire.h - messages between main and its guardian, on a SOCK_SEQPACKET pair.
 *
 * A request is a head; then sites of all its parts, or ids; then the order of a tap; and descriptors
 * (SCM_RIGHTS): the file, and the program of each part. Main chooses ids and tickets, which are numbers.
 * WIRE_DETACH and WIRE_CLEAN are answered when done, with their ticket and in any order (WIRE_OUT).
 * WIRE_FREE_EVENTS is not answered. All others are answered at once, in order (WIRE_ANSWER).
 */
#ifndef HT_GUARDIAN_WIRE_H
#define HT_GUARDIAN_WIRE_H

#include <stdint.h>

#include "kernel/attach.h"
#include "tap/tap.h"

#define WIRE_SITES_CAP 1024
#define WIRE_IDS_CAP 4096
#define WIRE_PARTS_CAP 3
#define WIRE_FDS_CAP (1 + WIRE_PARTS_CAP)
#define WIRE_TICKETS_CAP 64
#define WIRE_WHY_BYTES 256
#define WIRE_TAP_SITES 2
/* Longest hold. A program that is not read by then, a very large one on a busy machine, is not worth more of a
 * user's time. */
#define HOLD_LIMIT_NS 2000000000ULL

enum wire_request_kind {
	WIRE_ATTACH, /* attach part 0, as the links `id` */
	WIRE_DETACH, /* detach the links with these ids */
	WIRE_CLEAN, /* attach part 0, and detach it at once */
	WIRE_OPEN_EVENTS, /* open the definitions in tracefs */
	WIRE_NEW_EVENTS, /* define all parts, as the events `events_id` */
	/* add the process of the thread `pid` to `events_id`, as the links `id` */
	WIRE_ADD_TO_EVENTS,
	WIRE_FREE_EVENTS,
	WIRE_START_TRACER, /* the descriptor is its socket */
	/* Put in a tap by the order, with the probes of part 0 in its code, as the links `id`: tap and probes
	 * go together. The tap makes the file itself: the descriptor for a file is that of the seeds. */
	WIRE_TAP,
	/* set the rate of the tap `id`; 0: unchanged. The answer has its losses so far. */
	WIRE_SET_TAP,
	WIRE_CHECK_DISPATCH, /* tap_check_dispatch() of `pid` */
};

struct wire_part {
	uint32_t mode, kind; /* enum attach_mode, enum attach_kind */
	uint32_t site_cnt;
	int32_t pid;
};

struct wire_request {
	uint32_t kind;
	uint32_t part_cnt;
	uint32_t id_cnt;
	uint32_t order_cnt; /* 0 or 1 */
	int32_t pid;
	uint32_t reserved;
	uint64_t id, events_id, ticket, rate_bytes;
	struct wire_part parts[WIRE_PARTS_CAP];
};

union wire_body {
	struct attach_site sites[WIRE_SITES_CAP];
	uint64_t ids[WIRE_IDS_CAP];
	struct {
		struct attach_site sites[WIRE_TAP_SITES];
		struct tap_order order;
	} tap;
};

enum wire_reply_kind {
	WIRE_ANSWER,
	WIRE_OUT,
	/* the last message: cnt taps could not be taken out; the process `err` tries on. why: of the first one */
	WIRE_LEFT,
	WIRE_STOPPED, /* main was stopped, and all links and taps have been taken out */
};

struct wire_reply {
	uint32_t kind;
	int32_t err; /* of an answer */
	uint64_t cnt; /* tickets; for WIRE_OPEN_EVENTS the removed definitions */
	union {
		uint64_t tickets[WIRE_TICKETS_CAP];
		char why[WIRE_WHY_BYTES]; /* WIRE_OPEN_EVENTS, WIRE_TAP with err */
		struct tap_result tap; /* WIRE_TAP */
		struct tap_lost lost; /* WIRE_SET_TAP */
	};
};

/* Messages on the tracer's socket (tracer.c). */
enum wire_hold_request_kind {
	WIRE_HOLD_SEIZE, /* answered at once */
	WIRE_HOLD_GO,
	WIRE_HOLD_LET_GO, /* all threads of the process `tid` */
};

struct wire_hold_request {
	uint32_t kind;
	int32_t tid;
	uint32_t is_family;
	uint32_t reserved;
	uint64_t serial;
};

enum wire_hold_news_kind { WIRE_HOLD_SEIZED, WIRE_HELD_EXEC, WIRE_HELD_LOADED };

struct wire_hold_news {
	uint32_t kind;
	int32_t tid;
	int32_t err; /* WIRE_HOLD_SEIZED */
	uint32_t reserved;
	uint64_t serial, until_ns; /* the others */
};

#endif
