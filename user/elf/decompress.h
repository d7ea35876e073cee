/* SPDX-License-Identifier: MIT */
/*
 * decompress.h - unpack compressed parts of ELF files, with a bound on the result.
 */
#ifndef HT_ELF_DECOMPRESS_H
#define HT_ELF_DECOMPRESS_H

#include <stddef.h>
#include <stdint.h>

/* Bound on a result: nothing that heaptap reads from a compressed section is nearly this large. */
#define DECOMPRESS_BYTES_CAP (1ULL << 30)
/* zlib emits at most 258 bytes for two bits of input. */
#define DECOMPRESS_ZLIB_RATIO_CAP 1040

/*
 * out_bytes: the size of the result by the header; any other size is damage. *ret is malloc'ed. -ENOEXEC: damaged;
 * -EFBIG: over the bound; -ENOMEM.
 */
int decompress_zlib(const uint8_t *in, size_t in_bytes, uint64_t out_bytes, uint8_t **ret);
int decompress_zstd(const uint8_t *in, size_t in_bytes, uint64_t out_bytes, uint8_t **ret);
/* Unpack an .xz stream to at most cap_bytes; its size is found while unpacking. */
int decompress_xz(const uint8_t *in, size_t in_bytes, uint64_t cap_bytes, uint8_t **ret,
		  size_t *ret_bytes);

#endif
