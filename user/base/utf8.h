/* SPDX-License-Identifier: MIT */
/* utf8.h - checks UTF-8. */
#ifndef HT_BASE_UTF8_H
#define HT_BASE_UTF8_H

#include <stddef.h>

/* Length of the valid UTF-8 sequence (RFC 3629) at text, which has n > 0 bytes; 0: it is not valid.
 * A zero byte is not valid. */
size_t utf8_len(const char *text, size_t n);

#endif
