/* SPDX-License-Identifier: MIT */
/* fuzz.h - what every fuzz program begins with: the C library's common headers, and the function that it defines. */
#ifndef HT_FUZZ_FUZZ_H
#define HT_FUZZ_FUZZ_H

#include "base/std.h"

/* Callbacks have parameters that most have no use for. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* The input as a string, which the caller frees: of exactly its size, so that sanitizers see a read behind it. */
static inline char *fuzz_text(const uint8_t *data, size_t bytes)
{
	char *text = malloc(bytes + 1);

	if (!text)
		abort();
	memcpy(text, data, bytes);
	text[bytes] = '\0';
	return text;
}

#endif
