/* SPDX-License-Identifier: MIT */
/*
 * debuginfo_stream.h - the body of an upload, made while it is sent: the file unchanged, or as the messages of
 * gRPC's Upload call. Reads nothing but the file.
 */
#ifndef HT_PUSH_DEBUGINFO_STREAM_H
#define HT_PUSH_DEBUGINFO_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "push/debuginfo_message.h"

struct debug_only;

struct debuginfo_stream {
	const struct debug_only *file;
	int fd;
	uint8_t *info; /* framed; NULL: sends the file unchanged */
	size_t info_bytes, info_at;
	uint64_t file_at, chunk_end; /* offsets in the file */
	uint8_t head[DEBUGINFO_CHUNK_HEAD_BYTES];
	size_t head_bytes, head_at;
};

/* The caller still owns file and fd (debug_only.h). -ENOMEM. */
int debuginfo_stream_init(struct debuginfo_stream *s, const struct debug_only *file, int fd,
			  const char *build_id, const struct debuginfo_instructions *how);
void debuginfo_stream_release(struct debuginfo_stream *s);
/* Bytes of the whole body. */
uint64_t debuginfo_stream_bytes(const struct debuginfo_stream *s);
/* Read the next bytes; return their number, 0 at the end, or the error of debug_only_read(). */
ssize_t debuginfo_stream_read(struct debuginfo_stream *s, void *buf, size_t bytes);

#endif
