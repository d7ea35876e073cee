/* SPDX-License-Identifier: MIT */
/*
 * build_id_files.h - finds a file of a given build id in a folder of collected files.
 *
 * Tried in turn: the layout of /usr/lib/debug (.build-id/ab/cdef.debug and, for the program itself,
 * .build-id/ab/cdef), also when the folder is the root of a file system; the file's path below the folder; its
 * name alone. Only the build id decides.
 */
#ifndef HT_SYMBOL_BUILD_ID_FILES_H
#define HT_SYMBOL_BUILD_ID_FILES_H

#include <limits.h> /* PATH_MAX */
#include <stdbool.h>

/*
 * Open the nth place (from 0) where the file may be. Returns an fd (O_CLOEXEC), with its path in ret_path
 * (PATH_MAX bytes); -ENOENT: not there, go on with the next; -ERANGE: there are no more places. path: of the
 * file where it was recorded.
 */
int build_id_files_open(const char *dir, const char *build_id_hex, const char *path, unsigned nth,
			char *ret_path);
/* Is the file at the nth place split-off debug information? Its segments are those of the program in memory,
 * not in the file. */
bool build_id_files_is_debug(unsigned nth);
/* Does the file have this build id? */
int build_id_files_check(int fd, const char *build_id_hex);

#endif
