/* SPDX-License-Identifier: MIT */
/* fuzz_demangle.c - names made of arbitrary bytes: bounded time, stack and output. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/symbol.h"

/* demangle() promises 64 KiB and what "@plt" adds. */
#define OUTPUT_CAP (65536 + 8)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char *name = malloc(bytes + 1);
	char *text;

	if (!name)
		return 0;
	memcpy(name, data, bytes);
	name[bytes] = '\0';
	text = demangle(name);
	if (text && strlen(text) > OUTPUT_CAP)
		abort();
	free(text);
	free(name);
	return 0;
}
