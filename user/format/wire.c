/* SPDX-License-Identifier: MIT */
/* wire.c - see wire.h. Wire format: protobuf's "Encoding" document; gzip: RFC 1952 by zlib. */
#include "format/wire.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define WINDOW_BITS_GZIP (15 + 16)

int wire_fail(struct format_error *err, uint64_t offset, const char *fmt, ...)
{
	va_list args;

	err->offset = offset;
	va_start(args, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, args);
	va_end(args);
	return -EBADMSG;
}

/* What people give by mistake, told by its first bytes. */
static int check_kind(const uint8_t *p, size_t n, struct format_error *err)
{
	static const struct {
		const char *magic, *what;
	} kinds[] = {
		{ "\177ELF", "an ELF program or library" },
		{ "heap_v2/", "a jemalloc heap dump; convert it with: jeprof --raw" },
		{ "heap profile:", "a gperftools heap profile in text; convert it with pprof" },
		{ "{", "JSON" },
		{ "#!", "a script" },
		{ "PK\003\004", "a zip archive" },
		{ "\050\265\057\375", "compressed by zstd; decompress it first" },
	};

	if (!n)
		return wire_fail(err, 0, "the file is empty");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		size_t len = strlen(kinds[i].magic);

		if (n >= len && !memcmp(p, kinds[i].magic, len))
			return wire_fail(err, 0, "this is no pprof profile but %s", kinds[i].what);
	}
	return 0;
}

static int gunzip(const uint8_t *data, size_t bytes, uint8_t **ret, size_t *ret_bytes,
		  struct format_error *err)
{
	z_stream z = { .next_in = (Bytef *)data, .avail_in = bytes };
	size_t cap = bytes < 4096 ? 16384 : bytes * 4;
	uint8_t *out = NULL, *bigger;
	int rc, result = 0;

	if (inflateInit2(&z, WINDOW_BITS_GZIP) != Z_OK)
		return -ENOMEM;
	do {
		cap = out ? cap * 2 : cap;
		if (cap > WIRE_BYTES_CAP * 2) {
			result = wire_fail(err, z.total_out, "it unpacks to more than %llu MiB",
					   WIRE_BYTES_CAP >> 20);
			goto out;
		}
		bigger = realloc(out, cap);
		if (!bigger) {
			result = -ENOMEM;
			goto out;
		}
		out = bigger;
		z.next_out = out + z.total_out;
		z.avail_out = cap - z.total_out;
		rc = inflate(&z, Z_NO_FLUSH);
	} while (rc == Z_OK && z.avail_out == 0);
	if (rc == Z_STREAM_END) {
		*ret = out;
		*ret_bytes = z.total_out;
		out = NULL;
	} else if (rc == Z_BUF_ERROR || rc == Z_OK) {
		result = wire_fail(err, z.total_out, "the file is cut off (gzip ends early)");
	} else {
		result = wire_fail(err, z.total_out, "the gzip data are damaged: %s",
				   z.msg ? z.msg : "unknown error");
	}
out:
	free(out);
	inflateEnd(&z);
	return result;
}

int wire_unpack(const void *data, size_t bytes, uint8_t **ret, size_t *ret_bytes,
		struct format_error *err)
{
	const uint8_t *p = data;
	int rc = check_kind(p, bytes, err);

	if (rc)
		return rc;
	if (bytes >= 2 && p[0] == 0x1f && p[1] == 0x8b) {
		rc = gunzip(p, bytes, ret, ret_bytes, err);
		if (rc)
			return rc;
		rc = check_kind(*ret, *ret_bytes, err);
		if (rc)
			free(*ret);
		return rc;
	}
	*ret = malloc(bytes);
	if (!*ret)
		return -ENOMEM;
	memcpy(*ret, p, bytes);
	*ret_bytes = bytes;
	return 0;
}

static int read_varint(struct wire_reader *r, uint64_t *ret, struct format_error *err)
{
	const uint8_t *start = r->p;

	*ret = 0;
	for (unsigned int shift = 0; shift < 70; shift += 7) {
		uint8_t byte;

		if (r->p == r->end)
			return wire_fail(err, start - r->base, "the data are cut off in a number");
		byte = *r->p++;
		if (shift < 64)
			*ret |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return 0;
	}
	return wire_fail(err, start - r->base, "a number is longer than 10 bytes");
}

static int read_fixed(struct wire_reader *r, size_t bytes, uint64_t *ret, struct format_error *err)
{
	if ((size_t)(r->end - r->p) < bytes)
		return wire_fail(err, r->p - r->base, "the data are cut off in a number");
	*ret = 0;
	for (size_t i = 0; i < bytes; i++)
		*ret |= (uint64_t)r->p[i] << (8 * i);
	r->p += bytes;
	return 0;
}

int wire_next(struct wire_reader *r, struct wire_field *ret, struct format_error *err)
{
	const uint8_t *start = r->p;
	uint64_t tag, len;
	int rc;

	if (r->p == r->end)
		return 0;
	memset(ret, 0, sizeof(*ret));
	rc = read_varint(r, &tag, err);
	if (rc)
		return rc;
	ret->number = tag >> 3;
	ret->type = tag & 7;
	if (!ret->number || tag >> 3 > 0x1fffffff)
		return wire_fail(err, start - r->base, "not a protobuf field");
	switch (ret->type) {
	case 0:
		rc = read_varint(r, &ret->value, err);
		return rc ? rc : 1;
	case 1:
	case 5:
		rc = read_fixed(r, ret->type == 1 ? 8 : 4, &ret->value, err);
		return rc ? rc : 1;
	case 2:
		rc = read_varint(r, &len, err);
		if (rc)
			return rc;
		if (len > (uint64_t)(r->end - r->p))
			return wire_fail(err, start - r->base,
					 "the data are cut off: field %u needs %llu bytes, %lld are "
					 "left",
					 ret->number, (unsigned long long)len,
					 (long long)(r->end - r->p));
		ret->data = r->p;
		ret->bytes = len;
		r->p += len;
		return 1;
	default:
		return wire_fail(err, start - r->base, "not a protobuf field (wire type %u)",
				 ret->type);
	}
}
