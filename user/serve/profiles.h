/* SPDX-License-Identifier: MIT */
/*
 * profiles.h - requests for profiles, names of addresses and command lines, answered.
 *
 * One snapshot answers the requests that wait when it is taken; it is taken in the event loop,
 * because it is cheap. Symbols are not: a child process of lower priority makes the files from the
 * snapshot, and requests that come meanwhile wait for the next one. So a profile never shows less
 * than what was allocated when it was asked for. What is slow has a child of its own, and so have pushes:
 * see profile_lane.h.
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
/* Ends the children that are at work. Who waits is not answered: close the server before. */
void profiles_free(struct profiles *p);
/* Whose requests are made with the same snapshots, too; NULL: none. */
void profiles_set_pushes(struct profiles *p, struct pushes *pushes);

/* Beside the request. Owned from there on. */
struct profiles_given {
	struct endpoint_addrs *addrs; /* whose names are wanted, or NULL */
	int saved_fd; /* of the saved profile of r->at; -1: none */
	char *page; /* of ENDPOINT_PROCESS; answered as it is when its stacks take too long */
	struct stack_moments moments; /* of ENDPOINT_DIFF, with has_from */
};
/* Takes the exchange over, which is held or answered. */
void profiles_request(struct profiles *p, struct http_exchange *x, const struct endpoint_request *r,
		      const struct profiles_given *given);
/* Type and file name of the answer to a request for a profile. */
void profile_answer_type(const struct endpoint_request *r, struct http_answer *ret);
/* The client has gone. */
void profiles_abandon(struct profiles *p, struct http_exchange *x);

/* Start what is due. *ret_fd: -1, or a descriptor that is readable when the child that was started
 * has ended: then call profiles_reap(), which closes it (false: it has not ended). How it must be
 * watched: see worker.h. There may be more to start: see profiles_wait_ms(). */
int profiles_work(struct profiles *p, int *ret_fd);
bool profiles_reap(struct profiles *p, int fd);
/* When the oldest snapshot was taken whose stacks are still to be looked up; UINT64_MAX: there is none. */
uint64_t profiles_reader_since_ns(const struct profiles *p);
bool profiles_makes_pushes(const struct profiles *p);
/* Milliseconds until profiles_work() has something to do; -1: not by itself. */
int profiles_wait_ms(const struct profiles *p);
/* Seconds that the last snapshot took; NAN: there was none. */
double profiles_snapshot_seconds(const struct profiles *p);

#endif
