/* SPDX-License-Identifier: MIT */
/*
 * build_id_files.h - a file of a given build id in a folder that somebody collected files in.
 *
 * Tried in turn: the layout of /usr/lib/debug (.build-id/ab/cdef.debug and, of the program itself,
 * .build-id/ab/cdef), which may be the root of a file system, too; the path that the file had below the folder;
 * its name alone. Only the build id decides.
 */
#ifndef HT_SYMBOL_BUILD_ID_FILES_H
#define HT_SYMBOL_BUILD_ID_FILES_H

#include <limits.h> /* PATH_MAX */
#include <stdbool.h>

/*
 * The nth place (from 0) where it may be. An fd (O_CLOEXEC) and where that is in ret_path (PATH_MAX bytes);
 * -ENOENT: not there, go on with the next; -ERANGE: there are no more places. path: of the file where it was
 * recorded.
 */
int build_id_files_open(const char *dir, const char *build_id_hex, const char *path, unsigned nth,
			char *ret_path);
/* Is it, at the nth place, debug information that was split off? Its segments are those of the program in
 * memory, not in the file. */
bool build_id_files_is_debug(unsigned nth);
/* Is it the file? */
int build_id_files_check(int fd, const char *build_id_hex);

#endif
