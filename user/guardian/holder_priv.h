/* SPDX-License-Identifier: MIT */
/*
 * holder_priv.h - internal part of holder.c: the taps that the guardian holds, by the numbers that main gave them
 * (held_taps.c).
 *
 * A visit to a process that does not answer costs up to 1.6 s of the guardian's time. Who has lost more than a
 * second in this way makes no visits for a while: what is to be taken out waits, and what is to be put in is
 * refused with a reason.
 */
#ifndef HT_GUARDIAN_HOLDER_PRIV_H
#define HT_GUARDIAN_HOLDER_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hmap.h"
#include "base/vec.h"

struct attach_links;
struct attach_request;
struct closer;
struct err;
struct tap;
struct tap_lost;
struct tap_order;
struct tap_result;

struct held_taps {
	struct hmap by_number;
	VEC(struct tap *) late; /* could not be taken out yet */
	int late_pause_ms;
	uint64_t lost_ns,
		lost_at_ns; /* spent on visits that did not come to an end, and when that was */
	struct err *why; /* of the last one that could not be taken out */
};

void held_taps_init(struct held_taps *ht, struct err *why);
/* *ret_fd belongs to the tap. It is held under the number, without a rate yet. */
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
