/* SPDX-License-Identifier: MIT */
/* http_get.h - a file from an HTTP server, such as a profile from a heaptap that serves. */
#ifndef HT_HTTP_HTTP_GET_H
#define HT_HTTP_HTTP_GET_H

#include <stdbool.h>
#include <stddef.h>

struct err;

/* "http://..." or "https://..." */
bool http_get_is_url(const char *text);
/* Of such an address: a name or a password stands in front of the host. */
bool http_get_has_user(const char *url);

/* So long may nothing come: a server may record for minutes before it answers (?seconds=300). */
#define HTTP_GET_IDLE_S 330
#define HTTP_GET_S 900
#define HTTP_GET_BYTES_MAX ((size_t)256 << 20)

/*
 * To fd, from its position. token: what the server's --token-file has, or NULL; it is sent to that server alone, for
 * redirections are not followed. A negative errno with a sentence in why: -EACCES where a token is wanted, or another
 * one; -EFBIG.
 */
int http_get(const char *url, const char *token, int fd, struct err *why);

#endif
