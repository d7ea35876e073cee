/* SPDX-License-Identifier: MIT */
/* profile_in.h - the profile that a command is given. What goes wrong is said, with the command's name. */
#ifndef HT_CMD_PROFILE_IN_H
#define HT_CMD_PROFILE_IN_H

struct profile;

/* path "-": the standard input; all forms of pprof_read(). One that begins with http:// or https:// is fetched. token_file: as that of the
 * heaptap that serves; NULL: none. */
int profile_in_read(const char *command, const char *path, const char *token_file,
		    struct profile **ret);
/* Functions and lines of one that has none: other allocators' dumps. */
int profile_in_name(const char *command, struct profile *p);

#endif
