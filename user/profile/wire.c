/* SPDX-License-Identifier: MIT */
/* wire.c - see wire.h. The format is that of protobuf's "Encoding" document. */
#include "profile/wire.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/err.h"

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
