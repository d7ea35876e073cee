/* SPDX-License-Identifier: MIT */
/*
 * push_pyroscope.h - Pyroscope's Push in the Connect protocol: the bytes of a request, and the meaning of an
 * answer. Pure; push_http.h carries it.
 *
 * A unary Connect call is an ordinary POST of the bare message. Success is status 200; an error has another status
 * and a body in JSON, {"code": "invalid_argument", "message": "..."}.
 */
#ifndef HT_PUSH_PYROSCOPE_H
#define HT_PUSH_PYROSCOPE_H

#include "push/push_message.h"

/* Make one request of all the series; the caller frees it. -ENOMEM. */
int push_pyroscope_encode(const struct push_series *series, size_t cnt, uint8_t **ret,
			  size_t *ret_bytes);
/* body: the part of the answer that was kept. */
void push_pyroscope_answer(long http_status, const char *body, size_t n, struct push_answer *ret);

#endif
