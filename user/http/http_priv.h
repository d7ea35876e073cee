/* SPDX-License-Identifier: MIT */
/* http_priv.h - the parts of http.c: its connections. */
#ifndef HT_HTTP_HTTP_PRIV_H
#define HT_HTTP_HTTP_PRIV_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct connection;

/*
 * connections.c: the open connections of the server: how long each may take for what it does, and which one is
 * ended when there are too many.
 *
 * A connection asks (it has sent no whole request yet), reads an answer, or is held. Every new one is let in. Of
 * those that are not held there are at most CONNECTIONS_EACH_CAP of one address and CONNECTIONS_CAP of all: to make
 * room for a new one, the oldest of those that ask is ended, or else the oldest of those that read. So no client
 * keeps others out by being silent, or many: one that asks at once is answered before it is the oldest. The handler
 * must limit the held ones.
 */

#define CONNECTIONS_CAP 128
#define CONNECTIONS_EACH_CAP 32

enum connection_state { CONNECTION_ASKS, CONNECTION_READS, CONNECTION_HELD, CONNECTION_ENDED };

struct connections {
	struct connection *first; /* the newest */
};

/* NULL: no memory; then the connection is not listed, and has no deadline. addr: of the client. */
struct connection *connections_add(struct connections *cs, int fd, const struct sockaddr *addr);
/* Remove a connection that has been closed. NULL is fine. */
void connections_remove(struct connection *c);

/* Say what it does from now on. NULL is fine. */
void connection_set(struct connection *c, enum connection_state state);

/* Shut connections that are over their time, or have hung up while they asked. */
void connections_end_slow(struct connections *cs);

#endif
