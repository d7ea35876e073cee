/* SPDX-License-Identifier: MIT */
/*
 * scope_path.h - the path of a scope as it is shown, "Top/A/B", and the names in it.
 *
 * A '/' inside a name is written as "\/", a '\' as "\\". Names are returned as they stand in the path, with the
 * escapes: that is how they are shown, compared and typed.
 */
#ifndef HT_PROFILE_SCOPE_PATH_H
#define HT_PROFILE_SCOPE_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* The recorder makes no deeper nodes. In other files a deeper scope counts for its ancestor of this depth. */
#define SCOPE_DEPTH_MAX 64
/* The scope of memory that was allocated under no scope. */
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
 * Drop the names that occurred earlier in the path: A/B/A/C -> A/B/C. ret has room for all of path. At most
 * SCOPE_DEPTH_MAX names are kept.
 */
void scope_path_fold(const char *path, char *ret);
/* The last name of path. */
const char *scope_path_leaf(const char *path);

#endif
