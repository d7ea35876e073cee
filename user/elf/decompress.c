/* SPDX-License-Identifier: MIT */
/*
 * decompress.c - unpack compressed parts of ELF files, with a bound on the result.
 *
 * A few hundred bytes can claim to be a gigabyte. The claim is compared with the highest ratio of the format where that
 * is known (zlib), and the result must have exactly the claimed size. Memory that was allocated but never written costs
 * nothing, so a false claim is cheap.
 */
#include "elf/decompress.h"

#include <errno.h>
#include <lzma.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

/* Memory for the decoder's own tables; xz -9 needs 65 MiB. */
#define XZ_MEMORY_BYTES (128ULL << 20)

int decompress_zlib(const uint8_t *in, size_t in_bytes, uint64_t out_bytes, uint8_t **ret)
{
	z_stream z = { 0 };
	uint8_t *out;
	int err = 0, rc;

	if (out_bytes > DECOMPRESS_BYTES_CAP || in_bytes > UINT32_MAX)
		return -EFBIG;
	if (out_bytes > (uint64_t)in_bytes * DECOMPRESS_ZLIB_RATIO_CAP)
		return -ENOEXEC;
	out = malloc(out_bytes ? out_bytes : 1);
	if (!out)
		return -ENOMEM;
	z.next_in = (Bytef *)in;
	z.avail_in = (uInt)in_bytes;
	z.next_out = out;
	z.avail_out = (uInt)out_bytes;
	if (inflateInit(&z) != Z_OK) {
		free(out);
		return -ENOMEM;
	}
	rc = inflate(&z, Z_FINISH);
	if (rc != Z_STREAM_END || z.avail_out != 0)
		err = -ENOEXEC;
	inflateEnd(&z);
	if (err)
		free(out);
	else
		*ret = out;
	return err;
}

int decompress_zstd(const uint8_t *in, size_t in_bytes, uint64_t out_bytes, uint8_t **ret)
{
	uint8_t *out;

	if (out_bytes > DECOMPRESS_BYTES_CAP)
		return -EFBIG;
	out = malloc(out_bytes ? out_bytes : 1);
	if (!out)
		return -ENOMEM;
	if (ZSTD_decompress(out, out_bytes, in, in_bytes) != out_bytes) {
		free(out);
		return -ENOEXEC;
	}
	*ret = out;
	return 0;
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
