/* SPDX-License-Identifier: MIT */
/*
 * push_target.h - where profiles are pushed to, as `--push` says it.
 *
 *	parca+http://HOST:PORT		Parca or Polar Signals, gRPC over HTTP/2 without TLS
 *	parca+https://HOST:PORT		the same over TLS
 *	pyroscope+http://HOST:PORT[/PREFIX]
 *	pyroscope+https://HOST:PORT[/PREFIX]
 *
 * HOST is a name, an IPv4 address or an IPv6 address in brackets. Pure.
 */
#ifndef HT_PUSH_TARGET_H
#define HT_PUSH_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

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
/* Make the address of another gRPC call of the same server: path is "/SERVICE/METHOD". */
void push_target_call_url(const struct push_target *t, const char *path,
			  char ret[PUSH_TARGET_URL_BYTES]);

#define PUSH_TARGET_FILE_BYTES 128
/* Make a name for a file or folder of this target alone: its kind, host and port, readable, and a hash of the whole
 * target. */
void push_target_file_name(const struct push_target *t, char ret[PUSH_TARGET_FILE_BYTES]);

#endif
