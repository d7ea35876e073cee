/* SPDX-License-Identifier: MIT */
/* connections.c - see http_priv.h. */
#include "http/http_priv.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define ASK_NS (15 * NS_PER_S) /* from connecting, or the last answer, to a complete request */
#define READ_NS (120 * NS_PER_S) /* to read an answer */

struct connection {
	struct connection *next;
	struct connection **link; /* the pointer to this one */
	int fd;
	enum connection_state state;
	uint64_t deadline_ns;
	/* The part of the address that a client cannot choose: an IPv6 host has 2^64 addresses. 0: a unix socket. */
	uint64_t address;
};

static uint64_t address_of(const struct sockaddr *addr)
{
	const struct sockaddr_in *v4 = (const void *)addr;
	const struct sockaddr_in6 *v6 = (const void *)addr;
	uint64_t high = 0;
	uint32_t low;

	if (addr && addr->sa_family == AF_INET)
		return (uint64_t)1 << 32 | v4->sin_addr.s_addr;
	if (!addr || addr->sa_family != AF_INET6)
		return 0;
	if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
		memcpy(&low, &v6->sin6_addr.s6_addr[12], sizeof(low));
		return (uint64_t)1 << 32 | low;
	}
	memcpy(&high, &v6->sin6_addr, sizeof(high));
	return high ? high : 1; /* ::1 */
}

/* Shut down: the kernel tells the library, which closes. */
static void end(struct connection *c)
{
	c->state = CONNECTION_ENDED;
	shutdown(c->fd, SHUT_RDWR);
}

struct crowd {
	unsigned int cnt;
	struct connection *oldest[2]; /* of those that ask, of those that read */
};

static void count(struct crowd *crowd, struct connection *c)
{
	crowd->cnt++;
	crowd->oldest[c->state] = c;
}

static void make_room(struct connections *cs, uint64_t address)
{
	struct crowd all = { 0 }, same = { 0 };

	for (struct connection *c = cs->first; c; c = c->next) {
		if (c->state != CONNECTION_ASKS && c->state != CONNECTION_READS)
			continue;
		count(&all, c);
		if (address && c->address == address)
			count(&same, c);
	}
	if (same.cnt >= CONNECTIONS_EACH_CAP)
		end(same.oldest[CONNECTION_ASKS] ? same.oldest[CONNECTION_ASKS] :
						   same.oldest[CONNECTION_READS]);
	else if (all.cnt >= CONNECTIONS_CAP)
		end(all.oldest[CONNECTION_ASKS] ? all.oldest[CONNECTION_ASKS] :
						  all.oldest[CONNECTION_READS]);
}

struct connection *connections_add(struct connections *cs, int fd, const struct sockaddr *addr)
{
	struct connection *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->fd = fd;
	c->address = address_of(addr);
	make_room(cs, c->address);
	connection_set(c, CONNECTION_ASKS);
	c->next = cs->first;
	c->link = &cs->first;
	if (c->next)
		c->next->link = &c->next;
	cs->first = c;
	return c;
}

void connections_remove(struct connection *c)
{
	if (!c)
		return;
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	free(c);
}

void connection_set(struct connection *c, enum connection_state state)
{
	static const uint64_t limit_ns[] = {
		[CONNECTION_ASKS] = ASK_NS, [CONNECTION_READS] = READ_NS
	};

	if (!c || c->state == CONNECTION_ENDED)
		return;
	c->state = state;
	if (state == CONNECTION_ASKS || state == CONNECTION_READS)
		c->deadline_ns = now_ns() + limit_ns[state];
}

/* True at the end of the stream, when nothing before it is unread. */
static bool has_hung_up(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void connections_end_slow(struct connections *cs)
{
	uint64_t now = now_ns();

	/* The library does not see a client hang up right behind half a request: both are one event, and it does
	 * not read on after the data. */
	for (struct connection *c = cs->first; c; c = c->next)
		if ((c->state == CONNECTION_ASKS && has_hung_up(c->fd)) ||
		    ((c->state == CONNECTION_ASKS || c->state == CONNECTION_READS) &&
		     c->deadline_ns < now))
			end(c);
}
