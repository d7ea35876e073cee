/* SPDX-License-Identifier: MIT */
/* push_message.h - what both ways of pushing share: the data to send, memory for a request, and the outcome. Pure. */
#ifndef HT_PUSH_MESSAGE_H
#define HT_PUSH_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

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

/* Arrays that the message of a request points to, zeroed: arrays of pointers, and of the structs they point to. */
struct push_room {
	void *series, *series_ptrs; /* one for each series */
	void *labels, *label_ptrs; /* one for each label, one series after the other */
};
/* -ENOMEM. series_bytes, label_bytes: size of one. */
int push_room_init(struct push_room *r, const struct push_series *series, size_t cnt,
		   size_t series_bytes, size_t label_bytes);
void push_room_release(struct push_room *r);

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
};

/* Append n bytes of a server's text to a->text: control characters become '?', and no character at its end is cut
 * in half. */
void push_answer_append(struct push_answer *a, const char *text, size_t n);
__attribute__((format(printf, 3, 4))) void
push_answer_set(struct push_answer *a, enum push_verdict verdict, const char *fmt, ...);
/* What an HTTP status means when nothing else says more. */
enum push_verdict push_http_verdict(long status);

#endif
