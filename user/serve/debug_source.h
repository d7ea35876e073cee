/* SPDX-License-Identifier: MIT */
/*
 * debug_source.h - the file of a followed process that tells most about a build id, reduced to
 * names and lines.
 */
#ifndef HT_SERVE_DEBUG_SOURCE_H
#define HT_SERVE_DEBUG_SOURCE_H

struct debug_only;
struct track_files;

/*
 * The mapped file itself when it has DWARF, else its separate debug file (by build id, below the
 * target's root, then on the host), else the mapped file with what symbols it has. What is returned
 * is the caller's. -ENODATA: no names anywhere; -ENOENT: no such file is mapped; -errno.
 */
int debug_source_open(const struct track_files *files, const char *build_id,
		      struct debug_only **ret, int *ret_fd);

#endif
