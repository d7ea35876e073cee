/* SPDX-License-Identifier: MIT */
/*
 * decompress.h - compressed parts of ELF files, with a bound on what comes out.
 */
#ifndef HT_ELF_DECOMPRESS_H
#define HT_ELF_DECOMPRESS_H

#include <stddef.h>
#include <stdint.h>

/* Nothing that heaptap reads from a compressed section is anywhere near this large. */
#define DECOMPRESS_BYTES_CAP (1ULL << 30)
/* zlib emits at most 258 bytes for two bits of input. */
#define DECOMPRESS_ZLIB_RATIO_CAP 1040

/*
 * The header says how large the result is; anything else is damage. *ret is malloc'ed.
 * -ENOEXEC: damaged; -EFBIG: over the bound; -ENOMEM.
 */
int decompress_zlib(const uint8_t *in, size_t in_bytes, uint64_t out_bytes, uint8_t **ret);
int decompress_zstd(const uint8_t *in, size_t in_bytes, uint64_t out_bytes, uint8_t **ret);
/* An .xz stream; the size is found on the way, at most cap_bytes. */
int decompress_xz(const uint8_t *in, size_t in_bytes, uint64_t cap_bytes, uint8_t **ret,
		  size_t *ret_bytes);

#endif
