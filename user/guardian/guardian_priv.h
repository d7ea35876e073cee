/* SPDX-License-Identifier: MIT */
/* guardian_priv.h - internal parts of guardian.c: requests that make and end links (for held_links.c), and the
 * guardian's own side. */
#ifndef HT_GUARDIAN_PRIV_H
#define HT_GUARDIAN_PRIV_H

#include "guardian/guardian.h"

struct err;
struct tap_lost;
struct tap_order;
struct tap_result;

/* At most WIRE_SITES_CAP sites. */
int guardian_attach(struct guardian *g, const struct attach_request *req, uint64_t *ret_id);
int guardian_add_to_events(struct guardian *g, uint64_t events, pid_t tid, uint64_t *ret_id);
/* See tap/tap.h; req is the request for the tap's probes, without a file. why: set on error. */
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

#endif
