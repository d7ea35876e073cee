/* SPDX-License-Identifier: MIT */
/*
 * debuginfo_stream.h - the body of an upload, made while it is sent: the file unchanged, or as the messages of
 * gRPC's Upload call. Reads nothing but the file, which another process writes into a pipe (serve/debug_job.h).
 */
#ifndef HT_PUSH_DEBUGINFO_STREAM_H
#define HT_PUSH_DEBUGINFO_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "push/debuginfo_message.h"

/* A file that is read once, from its begin to its end. */
struct debuginfo_file {
	int fd;
	uint64_t bytes, hash; /* the hash tells files with the same build id apart */
};

struct debuginfo_stream {
	struct debuginfo_file file;
	uint8_t *info; /* framed; NULL: sends the file unchanged */
	size_t info_bytes, info_at;
	uint64_t file_at, chunk_end; /* offsets in the file */
	uint8_t head[DEBUGINFO_CHUNK_HEAD_BYTES];
	size_t head_bytes, head_at;
};

/* The caller still owns the descriptor. -ENOMEM. */
int debuginfo_stream_init(struct debuginfo_stream *s, const struct debuginfo_file *file,
			  const char *build_id, const struct debuginfo_instructions *how);
void debuginfo_stream_release(struct debuginfo_stream *s);
/* Bytes of the whole body. */
uint64_t debuginfo_stream_bytes(const struct debuginfo_stream *s);
/* Read the next bytes; return their number, 0 at the end. -EIO: the file has fewer than it should; -ETIMEDOUT: they are
 * not there, and were waited for. */
ssize_t debuginfo_stream_read(struct debuginfo_stream *s, void *buf, size_t bytes);

#endif
