/* SPDX-License-Identifier: MIT */
/* guardian_priv.h - internal parts of guardian.c: messages (for requests.c), and the guardian's own side. */
#ifndef HT_GUARDIAN_PRIV_H
#define HT_GUARDIAN_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/hmap.h"
#include "base/vec.h"
#include "guardian/guardian.h"
#include "kernel/attach.h"
#include "tap/tap.h"

struct attach_links;
struct closer;
struct tap;

/*
 * Messages between main and its guardian, on a SOCK_SEQPACKET pair.
 *
 * A request is a head; then sites of all its parts, or ids; then the order of a tap; and descriptors
 * (SCM_RIGHTS): the file, and the program of each part. Main chooses ids and tickets, which are numbers.
 * WIRE_DETACH and WIRE_CLEAN are answered when done, with their ticket and in any order (WIRE_OUT).
 * WIRE_FREE_EVENTS is not answered. All others are answered at once, in order (WIRE_ANSWER).
 */
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

/* The parts of a message. */
struct guardian_request {
	struct wire_request head;
	struct iovec body[WIRE_PARTS_CAP + 1];
	size_t body_cnt;
	int fds[WIRE_FDS_CAP];
	size_t fd_cnt;
};

/* The number of something new: an id, a ticket. */
uint64_t guardian_new_number(struct guardian *g);
/* Send, and wait for the answer. Returns its error; *reply has the rest. -EPIPE: the guardian is gone. */
int guardian_exchange(struct guardian *g, struct guardian_request *r, struct wire_reply *reply);
/* Only send. */
int guardian_send(struct guardian *g, struct guardian_request *r);
/* The same, with a ticket that counts as a cleaning. */
int guardian_send_clean(struct guardian *g, struct guardian_request *r);

/* Set the rate of one tap; for held_links_set_tap(), and tests. */
int guardian_set_tap(struct guardian *g, uint64_t id, uint64_t rate_bytes, struct tap_lost *ret);
/* Return a ticket. */
uint64_t guardian_detach(struct guardian *g, const uint64_t *ids, size_t cnt);

/* See tracer_start(); afterwards the guardian has a copy of fd. */
int guardian_start_tracer(struct guardian *g, int fd);

/* holder.c: the code that runs in the guardian, after the fork in guardian_start(). */

/* fd: the socket. Ends with the process. */
void __attribute__((noreturn)) holder_run(int fd);

/* tracer.c: the guardian's thread that holds programs at an exec: see exec_hold.h for the other end. */

/*
 * fd: the socket, owned by the thread from here on; struct wire_hold_request and struct wire_hold_news are its
 * messages. The thread ends when the other end of the socket is closed or when main ends, whose pidfd is main_fd (-1:
 * not known); the kernel then lets go of everything that is traced and held.
 */
int tracer_start(int fd, int main_fd);

/*
 * held_taps.c: the taps that the guardian holds, by the numbers that main gave them.
 *
 * A visit to a process that does not answer costs up to 1.6 s of the guardian's time. Who has lost more than a
 * second in this way makes no visits for a while: what is to be taken out waits, and what is to be put in is
 * refused with a reason.
 */

struct held_taps {
	struct hmap by_number;
	VEC(struct tap *) late; /* could not be taken out yet */
	int late_pause_ms;
	uint64_t lost_ns,
		lost_at_ns; /* spent on visits that did not come to an end, and when that was */
	struct err *why; /* of the last one that could not be taken out */
};

void held_taps_init(struct held_taps *ht, struct err *why);
/* *ret_fd: as tap_put_in(); it belongs to the tap, which is held under the number, without a rate yet. */
int held_taps_put_in(struct held_taps *ht, uint64_t number, const struct tap_order *order,
		     int *ret_fd, struct tap_result *result, struct err *why);
/* -ENOENT: there is no such tap. rate_bytes 0: unchanged. */
int held_taps_set(const struct held_taps *ht, uint64_t number, uint64_t rate_bytes,
		  struct tap_lost *ret);
/* Take one out, now or later. An unknown number is fine. */
void held_taps_take_out(struct held_taps *ht, uint64_t number);
/* Try those that are late again, if it is time. Returns when to call next, in ms; -1: there are none. */
int held_taps_try_late(struct held_taps *ht);
/* Take all out, side by side, in 2 s at most; those that are left are late. Returns how many are. */
size_t held_taps_take_all_out(struct held_taps *ht);
/* For a process that does nothing else: try until all are out, or ten minutes are over. */
void held_taps_finish(struct held_taps *ht);

/*
 * closer.c: detaches probes in the background.
 *
 * Closing a link waits for grace periods: tens of milliseconds, hundreds on a busy machine. One grace period
 * serves everything that waits for it. So a few threads do it, each of them for all links that have come
 * meanwhile; no thread stays when there is nothing to do.
 */

/* -ENOMEM or another -errno. */
int closer_new(struct closer **ret);
/* Wait for what is under way. NULL is fine. */
void closer_free(struct closer *c);

/* Close links in the background, and take them over; NULL: nothing to close, the ticket is done. */
void closer_close(struct closer *c, struct attach_links *links, uint64_t ticket);
/* Attach, and detach at once. Takes the descriptors over and copies the sites, of which there is at least one. */
void closer_clean(struct closer *c, const struct attach_request *req, uint64_t ticket);
/* Wait until all are detached. */
void closer_wait(struct closer *c);

/* Readable when tickets are done. */
int closer_fd(const struct closer *c);
/* Return some of the done tickets, each once. */
size_t closer_take_done(struct closer *c, uint64_t *tickets, size_t cap);

#endif
