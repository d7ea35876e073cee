/* SPDX-License-Identifier: MIT */
/*
 * push_message.h - what both ways of pushing share: what is sent, the room for a request, and what
 * came of it. Pure.
 */
#ifndef HT_PUSH_MESSAGE_H
#define HT_PUSH_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

struct push_label {
	const char *name, *value;
};

/* A profile, as pprof_write() made it, and the labels it is found by. */
struct push_series {
	const struct push_label *labels;
	size_t label_cnt;
	const void *pprof;
	size_t pprof_bytes;
};

/* What the message of a request points to: zeroed arrays, of pointers and of what they point to. */
struct push_room {
	void *series, *series_ptrs; /* one for each series */
	void *labels, *label_ptrs; /* one for each label, the series' after each other */
};
/* -ENOMEM. series_bytes, label_bytes: of one. */
int push_room_init(struct push_room *r, const struct push_series *series, size_t cnt,
		   size_t series_bytes, size_t label_bytes);
void push_room_release(struct push_room *r);

enum push_verdict {
	PUSH_SENT,
	/* The server or the way to it is at fault and may recover: the same bytes again later. */
	PUSH_RETRY,
	/* An error that servers answer both in trouble and to requests that they will never like:
	 * again, but not for ever. */
	PUSH_RETRY_FEW,
	/* The request is at fault: again would be the same. */
	PUSH_REFUSED,
};

struct push_answer {
	enum push_verdict verdict;
	/* How long the server wants to be left alone (Retry-After); 0: it does not say. */
	uint32_t pause_s;
	/* gRPC's own code when it is not 0, else 0. */
	unsigned int grpc_status;
	char text[256]; /* for the log: what was answered; printable */
};

/* Appends n bytes of a server's text to a->text: control characters become '?', no half
 * characters at its end. */
void push_answer_append(struct push_answer *a, const char *text, size_t n);
__attribute__((format(printf, 3, 4))) void
push_answer_set(struct push_answer *a, enum push_verdict verdict, const char *fmt, ...);
/* What an HTTP status says of a request when nothing else does. */
enum push_verdict push_http_verdict(long status);

#endif
