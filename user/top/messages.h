/* SPDX-License-Identifier: MIT */
/*
 * messages.h - what is said on the standard error while the screen is drawn on: kept, shown in a line, and said
 * when the screen is gone. Of this process and of those that it starts meanwhile.
 */
#ifndef HT_TOP_MESSAGES_H
#define HT_TOP_MESSAGES_H

#include <stddef.h>

struct top_messages;

int top_messages_begin(struct top_messages **ret);
/* What was kept is said, and from now on all at once. Of more than 64 KiB it is the end, and how much is missing. */
void top_messages_end(struct top_messages *m);
/* The last line, without who says it; "": none. Returns buf. */
char *top_messages_last(struct top_messages *m, char *buf, size_t buf_bytes);

#endif
