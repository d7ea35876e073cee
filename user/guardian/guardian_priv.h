/* SPDX-License-Identifier: MIT */
/* guardian_priv.h - what guardian.c and held_links.c share: requests that make and end links. */
#ifndef HT_GUARDIAN_PRIV_H
#define HT_GUARDIAN_PRIV_H

#include "guardian/guardian.h"

/* At most WIRE_SITES_CAP sites. */
int guardian_attach(struct guardian *g, const struct attach_request *req, uint64_t *ret_id);
int guardian_add_to_events(struct guardian *g, uint64_t events, pid_t tid, uint64_t *ret_id);
/* A ticket. */
uint64_t guardian_detach(struct guardian *g, const uint64_t *ids, size_t cnt);

/* See tracer.h; the guardian has a copy of fd then. */
int guardian_start_tracer(struct guardian *g, int fd);

#endif
