/* SPDX-License-Identifier: MIT */
/* json_text.h - a string of JSON (RFC 8259). */
#ifndef HT_BASE_JSON_TEXT_H
#define HT_BASE_JSON_TEXT_H

#include <stdio.h>

/* With its quotes. What is no UTF-8 becomes U+FFFD; controls, also those of 8 bits, are escaped: who reads
 * it in a terminal is safe. */
void json_put_text(FILE *out, const char *text);

#endif
