/* SPDX-License-Identifier: MIT */
/*
 * http.h - a small HTTP server in the caller's event loop, on top of libmicrohttpd.
 *
 * It listens on HOST:PORT or on a unix socket, lets in clients that have the token, and hands over requests that
 * are GET or HEAD without a body, or POST where the handler takes one. Everything is bounded: connections, header
 * and body bytes (and those of all bodies together), the time that a client may take to ask and to read. A handler
 * answers with http_reply() at once, or calls http_defer() and answers later.
 *
 * Nothing of a request reaches the file system, and a path with an escaped NUL or slash in it matches no page.
 * Without a token, on an address, it answers only to those names of this machine that no name server can give away:
 * otherwise a web page of somebody else could have its own name lead here and read the profiles.
 */
#ifndef HT_HTTP_HTTP_H
#define HT_HTTP_HTTP_H

#include "base/std.h"

struct err;
struct http_exchange;
struct http_server;

#define HTTP_LISTEN_DEFAULT "127.0.0.1:7676"

struct http_options {
	const char *listen; /* "HOST:PORT", "[V6]:PORT", "unix:PATH" */
	const char *token; /* NULL: none is needed, which is refused off loopback */
	/* A page that needs no token, because its clients can have none (the probes of a service manager) and it
	 * tells nothing. NULL: none. Must stay. */
	const char *open_path;
};

struct http_ops {
	/* Return how many bytes of body a POST to this path may have; 0: no POST. */
	size_t (*body_cap)(void *ctx, const char *path);
	/* Must end with http_reply() or http_defer(). */
	void (*on_request)(void *ctx, struct http_exchange *x);
	/* The client of a held exchange has gone; x is gone after this. */
	void (*on_abandon)(void *ctx, struct http_exchange *x);
};

struct http_answer {
	unsigned status; /* 200, 404... */
	const char *type; /* of the body; NULL: text/plain */
	const char *file_name; /* not NULL: Content-Disposition attachment */
	const char *location; /* not NULL: where the client has to ask, with a status of 3xx */
	const char *text; /* the body, copied... */
	size_t text_bytes; /* 0: strlen() of text */
	/* ... or, when text is NULL, a file from its start, owned by the server from here on; -1: only the header
	 * is wanted, and the length of the body is not known. */
	int fd;
	bool is_go_error; /* X-Go-Pprof: 1 */
	/* A page with scripts and a style of this server, which may ask this server for more, and forms that lead to it;
	 * else no script runs. */
	bool has_script;
};

/* On failure why says what is wrong and what to do. */
int http_open(const struct http_options *opts, const struct http_ops *ops, void *ctx,
	      struct http_server **ret, struct err *why);
/* Answers held exchanges with 503 first, and requests that come meanwhile, too: no ops are called but body_cap. */
void http_close(struct http_server *s);

/* Use this token from the next request on; NULL: none, which is refused off loopback (-EPERM, and why). Open
 * connections stay. */
int http_set_token(struct http_server *s, const char *token, struct err *why);

/* The address of the server: "http://127.0.0.1:7676/", or "unix:PATH". */
const char *http_address(const struct http_server *s);
/* Readable when http_run() has something to do. */
int http_fd(const struct http_server *s);
int http_run(struct http_server *s);
/* The same from within other work: only requests for the open page are answered, whose handler must touch nothing but its
 * answer. The others wait for http_run(). Does nothing in a handler. */
void http_run_open(struct http_server *s);
/* Milliseconds until http_run() is due even if the descriptor is not readable; -1: none. */
int http_wait_ms(const struct http_server *s);
/* End connections of clients that are too slow, or have gone. Call a few times a second. */
void http_end_slow(struct http_server *s);

struct http_request {
	const char *path;
	const char *body; /* of a POST; not terminated */
	size_t body_bytes;
	bool is_head, is_post;
	const char *accept; /* its Accept header, or NULL */
};
const struct http_request *http_request(const struct http_exchange *x);
/* fn returns non-zero to stop with that value; value is "" for "?key". */
typedef int (*http_arg_fn)(void *ctx, const char *key, const char *value);
int http_each_arg(struct http_exchange *x, http_arg_fn fn, void *ctx);
void http_defer(struct http_exchange *x);
void http_reply(struct http_exchange *x, const struct http_answer *a);
/* text/plain with X-Go-Pprof: 1. */
void http_error(struct http_exchange *x, unsigned status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* token.c: the secret that clients must have. */

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

/* listen.c: the socket that a server listens on. */

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
