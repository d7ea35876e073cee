/* SPDX-License-Identifier: MIT */
/*
 * debug_only.h - an ELF file reduced to the parts that names and lines come from, made while it is read.
 *
 * Kept: the file's identity (headers, build id), symbol tables, DWARF, and Go's function table. Not kept: code and
 * data; their sections keep name, address and size, and have no bytes. So a program can be symbolised elsewhere without
 * being given away, and a stripped copy need not be stored anywhere first.
 */
#ifndef HT_ELF_DEBUG_ONLY_H
#define HT_ELF_DEBUG_ONLY_H

#include "base/std.h"

struct debug_only;
struct elf_file;

/*
 * Lay out the reduced file; ef is not needed afterwards. -ENODATA: there are no names except those of the dynamic
 * symbols; -ENOTSUP: not a 64-bit file; -ENOEXEC: damaged; -ENOMEM.
 */
int debug_only_new(struct elf_file *ef, struct debug_only **ret);
void debug_only_free(struct debug_only *d);

/* Size of the reduced file. */
uint64_t debug_only_bytes(const struct debug_only *d);
/* Tells reduced files with the same build id apart: a hash of the layout, not of the contents. */
uint64_t debug_only_hash(const struct debug_only *d);
/*
 * Read [off, off + bytes) of the reduced file into buf; fd is the file that ef was opened from. Return the number of
 * bytes: fewer only at the end. -EIO: the file has become shorter; -errno of pread().
 */
ssize_t debug_only_read(const struct debug_only *d, int fd, uint64_t off, void *buf, size_t bytes);

#endif
