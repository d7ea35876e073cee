/* SPDX-License-Identifier: MIT */
/* fetch.h - one request at a time to a heaptap serve, without waiting for it. */
#ifndef HT_TOP_FETCH_H
#define HT_TOP_FETCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct top_fetch;

/* Is it an address of a server, as below? -EINVAL with what is wanted in why. */
int top_fetch_check(const char *url, struct err *why);
/*
 * url: http://HOST:PORT, https://..., with a path in front of the server's own perhaps, or unix:PATH. token: NULL or
 * the server's. 0, -ENOMEM or -ENOTSUP (this libcurl has not what is needed).
 */
int top_fetch_open(const char *url, const char *token, struct top_fetch **ret);
void top_fetch_close(struct top_fetch *f);
/* path: "/metrics". When none is under way. 0 or -ENOMEM. */
int top_fetch_begin(struct top_fetch *f, const char *path);
/* Not any more. */
void top_fetch_cancel(struct top_fetch *f);
bool top_fetch_is_busy(const struct top_fetch *f);

struct top_answer {
	int status; /* of HTTP; 0: there was no answer, and why says why not */
	const char *data; /* with a zero behind it; until the next request */
	size_t bytes;
	struct err why;
};
/* Waits until there is an answer, one of fds is readable, or ms are over. true: *ret is the answer. */
bool top_fetch_wait(struct top_fetch *f, const int fds[2], int ms, struct top_answer *ret);

#endif
