/* SPDX-License-Identifier: MIT */
/* fuzz_demangle.c - names made of arbitrary bytes: bounded time, stack and output. */
#include "fuzz.h"

#include "symbol/symbol.h"

/* demangle() promises 64 KiB and what "@plt" adds. */
#define OUTPUT_CAP (65536 + 8)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char *name = fuzz_text(data, bytes);
	char *text;

	text = demangle(name);
	if (text && strlen(text) > OUTPUT_CAP)
		abort();
	free(text);
	free(name);
	return 0;
}
