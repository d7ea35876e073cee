/* SPDX-License-Identifier: MIT */
/* guardian_priv.h - internal parts of guardian.c: requests that make and end links (for held_links.c), and the
 * guardian's own side. */
#ifndef HT_GUARDIAN_PRIV_H
#define HT_GUARDIAN_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hmap.h"
#include "base/vec.h"
#include "guardian/guardian.h"

struct attach_links;
struct attach_request;
struct closer;
struct err;
struct tap;
struct tap_lost;
struct tap_order;
struct tap_result;

/* At most WIRE_SITES_CAP sites. */
int guardian_attach(struct guardian *g, const struct attach_request *req, uint64_t *ret_id);
int guardian_add_to_events(struct guardian *g, uint64_t events, pid_t tid, uint64_t *ret_id);
/* See tap/tap.h; req is the request for the tap's probes, with the file of the order's seeds, or none. why: set on
 * error. */
int guardian_tap(struct guardian *g, const struct attach_request *req,
		 const struct tap_order *order, uint64_t *ret_id, struct tap_result *ret,
		 struct err *why);
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
 * fd: the socket, owned by the thread from here on; wire.h has its messages. The thread ends when the other end
 * of the socket is closed or when main ends, whose pidfd is main_fd (-1: not known); the kernel then lets go of
 * everything that is traced and held.
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
