/* SPDX-License-Identifier: MIT */
/* profile_in.h - the profile that a command is given. What goes wrong is said, with the command's name. */
#ifndef HT_CMD_PROFILE_IN_H
#define HT_CMD_PROFILE_IN_H

struct profile;

/* path: a file, or - for the standard input. All forms of pprof_read(). */
int profile_in_read(const char *command, const char *path, struct profile **ret);
/* Other allocators' dumps come without names: those of the files that are on this machine. */
int profile_in_name(const char *command, struct profile *p);

#endif
