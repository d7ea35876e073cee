/* SPDX-License-Identifier: MIT */
/*
 * push_parca.h - gRPC's WriteRaw of Parca and Polar Signals: the bytes of a request, and the meaning of the
 * answer's header and trailer lines. Pure; push_http.h carries it.
 *
 * A gRPC call is a POST over HTTP/2. Its body is frames: one byte that says whether the message is compressed (0:
 * no), four bytes of its length, the most significant first, and the message in protobuf. The outcome is not the
 * HTTP status, which is 200 for most errors, but grpc-status in the trailers (or in the headers when nothing but an
 * error is sent).
 */
#ifndef HT_PUSH_PARCA_H
#define HT_PUSH_PARCA_H

#include <stdbool.h>

#include "push/push_message.h"

#define PUSH_PARCA_FRAME_BYTES 5
/* Parca's own limit of a message. */
#define PUSH_PARCA_MESSAGE_MAX ((size_t)64 << 20)

/* Write the head of an uncompressed message of this length. */
void push_parca_frame_head(size_t bytes, uint8_t head[PUSH_PARCA_FRAME_BYTES]);

/* Make one request of all the series, framed; the caller frees it. -ENOMEM, or -E2BIG above PUSH_PARCA_MESSAGE_MAX. */
int push_parca_encode(const struct push_series *series, size_t cnt, uint8_t **ret,
		      size_t *ret_bytes);

struct push_grpc {
	bool has_status;
	unsigned int status;
	char message[192]; /* decoded */
};

/* Read a line of the headers or trailers, with or without its line end. Other lines are ignored. */
void push_parca_header(struct push_grpc *g, const char *line, size_t n);
/* The outcome of a finished exchange. http_status is that of the headers. */
void push_parca_answer(const struct push_grpc *g, long http_status, struct push_answer *ret);

#endif
