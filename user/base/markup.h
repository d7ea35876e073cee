/* SPDX-License-Identifier: MIT */
/* markup.h - writes foreign texts into HTML and XML. */
#ifndef HT_BASE_MARKUP_H
#define HT_BASE_MARKUP_H

#include <stddef.h>
#include <stdio.h>

/*
 * Write text in an element or a double-quoted attribute. Controls except tab and newline become spaces. U+FFFD replaces
 * invalid UTF-8, characters that XML 1.0 lacks (U+FFFE, U+FFFF), and those that make_printable() removes (8-bit
 * controls, characters that separate lines or turn the direction of writing).
 */
void markup_put(const char *text, size_t len, FILE *out);
/* Write JSON into a script element that is data: no "</script>" and no "<!--" is left in it. */
void markup_put_json(const char *json, FILE *out);

#endif
