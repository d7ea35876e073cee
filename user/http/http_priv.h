/* SPDX-License-Identifier: MIT */
/* http_priv.h - what http.c is made of: its connections. */
#ifndef HT_HTTP_HTTP_PRIV_H
#define HT_HTTP_HTTP_PRIV_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct connection;

/*
 * connections.c: the open connections of the server: until when each may take for what it does, and who
 * gives way when there are too many.
 *
 * A connection asks (it has sent no whole request yet), reads an answer, or is held. Whoever comes is let
 * in. Of those that are not held there are at most CONNECTIONS_EACH_CAP of one address and
 * CONNECTIONS_CAP of all: the one that has been there longest of those that ask, else of those that read,
 * is ended for the one that comes. So nobody keeps others out by being silent, or many: who asks at once
 * is answered before it is the oldest. How many are held is for the handler to bound.
 */

#define CONNECTIONS_CAP 128
#define CONNECTIONS_EACH_CAP 32

struct connections {
	struct connection *first; /* the newest */
};

/* NULL: no memory; then it is nobody's, and no deadline holds. addr: of the client. */
struct connection *connections_add(struct connections *cs, int fd, const struct sockaddr *addr);
/* It has been closed. NULL is none. */
void connections_remove(struct connection *c);

void connection_asks(struct connection *c);
void connection_reads(struct connection *c);
void connection_is_held(struct connection *c);

/* Shuts those that are over their time, or have hung up while they asked. */
void connections_end_slow(struct connections *cs);

#endif
