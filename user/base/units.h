/* SPDX-License-Identifier: MIT */
/* units.h - numbers, sizes and times as people write them. */
#ifndef HT_BASE_UNITS_H
#define HT_BASE_UNITS_H

#include "base/std.h"

/*
 * The forms of what options take. A number is digits, and perhaps a point with digits behind it: no sign, no exponent, no
 * blank. Sizes and times end below 2^62. All return 0, -EINVAL or -ERANGE.
 *
 *	size	"4096", "17b", "64k", "1.5m", "2gb", "3TiB"	powers of 1024
 *	time	"30", "0.5", "7us", "500ms", "1m30s", "2h", "1d"	seconds if there is no unit
 *	percent	"5", "0.5", "5%"				may be above 100: who takes it has the range
 */
int parse_size(const char *s, uint64_t *ret_bytes);
int parse_duration(const char *s, uint64_t *ret_ns);
int parse_percent(const char *s, double *ret_percent);
/* "12.3 MiB", exact below 1 KiB ("17 B"). Returns buf. */
char *format_bytes(double bytes, char *buf, size_t buf_bytes);
/* "12.3k", "4.56M" for counts. */
char *format_count(double n, char *buf, size_t buf_bytes);
/* "1.2 s", "350 ms", "2m 10s". */
char *format_duration(uint64_t ns, char *buf, size_t buf_bytes);
/* A share in percent: "53", "9.1", "0.38", "0". */
char *format_percent(double share, char *buf, size_t buf_bytes);
#define UNITS_BUF 32
/* The value of a hexadecimal digit, of either case; -1: it is none. */
static inline int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Length of the first word of a text that is to be wrapped at blanks: "12.3 MiB" is one word. */
size_t word_with_unit(const char *text);

#endif
