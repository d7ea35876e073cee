/* SPDX-License-Identifier: MIT */
/*
 * decompress.h - unpack compressed parts of ELF files, with a bound on the result.
 *
 * Not libelf's elf_compress(): before 0.189 it has no zstd, and it takes whatever memory a header asks for.
 */
#ifndef HT_ELF_DECOMPRESS_H
#define HT_ELF_DECOMPRESS_H

#include <stddef.h>
#include <stdint.h>

/*
 * type: ELFCOMPRESS_*. out_bytes: the size of the result by the header; any other size is damage. -ENOEXEC: damaged, or
 * another type.
 */
int decompress(uint32_t type, const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes);
/* Unpack an .xz stream to at most cap_bytes; its size is found while unpacking. *ret is malloc'ed. -EFBIG, -ENOMEM. */
int decompress_xz(const uint8_t *in, size_t in_bytes, uint64_t cap_bytes, uint8_t **ret,
		  size_t *ret_bytes);

#endif
