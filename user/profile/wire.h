/* SPDX-License-Identifier: MIT */
/*
 * wire.h - reads protobuf's wire format field by field; errors name the byte.
 */
#ifndef HT_PROFILE_WIRE_H
#define HT_PROFILE_WIRE_H

#include "base/std.h"
#include "profile/pprof.h"

struct err;

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

/* A message that is being read. */
struct wire {
	const uint8_t *data;
	size_t bytes;
	size_t pos; /* where the next field begins */
	uint64_t base; /* offset of data in the whole input: errors count from the input's start */
};

/* One field of a message. */
struct wire_field {
	uint64_t offset; /* of the field's tag in the whole input */
	uint32_t number;
	enum wire_type type;
	uint64_t value; /* if it is a number */
	const uint8_t *data; /* if it is WIRE_BYTES */
	size_t bytes;
	uint64_t data_offset; /* of data in the whole input */
};

/* Next field: 1; 0: the end; -EBADMSG with *why filled. */
int wire_next(struct wire *w, struct wire_field *ret, struct err *why);
/* Fill *why; returns -EBADMSG. */
int format_fail(struct err *why, uint64_t offset, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Field numbers of Profile (profile.proto) for the fields that are read and written one by one,
 * because a whole profile need not fit into memory twice. protobuf-c knows the numbers, but has no names for them.
 */

enum {
	FIELD_SAMPLE_TYPE = 1,
	FIELD_SAMPLE = 2,
	FIELD_MAPPING = 3,
	FIELD_LOCATION = 4,
	FIELD_FUNCTION = 5,
	FIELD_STRING = 6,
	FIELD_PERIOD_TYPE = 11,
};

/*
 * The bytes of a profile, unpacked when they are gzip-compressed, and a sentence about input that is plainly
 * something else.
 */

/* A profile of a million distinct deep stacks has about 200 MB. Input over GUNZIP_BYTES_MAX, packed or unpacked, is
 * refused, so that it cannot eat the machine's memory. So is input that unpacks to more than 16 MiB and 32 times its
 * size: profiles unpack to 4 to 20 times (a 1 MB file of empty messages took 4.9 GB). */
#define GUNZIP_BYTES_MAX ((size_t)1 << 30)

/* Unpack data if it is packed. *ret_owned is to be freed, or NULL when *ret_data is data itself. -EBADMSG with *why,
 * -ENOMEM. max is GUNZIP_BYTES_MAX except in tests. */
int gunzip_mem(const void *data, size_t bytes, size_t max, uint8_t **ret_owned,
	       const uint8_t **ret_data, size_t *ret_bytes, struct err *why);
/* Read all of fd, without unpacking. */
int gunzip_read_fd(int fd, size_t max, uint8_t **ret, size_t *ret_bytes, struct err *why);

#endif
