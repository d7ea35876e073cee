/* SPDX-License-Identifier: MIT */
/*
 * profile_strip.h - a profile without the names that its receiver finds by itself. Pure.
 *
 * A Parca server that has the debug information of a file names addresses of that file on request, but only of
 * locations that come without lines.
 */
#ifndef HT_PUSH_PROFILE_STRIP_H
#define HT_PUSH_PROFILE_STRIP_H

#include <stdbool.h>

struct profile;
struct profile_location;
struct profile_mapping;

/* What was taken out of the profile; all 0: nothing. */
struct profile_strip {
	struct profile_location *locations;
	struct profile_mapping *mappings;
};

/* Take the lines out of locations in mappings whose build id is held, until profile_strip_end(). -ENOMEM: nothing
 * has changed. */
int profile_strip_begin(struct profile *p, bool (*is_held)(const void *ctx, const char *build_id),
			const void *ctx, struct profile_strip *ret);
/* Put the lines back. The profile must not have grown meanwhile. */
void profile_strip_end(struct profile *p, struct profile_strip *b);

#endif
