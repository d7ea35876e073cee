/* SPDX-License-Identifier: MIT */
/*
 * profiles.h - answers requests for profiles, names of addresses and command lines.
 *
 * One snapshot answers all requests that wait when it is taken. It is taken in the event loop, because that is
 * cheap. Symbols are not: a child process of lower priority makes the files from the snapshot, and requests that
 * come meanwhile wait for the next snapshot. So a profile never shows less than what was allocated when it was
 * asked for. Slow processes and pushes have children of their own: see profile_lane.h.
 */
#ifndef HT_SERVE_PROFILES_H
#define HT_SERVE_PROFILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "serve/profile_file.h"
#include "serve/stack_profile.h"

struct endpoint_addrs;
struct endpoint_request;
struct http_answer;
struct http_exchange;
struct profiles;
struct pushes;

/* src is copied. */
int profiles_new(const struct profile_source *src, struct profiles **ret);
/* Ends the children that are at work. Waiting requests get no answer: close the server before. */
void profiles_free(struct profiles *p);
/* Make the requests of pushes from the same snapshots, too; NULL: no pushes. */
void profiles_set_pushes(struct profiles *p, struct pushes *pushes);

/* Data that comes with the request. Owned by profiles_request() from there on. */
struct profiles_given {
	struct endpoint_addrs *addrs; /* addresses whose names are asked for, or NULL */
	int saved_fd; /* the saved profile of r->at; -1: none */
	char *page; /* of ENDPOINT_PROCESS; sent as it is when its stacks take too long */
	struct stack_moments moments; /* of ENDPOINT_DIFF with has_from */
	bool has_after; /* after_fd: the saved profile of r->to_at, owned likewise */
	int after_fd;
};
/* Take over the exchange, and hold or answer it. */
void profiles_request(struct profiles *p, struct http_exchange *x, const struct endpoint_request *r,
		      const struct profiles_given *given);
/* Fill in type and file name of the answer to a request for a profile. */
void profile_answer_type(const struct endpoint_request *r, struct http_answer *ret);
/* Forget a client that has gone. */
void profiles_abandon(struct profiles *p, struct http_exchange *x);

/* Start what is due. *ret_fd: -1, or a descriptor that is readable when the child that was started has ended: then
 * call profiles_reap(), which closes it (false: the child has not ended). worker.h says how to watch it. There may
 * be more to start: see profiles_wait_ms(). */
int profiles_work(struct profiles *p, int *ret_fd);
bool profiles_reap(struct profiles *p, int fd);
/* When the oldest snapshot was taken whose stacks are still to be looked up; UINT64_MAX: none. */
uint64_t profiles_reader_since_ns(const struct profiles *p);
bool profiles_makes_pushes(const struct profiles *p);
/* Milliseconds until profiles_work() has something to do; -1: only after another event. */
int profiles_wait_ms(const struct profiles *p);
/* Duration of the last snapshot in seconds; NAN: there was none. */
double profiles_snapshot_seconds(const struct profiles *p);

#endif
