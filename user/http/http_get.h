/* SPDX-License-Identifier: MIT */
/* http_get.h - fetches a file from an HTTP server, such as a profile from `heaptap serve`. */
#ifndef HT_HTTP_HTTP_GET_H
#define HT_HTTP_HTTP_GET_H

#include <stdbool.h>
#include <stddef.h>

struct err;

/* "http://..." or "https://..." */
bool http_get_is_url(const char *text);

/* Seconds without data: a server may record for minutes before it answers (?seconds=300). */
#define HTTP_GET_IDLE_S 330
#define HTTP_GET_S 900
#define HTTP_GET_BYTES_MAX ((size_t)256 << 20)

/*
 * Write to fd, from its position. token: as in the server's --token-file, or NULL; only that server gets it, as
 * redirections are not followed. A negative errno with a sentence in why: -EACCES when a token, or another one, is
 * needed; -EFBIG.
 */
int http_get(const char *url, const char *token, int fd, struct err *why);

#endif
