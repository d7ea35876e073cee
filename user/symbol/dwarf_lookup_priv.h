/* SPDX-License-Identifier: MIT */
/* dwarf_lookup_priv.h - internal parts of dwarf_lookup.c: sections, line tables, qualified names. */
#ifndef HT_SYMBOL_DWARF_LOOKUP_PRIV_H
#define HT_SYMBOL_DWARF_LOOKUP_PRIV_H

#include <elfutils/libdw.h>
#include <libelf.h>

#include "base/std.h"

struct debug_image;
struct dwarf_scopes;

/*
 * debug_image.c: an ELF file in a form that libdw can read: the compressed DWARF sections unpacked.
 *
 * elfutils before 0.189 cannot read sections compressed with zstd, and all versions also unpack sections that
 * are not needed. Here only those that the lookup needs are unpacked, zlib or zstd.
 */

/* fd is not consumed and must stay open. -ENOEXEC: not a valid ELF file; -ENOMEM, -EFBIG. */
int debug_image_open(int fd, struct debug_image **ret);
void debug_image_free(struct debug_image *img);
/* Owned by img and freed with it. */
Elf *debug_image_elf(const struct debug_image *img);
/* Does it have this section, neither empty nor SHT_NOBITS? */
bool debug_image_has_section(const struct debug_image *img, const char *name);
/* Give pages of the file that were read back to the system (they are read again later). */
void debug_image_drop_pages(struct debug_image *img);

/*
 * dwarf_scopes.c: "std::vector<int>::push_back" for a function that DWARF calls "push_back".
 */

int dwarf_scopes_new(struct dwarf_scopes **ret);
void dwarf_scopes_free(struct dwarf_scopes *ds);
/* Call it before the Dwarf handle is closed. Strings that were returned become invalid. */
void dwarf_scopes_flush(struct dwarf_scopes *ds);
/*
 * Return name with the namespaces and types around the declaration of die (a function or an inlined call of
 * one) in front; outside C++, name itself. Valid until the next flush.
 */
const char *dwarf_scopes_qualify(struct dwarf_scopes *ds, Dwarf_Die *die, const char *name);

#endif
