/* SPDX-License-Identifier: MIT */
/* wire.c - see wire.h. The format is that of protobuf's "Encoding" document. */
#include "profile/wire.h"

#include <zlib.h>

#include "base/err.h"
#include "base/vec.h"

int format_fail(struct err *why, uint64_t offset, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	err_set_args(why, -EBADMSG, fmt, args);
	va_end(args);
	if (why)
		why->offset = offset;
	return -EBADMSG;
}

static int read_varint(struct wire *w, uint64_t *ret, struct err *why)
{
	size_t start = w->pos;

	*ret = 0;
	for (unsigned int shift = 0; shift < 70; shift += 7) {
		uint8_t byte;

		if (w->pos == w->bytes)
			return format_fail(why, w->base + start,
					   "the data are cut off in a number");
		byte = w->data[w->pos++];
		if (shift < 64)
			*ret |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return 0;
	}
	return format_fail(why, w->base + start, "a number is longer than 10 bytes");
}

static int read_fixed(struct wire *w, size_t bytes, uint64_t *ret, struct err *why)
{
	if (w->bytes - w->pos < bytes)
		return format_fail(why, w->base + w->pos, "the data are cut off in a number");
	*ret = 0;
	for (size_t i = 0; i < bytes; i++)
		*ret |= (uint64_t)w->data[w->pos + i] << (8 * i);
	w->pos += bytes;
	return 0;
}

static int read_bytes(struct wire *w, struct wire_field *f, struct err *why)
{
	uint64_t len;
	int rc = read_varint(w, &len, why);

	if (rc)
		return rc;
	if (len > w->bytes - w->pos)
		return format_fail(why, f->offset,
				   "the data are cut off: field %u needs %llu bytes, %zu are left",
				   f->number, (unsigned long long)len, w->bytes - w->pos);
	f->data = w->data + w->pos;
	f->data_offset = w->base + w->pos;
	f->bytes = len;
	w->pos += len;
	return 0;
}

int wire_next(struct wire *w, struct wire_field *ret, struct err *why)
{
	uint64_t tag;
	int rc;

	if (w->pos == w->bytes)
		return 0;
	memset(ret, 0, sizeof(*ret));
	ret->offset = w->base + w->pos;
	rc = read_varint(w, &tag, why);
	if (rc)
		return rc;
	if (!(tag >> 3) || tag >> 3 > 0x1fffffff)
		return format_fail(why, ret->offset, "not a protobuf field");
	ret->number = tag >> 3;
	ret->type = tag & 7;
	switch (ret->type) {
	case WIRE_VARINT:
		rc = read_varint(w, &ret->value, why);
		break;
	case WIRE_FIXED64:
		rc = read_fixed(w, 8, &ret->value, why);
		break;
	case WIRE_FIXED32:
		rc = read_fixed(w, 4, &ret->value, why);
		break;
	case WIRE_BYTES:
		rc = read_bytes(w, ret, why);
		break;
	default:
		return format_fail(why, ret->offset, "not a protobuf field (wire type %u)",
				   (unsigned int)ret->type);
	}
	return rc ? rc : 1;
}

#define WINDOW_BITS_GZIP (15 + 16)
#define STEP_BYTES 65536
/* Size up to which anything may be unpacked; beyond it, how many times its packed size it may have. */
#define FREE_BYTES ((size_t)16 << 20)
#define RATIO_MAX 32

struct bytes {
	uint8_t *data;
	size_t cnt, cap;
};

static const struct {
	const char *magic;
	size_t magic_bytes;
	const char *text;
} foreign[] = {
	{ "\x7f"
	  "ELF",
	  4, "an ELF file (a program, library or core dump), not a profile" },
	{ "\x28\xb5\x2f\xfd", 4, "compressed with zstd: unpack it first (zstd -d)" },
	{ "\xfd"
	  "7zXZ",
	  5, "compressed with xz: unpack it first (xz -d)" },
	{ "BZh", 3, "compressed with bzip2: unpack it first (bzip2 -d)" },
	{ "PK\x03\x04", 4, "a zip archive, not a profile" },
	{ "{", 1, "text that looks like JSON, not a profile" },
	{ "<", 1, "text that looks like HTML or XML, not a profile" },
};

/* A protobuf message of a profile starts with the tag of a field; its string table soon has a byte 0. Data that
 * begins with a long run of printable characters is text. */
static bool looks_like_text(const uint8_t *data, size_t bytes)
{
	size_t n = bytes < 64 ? bytes : 64;

	for (size_t i = 0; i < n; i++)
		if ((data[i] < 0x20 && data[i] != '\n' && data[i] != '\t' && data[i] != '\r') ||
		    data[i] == 0x7f)
			return false;
	return true;
}

static int refuse_foreign(const uint8_t *data, size_t bytes, struct err *why)
{
	if (!bytes)
		return format_fail(why, 0, "the file is empty");
	for (size_t i = 0; i < sizeof(foreign) / sizeof(*foreign); i++)
		if (bytes >= foreign[i].magic_bytes &&
		    !memcmp(data, foreign[i].magic, foreign[i].magic_bytes))
			return format_fail(why, 0, "%s", foreign[i].text);
	if (!import_is_text(data, bytes) && looks_like_text(data, bytes))
		return format_fail(why, 0, "text, not a profile");
	return 0;
}

static int refuse_large(size_t unpacked_bytes, size_t max, bool is_by_ratio, struct err *why)
{
	if (is_by_ratio)
		return format_fail(
			why, unpacked_bytes,
			"unpacks to more than %zu MiB, unusual for a profile of its size; if it "
			"is one, unpack it first (gzip -d)",
			unpacked_bytes >> 20);
	return format_fail(why, unpacked_bytes, "unpacks to more than %zu MiB, which is the limit",
			   max >> 20);
}

/* Needs out->cnt below max. */
static int inflate_step(z_stream *z, struct bytes *out, size_t max, int *ret_rc)
{
	size_t room;

	if (vec_reserve(out, out->cnt + 1))
		return -ENOMEM;
	room = out->cap - out->cnt;
	if (room > max - out->cnt)
		room = max - out->cnt;
	if (room > UINT32_MAX)
		room = UINT32_MAX;
	z->next_out = out->data + out->cnt;
	z->avail_out = room;
	*ret_rc = inflate(z, Z_NO_FLUSH);
	out->cnt += room - z->avail_out;
	return 0;
}

/* A gzip file may consist of several, one after the other. */
static int inflate_all(z_stream *z, const uint8_t *data, size_t bytes, size_t max,
		       struct bytes *out, struct err *why)
{
	size_t ratio_max = FREE_BYTES + bytes * RATIO_MAX;
	bool is_by_ratio = ratio_max < max;
	int rc = Z_OK, failed;

	if (is_by_ratio)
		max = ratio_max;
	z->next_in = (Bytef *)data;
	z->avail_in = bytes; /* below 4 GiB: the caller has checked */
	for (;;) {
		if (out->cnt >= max)
			return refuse_large(out->cnt, max, is_by_ratio, why);
		failed = inflate_step(z, out, max, &rc);
		if (failed)
			return failed;
		if (rc == Z_STREAM_END) {
			if (!z->avail_in)
				return 0;
			if (z->next_in[0] != 0x1f || inflateReset(z) != Z_OK)
				return format_fail(why, z->next_in - data,
						   "other data follows the compressed data");
			continue;
		}
		if (rc == Z_MEM_ERROR)
			return -ENOMEM;
		if (rc != Z_OK && rc != Z_BUF_ERROR)
			return format_fail(why, z->next_in - data,
					   "the compressed data are damaged (%s)",
					   z->msg ? z->msg : "gzip");
		if (!z->avail_in && z->avail_out)
			return format_fail(why, bytes,
					   "cut off after %zu unpacked bytes: the compressed "
					   "data have no end mark",
					   out->cnt);
	}
}

int gunzip_mem(const void *data, size_t bytes, size_t max, uint8_t **ret_owned,
	       const uint8_t **ret_data, size_t *ret_bytes, struct err *why)
{
	const uint8_t *in = data;
	struct bytes out = { 0 };
	z_stream z = { 0 };
	int rc;

	if (bytes > max || bytes > UINT32_MAX)
		return format_fail(why, 0, "has more than %zu MiB, which is the limit", max >> 20);
	if (bytes < 2 || in[0] != 0x1f || in[1] != 0x8b) {
		rc = refuse_foreign(in, bytes, why);
		if (!rc) {
			*ret_owned = NULL;
			*ret_data = in;
			*ret_bytes = bytes;
		}
		return rc;
	}
	if (inflateInit2(&z, WINDOW_BITS_GZIP) != Z_OK)
		return -ENOMEM;
	rc = vec_reserve(&out, STEP_BYTES);
	if (!rc)
		rc = inflate_all(&z, in, bytes, max, &out, why);
	inflateEnd(&z);
	if (!rc)
		rc = refuse_foreign(out.data, out.cnt, why);
	if (rc) {
		vec_release(&out);
		return rc;
	}
	*ret_owned = out.data;
	*ret_data = out.data;
	*ret_bytes = out.cnt;
	return 0;
}

int gunzip_read_fd(int fd, size_t max, uint8_t **ret, size_t *ret_bytes, struct err *why)
{
	struct bytes in = { 0 };
	int rc = 0;

	for (;;) {
		ssize_t n;

		rc = vec_reserve(&in, in.cnt + STEP_BYTES);
		if (rc)
			break;
		n = read(fd, in.data + in.cnt, STEP_BYTES);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			rc = -errno;
		if (n <= 0)
			break;
		in.cnt += n;
		if (in.cnt > max) {
			rc = format_fail(why, max, "has more than %zu MiB, which is the limit",
					 max >> 20);
			break;
		}
	}
	if (rc) {
		vec_release(&in);
		return rc;
	}
	*ret = in.data;
	*ret_bytes = in.cnt;
	return 0;
}
