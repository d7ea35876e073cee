/* SPDX-License-Identifier: MIT */
/* utf8.h - is it UTF-8? */
#ifndef HT_BASE_UTF8_H
#define HT_BASE_UTF8_H

#include <stddef.h>

/* Bytes of the valid UTF-8 sequence (RFC 3629) at text, which has n > 0 bytes; 0: there is none. A
 * zero byte is none. */
size_t utf8_len(const char *text, size_t n);

#endif
