/* SPDX-License-Identifier: MIT */
/*
 * debug_only.h - an ELF file reduced to what names and lines come from, made while it is read.
 *
 * What stays: the file's identity (headers, build id), symbol tables, DWARF, and Go's function
 * table. Code and data do not: their sections keep name, address and size, and have no bytes. So a
 * program can be symbolised elsewhere without being given away, and a stripped copy need not be
 * stored anywhere first.
 */
#ifndef HT_ELF_DEBUG_ONLY_H
#define HT_ELF_DEBUG_ONLY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct debug_only;
struct elf_file;

/*
 * Lays the reduced file out; ef is not needed afterwards. -ENODATA: there are no names but those
 * of the dynamic symbols; -ENOTSUP: not a 64-bit file; -ENOEXEC: damaged; -ENOMEM.
 */
int debug_only_new(struct elf_file *ef, struct debug_only **ret);
void debug_only_free(struct debug_only *d);

/* Of the reduced file. */
uint64_t debug_only_bytes(const struct debug_only *d);
/* Tells reduced files of one build id apart: of the layout, not of the contents. */
uint64_t debug_only_hash(const struct debug_only *d);
/*
 * [off, off + bytes) of the reduced file into buf, fd being the file that ef was opened from. How
 * many bytes: fewer at the end only. -EIO: the file has become shorter; -errno of pread().
 */
ssize_t debug_only_read(const struct debug_only *d, int fd, uint64_t off, void *buf, size_t bytes);

#endif
