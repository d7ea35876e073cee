/* SPDX-License-Identifier: MIT */
/*
 * closer.h - detaches probes in the background.
 *
 * Closing a link waits for grace periods: tens of milliseconds, hundreds on a busy machine. One grace period
 * serves everything that waits for it. So a few threads do it, each of them for all links that have come
 * meanwhile; no thread stays when there is nothing to do.
 */
#ifndef HT_GUARDIAN_CLOSER_H
#define HT_GUARDIAN_CLOSER_H

#include <stddef.h>
#include <stdint.h>

struct attach_links;
struct attach_request;
struct closer;

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
