/* SPDX-License-Identifier: MIT */
/*
 * top_messages.h - messages to standard error while the screen is drawn on: kept, shown in a line, and written when the
 * screen is gone. Of this process and of those that it starts meanwhile.
 */
#ifndef HT_RECORD_TOP_MESSAGES_H
#define HT_RECORD_TOP_MESSAGES_H

#include <stddef.h>

struct top_messages;

int top_messages_begin(struct top_messages **ret);
/* Write the kept messages; later ones are written at once. Of more than 64 KiB: the end, and how much is missing. */
void top_messages_end(struct top_messages *m);
/* The last line, without the name of its sender; "": none. Returns buf. */
char *top_messages_last(struct top_messages *m, char *buf, size_t buf_bytes);

#endif
