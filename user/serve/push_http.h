/* SPDX-License-Identifier: MIT */
/*
 * push_http.h - sends one request at a time to a destination, through libcurl, without ever waiting.
 *
 * All events make push_http_fd() readable: an epoll fd with libcurl's sockets and timers in it, which the caller
 * puts into its own loop, and a timer of the caller's. Only push_http_close() may wait, while a host's name is being
 * looked up.
 */
#ifndef HT_SERVE_PUSH_HTTP_H
#define HT_SERVE_PUSH_HTTP_H

#include "base/std.h"
#include "base/clock.h"
#include "serve/push_message.h"

struct err;

/*
 * push_target.c: where profiles are pushed to, as `--push` says it.
 *
 *	parca+http://HOST:PORT		Parca or Polar Signals, gRPC over HTTP/2 without TLS
 *	parca+https://HOST:PORT		the same over TLS
 *	pyroscope+http://HOST:PORT[/PREFIX]
 *	pyroscope+https://HOST:PORT[/PREFIX]
 *
 * HOST is a name, an IPv4 address or an IPv6 address in brackets. Pure.
 */

enum push_kind { PUSH_PARCA, PUSH_PYROSCOPE };

struct push_target {
	enum push_kind kind;
	bool is_tls;
	uint16_t port;
	char host[256]; /* without brackets */
	char name[512]; /* as the user gave it: for messages and metrics */
	char url[640]; /* of the call */
};

/* 0, or -EINVAL with a sentence for the user in why. A password in the address is refused: every list of processes
 * would show it. The sentence does not repeat it. */
int push_target_parse(const char *text, struct push_target *ret, struct err *why);

/* Copy text with "***" for the user and password of an address, if there are any: for messages. Cut to buf_bytes. */
void push_target_redact(const char *text, char *buf, size_t buf_bytes);

#define PUSH_TARGET_URL_BYTES 640

#define PUSH_TARGET_FILE_BYTES 128
/* Make a name for a file or folder of this target alone: its kind, host and port, readable, and a hash of the whole
 * target. */
void push_target_file_name(const struct push_target *t, char ret[PUSH_TARGET_FILE_BYTES]);

struct push_http;

#define PUSH_TENANT_MAX 1024
/* The tenant becomes a header. */
bool push_tenant_is_valid(const char *tenant);

/* All may be NULL; the strings must stay. Files are read again for each request, so that a secret can be replaced. */
struct push_identity {
	char *token_file; /* Authorization: Bearer */
	char *basic_file; /* "user:password", Authorization: Basic */
	char *tenant; /* X-Scope-OrgID */
	char *ca_file; /* certificates to trust instead of the system's */
};

struct push_http_options {
	struct push_target target;
	struct push_identity identity;
	uint64_t timeout_ns; /* of a whole exchange, unless a call has another */
};

typedef void (*push_http_done_fn)(void *ctx, const struct push_answer *answer);

/* -errno; secrets that cannot be read, or that others can read, are logged: -EACCES or similar. */
int push_http_open(const struct push_http_options *opts, push_http_done_fn done, void *ctx,
		   struct push_http **ret);
/* For the next requests. */
void push_http_set_identity(struct push_http *h, const struct push_identity *identity);
/* Gives up a request in progress, without a call of done. */
void push_http_close(struct push_http *h);
int push_http_fd(const struct push_http *h);
/* Be readable at that time of CLOCK_MONOTONIC, too; 0: at none. */
void push_http_wake_at(struct push_http *h, uint64_t due_ns);
/* Do what can be done now; done is called only from here. */
void push_http_run(struct push_http *h);

/* Fill buf with the next bytes of a body; return their number (0 is not the end: read_bytes is), or a negative
 * errno, which gives up the request. */
typedef ssize_t (*push_http_read_fn)(void *ctx, void *buf, size_t bytes);

/* A request: to the target's own place, unless it names another. Everything pointed to must stay until done. */
struct push_http_call {
	const char *grpc_path; /* "/SERVICE/METHOD" of the target's server */
	const char *put_url; /* an address for an HTTP PUT, which gets none of the secrets */
	const void *body;
	size_t body_bytes;
	/* Instead of body. It may be long: it ends when nothing moves for the timeout, or after PUSH_HTTP_LONG_NS. */
	push_http_read_fn read;
	void *read_ctx;
	uint64_t read_bytes;
	uint64_t timeout_ns; /* of the whole exchange; 0: that of the options */
};
#define PUSH_HTTP_LONG_NS (15 * 60 * NS_PER_S)
/* Most bytes of a body sent in a second, so that the target's host keeps its network. */
#define PUSH_HTTP_LONG_SPEED ((uint64_t)16 << 20)
/* 0: in progress, done will be called; -EBUSY, -errno. */
int push_http_call(struct push_http *h, const struct push_http_call *call);

/* A token or password in a file that only its owner and group may read. */

#define PUSH_SECRET_MAX 4096

/* Read the first line, without blanks at its end. -errno with a sentence in why: -EACCES when others may read or
 * write the file, -EINVAL when it is empty, too long, or has control characters. */
int push_secret_read(const char *path, char ret[PUSH_SECRET_MAX], struct err *why);

#endif
