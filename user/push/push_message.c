/* SPDX-License-Identifier: MIT */
/* push_message.c - see push_message.h. */
#include "push/push_message.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int push_room_init(struct push_room *r, const struct push_series *series, size_t cnt,
		   size_t series_bytes, size_t label_bytes)
{
	size_t label_cnt = 0;

	for (size_t i = 0; i < cnt; i++)
		label_cnt += series[i].label_cnt;
	/* one more, because calloc() of 0 may return NULL */
	r->series = calloc(cnt + 1, series_bytes);
	r->series_ptrs = calloc(cnt + 1, sizeof(void *));
	r->labels = calloc(label_cnt + 1, label_bytes);
	r->label_ptrs = calloc(label_cnt + 1, sizeof(void *));
	if (r->series && r->series_ptrs && r->labels && r->label_ptrs)
		return 0;
	push_room_release(r);
	return -ENOMEM;
}

void push_room_release(struct push_room *r)
{
	free(r->series);
	free(r->series_ptrs);
	free(r->labels);
	free(r->label_ptrs);
	memset(r, 0, sizeof(*r));
}

void push_answer_append(struct push_answer *a, const char *text, size_t n)
{
	size_t used = strlen(a->text), room = sizeof(a->text) - 1 - used;

	if (n > room) {
		n = room;
		/* 10xxxxxx continues a character of UTF-8: cut before the character, not inside it. */
		while (n && ((unsigned char)text[n] & 0xc0) == 0x80)
			n--;
	}
	for (size_t i = 0; i < n; i++) {
		unsigned char c = text[i];

		a->text[used + i] = c < ' ' || c == 0x7f ? '?' : (char)c;
	}
	a->text[used + n] = 0;
}

void push_answer_set(struct push_answer *a, enum push_verdict verdict, const char *fmt, ...)
{
	char line[sizeof(a->text)];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	a->verdict = verdict;
	a->grpc_status = 0;
	a->pause_s = 0;
	a->text[0] = 0;
	push_answer_append(a, line, strlen(line));
}

/* 401 and 403 are tried again: replacing a token must not cost data. */
enum push_verdict push_http_verdict(long status)
{
	if (status >= 200 && status < 300)
		return PUSH_SENT;
	switch (status) {
	case 401:
	case 403:
	case 407:
	case 408:
	case 421:
	case 425:
	case 429:
	case 502:
	case 503:
	case 504:
		return PUSH_RETRY;
	}
	/* 404: a proxy may answer this while its server is being replaced. */
	return status >= 500 || status == 404 ? PUSH_RETRY_FEW : PUSH_REFUSED;
}
