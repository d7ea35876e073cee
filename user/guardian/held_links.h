/* SPDX-License-Identifier: MIT */
/*
 * held_links.h - attached probes, held by the guardian.
 */
#ifndef HT_GUARDIAN_HELD_LINKS_H
#define HT_GUARDIAN_HELD_LINKS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct attach_request;
struct err;
struct guardian;
struct held_links;
struct tap_lost;
struct tap_order;
struct tap_result;

int held_links_new(struct guardian *g, struct held_links **ret);
/* Attach; on failure nothing of this request remains. -EPIPE: the guardian is gone. */
int held_links_add(struct held_links *links, const struct attach_request *req);
/* Add one more process to these events, see shared_probes_add(). */
int held_links_add_to_events(struct held_links *links, uint64_t events, pid_t tid);
/* Put in a tap with its probes (tap/tap.h). why: set on error. */
int held_links_add_tap(struct held_links *links, const struct attach_request *req,
		       const struct tap_order *order, struct tap_result *ret, struct err *why);
/* Set the rate of the taps (0: unchanged), which must be all that is held, and read what they have lost. */
int held_links_set_tap(const struct held_links *links, uint64_t rate_bytes, struct tap_lost *ret);
/* Move all links to `to`, which then has all or none of them. */
int held_links_move(struct held_links *from, struct held_links *to);
/* Detach without waiting: the ticket tells when they are out (guardian_is_detached()). NULL is fine. */
uint64_t held_links_detach(struct held_links *links);
/* Detach and wait until they are out. NULL is fine. */
void held_links_free(struct held_links *links);

#endif
