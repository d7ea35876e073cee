/* SPDX-License-Identifier: MIT */
/*
 * decompress.c - unpack compressed parts of ELF files, with a bound on the result.
 */
#include "elf/elf_file.h"

#include <errno.h>
#include <libelf.h>
#include <lzma.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

/* Memory for the decoder's own tables; xz -9 needs 65 MiB. */
#define XZ_MEMORY_BYTES (128ULL << 20)
#ifndef ELFCOMPRESS_ZSTD /* before glibc 2.36 */
#define ELFCOMPRESS_ZSTD 2
#endif

int decompress(uint32_t type, const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes)
{
	uLongf got = out_bytes;

	switch (type) {
	case ELFCOMPRESS_ZLIB:
		return uncompress(out, &got, in, in_bytes) == Z_OK && got == out_bytes ? 0 :
											 -ENOEXEC;
	case ELFCOMPRESS_ZSTD:
		return ZSTD_decompress(out, out_bytes, in, in_bytes) == out_bytes ? 0 : -ENOEXEC;
	}
	return -ENOEXEC;
}

static int xz_error(lzma_ret rc)
{
	if (rc == LZMA_MEM_ERROR)
		return -ENOMEM;
	return rc == LZMA_MEMLIMIT_ERROR ? -EFBIG : -ENOEXEC;
}

int decompress_xz(const uint8_t *in, size_t in_bytes, uint64_t cap_bytes, uint8_t **ret,
		  size_t *ret_bytes)
{
	lzma_stream z = LZMA_STREAM_INIT;
	uint8_t *out = NULL, *p;
	size_t cap = 0;
	lzma_ret rc;
	int err;

	rc = lzma_stream_decoder(&z, XZ_MEMORY_BYTES, LZMA_CONCATENATED);
	if (rc != LZMA_OK)
		return xz_error(rc);
	z.next_in = in;
	z.avail_in = in_bytes;
	do {
		if (z.total_out == cap) {
			cap = cap ? cap * 2 : 64 * 1024;
			if (z.total_out >= cap_bytes) {
				err = -EFBIG;
				goto out;
			}
			if (cap > cap_bytes)
				cap = cap_bytes;
			p = realloc(out, cap);
			if (!p) {
				err = -ENOMEM;
				goto out;
			}
			out = p;
		}
		z.next_out = out + z.total_out;
		z.avail_out = cap - z.total_out;
		rc = lzma_code(&z, LZMA_FINISH);
	} while (rc == LZMA_OK);
	if (rc != LZMA_STREAM_END) {
		err = xz_error(rc);
		goto out;
	}
	*ret = out;
	*ret_bytes = z.total_out;
	out = NULL;
	err = 0;
out:
	lzma_end(&z);
	free(out);
	return err;
}
