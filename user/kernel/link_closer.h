/* SPDX-License-Identifier: MIT */
/*
 * link_closer.h - takes probes out that nobody waits for.
 *
 * The end of a link waits for grace periods: tens of milliseconds, of a machine that has much to do
 * hundreds. Where processes come and go, their links would hold up whoever follows the next ones. One
 * thread closes them instead; what comes meanwhile waits together, and shares the grace periods.
 */
#ifndef HT_KERNEL_LINK_CLOSER_H
#define HT_KERNEL_LINK_CLOSER_H

struct attach_links;
struct link_closer;

/* -ENOMEM. */
int link_closer_new(struct link_closer **ret);
/* Waits for what is under way. */
void link_closer_free(struct link_closer *c);
/* Takes the links over; NULL is fine. */
void link_closer_take(struct link_closer *c, struct attach_links *links);
/* Until all that were taken over are out. */
void link_closer_wait(struct link_closer *c);

#endif
