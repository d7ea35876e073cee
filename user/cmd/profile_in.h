/* SPDX-License-Identifier: MIT */
/* profile_in.h - reads the profile that a command is given. Errors are logged with the command's name. */
#ifndef HT_CMD_PROFILE_IN_H
#define HT_CMD_PROFILE_IN_H

#include <stdbool.h>

struct profile;

/* "http://..." or "https://..." */
bool http_get_is_url(const char *text);
/* path "-": the standard input; all forms of pprof_read(). A path that begins with http:// or https:// is fetched.
 * token_file: as that of the heaptap that serves; NULL: none. */
int profile_in_read(const char *command, const char *path, const char *token_file,
		    struct profile **ret);
/* Look up functions and lines for a profile without them: other allocators' dumps. */
int profile_in_name(const char *command, struct profile *p);

#endif
