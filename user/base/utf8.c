/* SPDX-License-Identifier: MIT */
/* utf8.c - see utf8.h. */
#include "base/utf8.h"

#include <stdint.h>

size_t utf8_len(const char *text, size_t n)
{
	const uint8_t *p = (const uint8_t *)text;
	size_t len = p[0] < 0x80 ? 1 :
		     p[0] < 0xc2 ? 0 :
		     p[0] < 0xe0 ? 2 :
		     p[0] < 0xf0 ? 3 :
		     p[0] < 0xf5 ? 4 :
				   0;

	if (len > n || !p[0])
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if (len == 3 && ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f)))
		return 0; /* overlong, or a surrogate */
	if (len == 4 && ((p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f)))
		return 0; /* overlong, or beyond U+10FFFF */
	return len;
}
