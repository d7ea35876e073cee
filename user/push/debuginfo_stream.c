/* SPDX-License-Identifier: MIT */
/* debuginfo_stream.c - see debuginfo_stream.h. */
#include "push/debuginfo_stream.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proc/reader.h"

int debuginfo_stream_init(struct debuginfo_stream *s, const struct debuginfo_file *file,
			  const char *build_id, const struct debuginfo_instructions *how)
{
	memset(s, 0, sizeof(*s));
	s->file = *file;
	if (how->way == DEBUGINFO_PUT)
		return 0;
	return debuginfo_encode_info(build_id, how->upload_id, &s->info, &s->info_bytes);
}

void debuginfo_stream_release(struct debuginfo_stream *s)
{
	free(s->info);
	memset(s, 0, sizeof(*s));
}

uint64_t debuginfo_stream_bytes(const struct debuginfo_stream *s)
{
	uint64_t file_bytes = s->file.bytes, whole = file_bytes / DEBUGINFO_CHUNK_BYTES;
	size_t rest = file_bytes % DEBUGINFO_CHUNK_BYTES;
	uint8_t head[DEBUGINFO_CHUNK_HEAD_BYTES];

	if (!s->info)
		return file_bytes;
	return s->info_bytes + file_bytes +
	       whole * debuginfo_chunk_head(DEBUGINFO_CHUNK_BYTES, head) +
	       (rest ? debuginfo_chunk_head(rest, head) : 0);
}

static size_t take(void *to, size_t room, const uint8_t *from, size_t bytes, size_t *at)
{
	size_t n = bytes - *at < room ? bytes - *at : room;

	memcpy(to, from + *at, n);
	*at += n;
	return n;
}

static void begin_chunk(struct debuginfo_stream *s)
{
	uint64_t left = s->file.bytes - s->file_at;
	size_t bytes = left < DEBUGINFO_CHUNK_BYTES ? left : DEBUGINFO_CHUNK_BYTES;

	s->chunk_end = s->file_at + bytes;
	s->head_at = 0;
	s->head_bytes = s->info ? debuginfo_chunk_head(bytes, s->head) : 0;
}

/* The writer is not trusted to be fast: the caller waits once for a piece, however small. */
static ssize_t read_file(int fd, void *buf, size_t bytes, int wait_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;

	do {
		if (poll(&p, 1, wait_ms) <= 0)
			return -ETIMEDOUT;
		n = read(fd, buf, bytes);
	} while (n < 0 && errno == EINTR);
	return n > 0 ? n : n < 0 ? -errno : -EIO;
}

ssize_t debuginfo_stream_read(struct debuginfo_stream *s, void *buf, size_t bytes)
{
	uint64_t file_bytes = s->file.bytes;
	uint8_t *to = buf;
	size_t done = 0;

	if (s->info)
		done = take(to, bytes, s->info, s->info_bytes, &s->info_at);
	while (done < bytes && s->file_at < file_bytes) {
		uint64_t left;
		ssize_t n;

		if (s->file_at == s->chunk_end)
			begin_chunk(s);
		done += take(to + done, bytes - done, s->head, s->head_bytes, &s->head_at);
		left = s->chunk_end - s->file_at;
		n = read_file(s->file.fd, to + done, bytes - done < left ? bytes - done : left,
			      done ? 0 : READER_PROMPT_MS);
		if (n == -ETIMEDOUT && done)
			break;
		if (n < 0)
			return n;
		done += (size_t)n;
		s->file_at += (uint64_t)n;
	}
	return (ssize_t)done;
}
