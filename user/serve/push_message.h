/* SPDX-License-Identifier: MIT */
/*
 * push_message.h - the bytes of requests to destinations, and what their answers mean. Pure; push_http.h carries them.
 */
#ifndef HT_SERVE_PUSH_MESSAGE_H
#define HT_SERVE_PUSH_MESSAGE_H

#include "base/std.h"

struct ProtobufCMessage;

struct push_label {
	const char *name, *value;
};

/* A profile as pprof_write() made it, and the labels that identify it. */
struct push_series {
	const struct push_label *labels;
	size_t label_cnt;
	const void *pprof;
	size_t pprof_bytes;
};

enum push_verdict {
	PUSH_SENT,
	/* The server or the network failed and may recover: send the same bytes again later. */
	PUSH_RETRY,
	/* Servers answer this error both in trouble and to requests that they will never accept: try again, but not
	 * for ever. */
	PUSH_RETRY_FEW,
	/* The request is at fault: another try would give the same. */
	PUSH_REFUSED,
};

struct push_answer {
	enum push_verdict verdict;
	/* Seconds for which the server wants no request (Retry-After); 0: it does not say. */
	uint32_t pause_s;
	/* gRPC's own code if there is one, else 0. */
	unsigned int grpc_status;
	char text[256]; /* the answer, for the log; printable */
	/* The beginning of its body, while who asked is told. */
	const uint8_t *body;
	size_t body_bytes;
};

__attribute__((format(printf, 3, 4))) void
push_answer_set(struct push_answer *a, enum push_verdict verdict, const char *fmt, ...);
/* What an HTTP status means when nothing else says more. */
enum push_verdict push_http_verdict(long status);

/*
 * gRPC's WriteRaw of Parca and Polar Signals.
 *
 * A gRPC call is a POST over HTTP/2. Its body is frames: one byte that says whether the message is compressed (0:
 * no), four bytes of its length, the most significant first, and the message in protobuf. The outcome is not the
 * HTTP status, which is 200 for most errors, but grpc-status in the trailers (or in the headers when nothing but an
 * error is sent).
 */
#define PUSH_PARCA_FRAME_BYTES 5
/* Parca's own limit of a message. */
#define PUSH_PARCA_MESSAGE_MAX ((size_t)64 << 20)

/* Write the head of an uncompressed message of this length. */
void push_parca_frame_head(size_t bytes, uint8_t head[PUSH_PARCA_FRAME_BYTES]);

/* Make the one frame of a message (a ProtobufCMessage); the caller frees it. -ENOMEM, or -E2BIG above
 * PUSH_PARCA_MESSAGE_MAX. */
int push_parca_frame(const struct ProtobufCMessage *m, uint8_t **ret, size_t *ret_bytes);

/* Make one request of all the series, framed; the caller frees it. As push_parca_frame(). */
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

/*
 * Pyroscope's Push in the Connect protocol. A unary Connect call is an ordinary POST of the bare message. Success is
 * status 200; an error has another status and a body in JSON, {"code": "invalid_argument", "message": "..."}.
 */

/* Make one request of all the series; the caller frees it. -ENOMEM. */
int push_pyroscope_encode(const struct push_series *series, size_t cnt, uint8_t **ret,
			  size_t *ret_bytes);
/* body: the part of the answer that was kept. */
void push_pyroscope_answer(long http_status, const char *body, size_t n, struct push_answer *ret);

#endif
