/* SPDX-License-Identifier: MIT */
/* token.h - the secret that clients must have. */
#ifndef HT_HTTP_TOKEN_H
#define HT_HTTP_TOKEN_H

#include <stdbool.h>
#include <stddef.h>

struct err;

#define TOKEN_BYTES_MIN 16
#define TOKEN_BYTES_CAP 512

/*
 * Read the first line of a file that nobody but its owner (us, or root) may read. buf has room for TOKEN_BYTES_CAP
 * + 1. On failure why says what is wrong and what to do.
 */
int token_read(const char *path, char *buf, struct err *why);

/* Takes equally long for a wrong token and the right one; the length of `given` may show. */
bool token_equal(const char *given, const char *token);

/* Is an Authorization header "Bearer TOKEN"? It may be NULL. */
bool token_authorizes(const char *header, const char *token);

#endif
