/* SPDX-License-Identifier: MIT */
/*
 * golden.h - what is printed now, compared with a file to the letter. GOLDEN_WRITE=1 in the environment
 * writes the files instead: look at the difference before you commit it.
 */
#ifndef HT_TESTS_GOLDEN_H
#define HT_TESTS_GOLDEN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void golden_write(const char *path, const char *got)
{
	FILE *f = fopen(path, "w");

	if (!f || fputs(got, f) < 0)
		fail_msg("cannot write %s", path);
	fclose(f);
}

static inline void golden_compare(const char *path, const char *got)
{
	static char text[1 << 16];
	FILE *f;

	if (getenv("GOLDEN_WRITE") && *getenv("GOLDEN_WRITE")) {
		golden_write(path, got);
		return;
	}
	f = fopen(path, "r");
	if (!f)
		fail_msg("cannot open %s: run from the top folder", path);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	if (strcmp(got, text) != 0)
		fail_msg("%s is not what is printed now:\n%s", path, got);
}

#endif
