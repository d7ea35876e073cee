/* SPDX-License-Identifier: MIT */
/*
 * closer.h - takes probes out, while others wait for nothing.
 *
 * The end of a link waits for grace periods: tens of milliseconds, of a machine that has much to do
 * hundreds. A grace period serves all that wait for it at once. So a few threads do it, each of them all
 * that has come meanwhile, and none stays when there is nothing to do.
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
/* Waits for what is under way. NULL is fine. */
void closer_free(struct closer *c);

/* Takes the links over; NULL: nothing is to be done, and that is. */
void closer_close(struct closer *c, struct attach_links *links, uint64_t ticket);
/* Attaches, and takes out at once what it has attached. Takes the descriptors over, copies the sites, of
 * which there are some. */
void closer_clean(struct closer *c, const struct attach_request *req, uint64_t ticket);
/* Until all are out. */
void closer_wait(struct closer *c);

/* Readable when there are tickets of what is done. */
int closer_fd(const struct closer *c);
/* Some of them, once each. */
size_t closer_take_done(struct closer *c, uint64_t *tickets, size_t cap);

#endif
