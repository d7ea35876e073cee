/* SPDX-License-Identifier: MIT */
/*
 * debug_image.h - an ELF file as libdw can read it: the compressed DWARF sections unpacked.
 *
 * elfutils before 0.189 cannot read sections compressed with zstd, and all versions unpack also
 * those that nobody asks for. Here only what the lookup needs is unpacked, zlib or zstd.
 */
#ifndef HT_SYMBOL_DEBUG_IMAGE_H
#define HT_SYMBOL_DEBUG_IMAGE_H

#include <libelf.h>
#include <stdbool.h>

struct debug_image;

/* fd is not consumed and must stay open. -ENOEXEC: no sound ELF file; -ENOMEM, -EFBIG. */
int debug_image_open(int fd, struct debug_image **ret);
void debug_image_free(struct debug_image *img);
/* Owned by img; ends with it. */
Elf *debug_image_elf(const struct debug_image *img);
/* Neither empty nor SHT_NOBITS. */
bool debug_image_has_section(const struct debug_image *img, const char *name);
/* Pages of the file that were read are given back to the system (they are read again later). */
void debug_image_drop_pages(struct debug_image *img);

#endif
