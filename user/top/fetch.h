/* SPDX-License-Identifier: MIT */
/* fetch.h - one request at a time to `heaptap serve`, without waiting for the answer. */
#ifndef HT_TOP_FETCH_H
#define HT_TOP_FETCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct top_fetch;

/* Is url a server's address as below? -EINVAL with what is expected in why. */
int top_fetch_check(const char *url, struct err *why);
/*
 * url: http://HOST:PORT, https://..., perhaps with a path before the server's own, or unix:PATH. token: NULL or the
 * server's. 0, -ENOMEM or -ENOTSUP (this libcurl lacks what is needed).
 */
int top_fetch_open(const char *url, const char *token, struct top_fetch **ret);
void top_fetch_close(struct top_fetch *f);
/* path: "/metrics". Call when no request is in progress. 0 or -ENOMEM. */
int top_fetch_begin(struct top_fetch *f, const char *path);
/* Give up the request in progress. */
void top_fetch_cancel(struct top_fetch *f);
bool top_fetch_is_busy(const struct top_fetch *f);

struct top_answer {
	int status; /* HTTP status; 0: there was no answer, see why */
	const char *data; /* followed by a zero byte; valid until the next request */
	size_t bytes;
	struct err why;
};
/* Wait until there is an answer, one of fds is readable, or ms have passed. true: *ret is the answer. */
bool top_fetch_wait(struct top_fetch *f, const int fds[2], int ms, struct top_answer *ret);

#endif
