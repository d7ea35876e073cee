/* SPDX-License-Identifier: MIT */
/*
 * listen.h - the socket that a server listens on.
 */
#ifndef HT_HTTP_LISTEN_H
#define HT_HTTP_LISTEN_H

#include <stdbool.h>
#include <stddef.h>

struct err;

#define LISTEN_HOST_BYTES 256

/*
 * Split "HOST:PORT" or "[V6]:PORT". port points into text. Pure; -EINVAL: it is neither, or the port is no number
 * from 0 (any) to 65535.
 */
int listen_parse(const char *text, char host[static LISTEN_HOST_BYTES], const char **ret_port);

/* Read the name in a Host header: NAME, NAME:PORT, [V6], [V6]:PORT. Pure; -EINVAL: none of these. */
int listen_split_host(const char *header, char host[static LISTEN_HOST_BYTES]);
/*
 * Does a Host header name an address, localhost, a name below it, or own (a host, or "")? Name servers decide what
 * other names mean. Pure.
 */
bool listen_is_own_name(const char *host_header, const char *own);

struct listen_socket {
	int fd;
	char address[320]; /* "http://127.0.0.1:7676/" or "unix:PATH" */
	const char *unix_path; /* points into address, or NULL; only its owner may connect */
	bool is_local; /* loopback, or a unix socket */
};

/*
 * text as in listen_parse(), or "unix:PATH". must_be_local: refuse other addresses, before anything is bound.
 * Replaces a unix socket that nobody listens on any more. On failure why says what is wrong and what to do.
 */
int listen_open(const char *text, bool must_be_local, struct listen_socket *ret, struct err *why);
/* Check what listen_open() would refuse before it binds anything, except its port and its path. */
int listen_check(const char *text, bool must_be_local, struct err *why);
void listen_close(struct listen_socket *s);

#endif
