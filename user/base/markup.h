/* SPDX-License-Identifier: MIT */
/* markup.h - texts of others in HTML and XML. */
#ifndef HT_BASE_MARKUP_H
#define HT_BASE_MARKUP_H

#include <stddef.h>
#include <stdio.h>

/*
 * In an element or in an attribute with double quotes. Controls but tab and newline become spaces; what is no UTF-8, or
 * no character of XML 1.0 (U+FFFE, U+FFFF), or what make_printable() takes away (controls of 8 bits, what separates
 * lines or turns the direction of writing), U+FFFD.
 */
void markup_put(const char *text, size_t len, FILE *out);

#endif
