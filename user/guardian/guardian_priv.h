/* SPDX-License-Identifier: MIT */
/* guardian_priv.h - what guardian.c and held_links.c share: requests that make and end links. */
#ifndef HT_GUARDIAN_PRIV_H
#define HT_GUARDIAN_PRIV_H

#include "guardian/guardian.h"

/* At most WIRE_SITES_CAP sites. */
int guardian_attach(struct guardian *g, const struct attach_request *req, uint64_t *ret_id);
int guardian_add_to_events(struct guardian *g, uint64_t events, pid_t tid, uint64_t *ret_id);
/* See tap/tap.h; req is that of its probes, without a file. why: with an error. */
struct tap_order;
struct tap_result;
struct tap_lost;
int guardian_tap(struct guardian *g, const struct attach_request *req,
		 const struct tap_order *order, uint64_t *ret_id, struct tap_result *ret, char *why,
		 size_t why_bytes);
int guardian_set_tap(struct guardian *g, uint64_t id, uint64_t rate_bytes, struct tap_lost *ret);
/* A ticket. */
uint64_t guardian_detach(struct guardian *g, const uint64_t *ids, size_t cnt);

/* See tracer.h; the guardian has a copy of fd then. */
int guardian_start_tracer(struct guardian *g, int fd);

#endif
