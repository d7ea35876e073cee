/* SPDX-License-Identifier: MIT */
/*
 * scope_path.h - "Top/A/B": the shown path of a scope, and its names.
 *
 * A '/' inside a name is written as "\/", a '\' as "\\". Names are handed out as they stand in the
 * path, escapes included: that is how they are shown, compared and typed.
 */
#ifndef HT_PROFILE_SCOPE_PATH_H
#define HT_PROFILE_SCOPE_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* The recorder makes no deeper nodes; in files of others what is below counts for its ancestor. */
#define SCOPE_DEPTH_MAX 64
/* The scope of what was allocated under none. */
#define SCOPE_NONE "(none)"

struct scope_name {
	const char *text; /* in the path; not terminated */
	size_t len;
};

/* Walk the names from the top: start with *pos = path, until false. */
bool scope_path_next(const char **pos, struct scope_name *ret);
/* Is path `ancestor` or below it? */
bool scope_path_is_in(const char *path, const char *ancestor);
/*
 * Without the names that the path had before: A/B/A/C -> A/B/C. ret has room for all of path. At
 * most SCOPE_DEPTH_MAX names are kept.
 */
void scope_path_fold(const char *path, char *ret);
/* Text of the last name of path. */
const char *scope_path_leaf(const char *path);

#endif
