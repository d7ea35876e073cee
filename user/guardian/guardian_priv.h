/* SPDX-License-Identifier: MIT */
/* guardian_priv.h - what guardian.c is made of: requests that make and end links (held_links.c makes them), its own side. */
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
/* See tap/tap.h; req is that of its probes, without a file. why: with an error. */
int guardian_tap(struct guardian *g, const struct attach_request *req,
		 const struct tap_order *order, uint64_t *ret_id, struct tap_result *ret,
		 struct err *why);
int guardian_set_tap(struct guardian *g, uint64_t id, uint64_t rate_bytes, struct tap_lost *ret);
/* A ticket. */
uint64_t guardian_detach(struct guardian *g, const uint64_t *ids, size_t cnt);

/* See tracer_start(); the guardian has a copy of fd then. */
int guardian_start_tracer(struct guardian *g, int fd);

/* holder.c: what guardian_start() forks runs this, and nothing else. */

/* fd: the socket. Ends with the process. */
void __attribute__((noreturn)) holder_run(int fd);

/* tracer.c: the guardian's thread that holds programs at an exec: see exec_hold.h for the other end. */

/*
 * fd: the socket, from here on the thread's; what is said on it is in wire.h. The thread ends with the
 * other end of the socket or with main, whose pidfd main_fd is (-1: not known), and the kernel then lets go of
 * all that is traced and held.
 */
int tracer_start(int fd, int main_fd);

#endif
