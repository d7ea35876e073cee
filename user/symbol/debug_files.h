/* SPDX-License-Identifier: MIT */
/*
 * debug_files.h - finds the separate debug file of an ELF file, and the file that dwz shares.
 *
 * Searches below the target's root first (a container has its own), then on the host. A debug file counts only
 * when it matches: the same build id, or for .gnu_debuglink the CRC.
 */
#ifndef HT_SYMBOL_DEBUG_FILES_H
#define HT_SYMBOL_DEBUG_FILES_H

struct elf_file;

#include <limits.h> /* PATH_MAX */

#include "base/std.h"

/*
 * Open the debug file of ef: by build id in /usr/lib/debug/.build-id, then by .gnu_debuglink beside the file,
 * in .debug/ beside it, and in /usr/lib/debug. name: the file's path as the target sees it. root:
 * "/proc/PID/root" or "". Returns an fd (O_CLOEXEC) or -ENOENT. ret_path (PATH_MAX bytes) is its path, below
 * root or on the host.
 */
int debug_files_open(struct elf_file *ef, const char *name, const char *root, char *ret_path);
/* The same, opened as an ELF file. -ENOENT: none, or one that cannot be read. */
int debug_files_load(struct elf_file *ef, const char *name, const char *root,
		     struct elf_file **ret);
/* The same by build id only, when the ELF file itself is gone. */
int debug_files_open_id(const char *build_id_hex, const char *root, char *ret_path);
/* The file that .gnu_debugaltlink of ef names, ef being the file with the DWARF, at path `name`
 * (relative links start there). */
int debug_files_open_alt(struct elf_file *ef, const char *name, const char *root);

/* 0, or -ENOENT: the file has another build id, or none. */
int build_id_check(int fd, const char *build_id_hex);

#endif
