/* SPDX-License-Identifier: MIT */
/*
 * wire.h - what a profile file holds on the lowest level: gzip, and protobuf's wire format.
 */
#ifndef HT_FORMAT_WIRE_H
#define HT_FORMAT_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "format/pprof.h"

/* What a profile may take in memory when unpacked; a larger one is refused. */
#define WIRE_BYTES_CAP (1ULL << 30)

/*
 * The plain bytes of a profile that may be gzip-compressed; *ret is malloc'ed. -EBADMSG with err
 * filled when it is damaged, cut off, too large, or plainly something else.
 */
int wire_unpack(const void *data, size_t bytes, uint8_t **ret, size_t *ret_bytes,
		struct format_error *err);

/* One field of a message. */
struct wire_field {
	uint32_t number;
	uint32_t type; /* 0 varint, 1 fixed64, 2 bytes, 5 fixed32 */
	uint64_t value; /* types 0, 1, 5 */
	const uint8_t *data; /* type 2 */
	size_t bytes;
};
struct wire_reader {
	const uint8_t *base; /* offsets in errors count from here */
	const uint8_t *p, *end;
};
/* 1: a field; 0: the end; -EBADMSG with err filled. */
int wire_next(struct wire_reader *r, struct wire_field *ret, struct format_error *err);
/* Fill err; returns -EBADMSG. */
int wire_fail(struct format_error *err, uint64_t offset, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
