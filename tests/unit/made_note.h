/* SPDX-License-Identifier: MIT */
/* made_note.h - what a profile says of scopes, from the text that it has in a file. */
#ifndef TEST_MADE_NOTE_H
#define TEST_MADE_NOTE_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "profile/profile.h"

/* 0, -EINVAL: not understood, -ENOMEM. */
__attribute__((format(printf, 2, 3))) static inline int made_note(struct profile *p,
								  const char *fmt, ...)
{
	struct scope_note note;
	const char *path;
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (!scope_note_parse(text, &note, &path))
		return -EINVAL;
	return profile_add_scope_note(p, &note, path);
}

#endif
