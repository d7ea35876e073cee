/* SPDX-License-Identifier: MIT */
/* debuginfo_message.c - see debuginfo_message.h. */
#include "push/debuginfo_message.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proc/reader.h"
#include "push/push_message.h"

#include "debuginfo.pb-c.h"

typedef Parca__Debuginfo__V1alpha1__ShouldInitiateUploadRequest ShouldPb;
typedef Parca__Debuginfo__V1alpha1__ShouldInitiateUploadResponse ShouldAnswerPb;
typedef Parca__Debuginfo__V1alpha1__InitiateUploadRequest InitiatePb;
typedef Parca__Debuginfo__V1alpha1__InitiateUploadResponse InitiateAnswerPb;
typedef Parca__Debuginfo__V1alpha1__UploadInstructions InstructionsPb;
typedef Parca__Debuginfo__V1alpha1__MarkUploadFinishedRequest FinishedPb;
typedef Parca__Debuginfo__V1alpha1__UploadRequest UploadPb;
typedef Parca__Debuginfo__V1alpha1__UploadInfo InfoPb;
typedef Parca__Debuginfo__V1alpha1__UploadResponse UploadedPb;

/* chunk_data: field 2, length-delimited */
#define CHUNK_TAG (2 << 3 | 2)

int debuginfo_encode_should(const char *build_id, bool is_forced, uint8_t **ret, size_t *ret_bytes)
{
	ShouldPb m = PARCA__DEBUGINFO__V1ALPHA1__SHOULD_INITIATE_UPLOAD_REQUEST__INIT;

	m.build_id = (char *)build_id;
	m.force = is_forced;
	m.build_id_type = PARCA__DEBUGINFO__V1ALPHA1__BUILD_IDTYPE__BUILD_ID_TYPE_GNU;
	return push_parca_frame(&m.base, ret, ret_bytes);
}

int debuginfo_encode_initiate(const char *build_id, bool is_forced, uint64_t file_bytes,
			      uint64_t hash, uint8_t **ret, size_t *ret_bytes)
{
	InitiatePb m = PARCA__DEBUGINFO__V1ALPHA1__INITIATE_UPLOAD_REQUEST__INIT;
	char text[17];

	snprintf(text, sizeof(text), "%016" PRIx64, hash);
	m.build_id = (char *)build_id;
	m.size = (int64_t)file_bytes;
	m.hash = text;
	m.force = is_forced;
	m.build_id_type = PARCA__DEBUGINFO__V1ALPHA1__BUILD_IDTYPE__BUILD_ID_TYPE_GNU;
	return push_parca_frame(&m.base, ret, ret_bytes);
}

int debuginfo_encode_finished(const char *build_id, const char *upload_id, uint8_t **ret,
			      size_t *ret_bytes)
{
	FinishedPb m = PARCA__DEBUGINFO__V1ALPHA1__MARK_UPLOAD_FINISHED_REQUEST__INIT;

	m.build_id = (char *)build_id;
	m.upload_id = (char *)upload_id;
	return push_parca_frame(&m.base, ret, ret_bytes);
}

int debuginfo_encode_info(const char *build_id, const char *upload_id, uint8_t **ret,
			  size_t *ret_bytes)
{
	UploadPb m = PARCA__DEBUGINFO__V1ALPHA1__UPLOAD_REQUEST__INIT;
	InfoPb info = PARCA__DEBUGINFO__V1ALPHA1__UPLOAD_INFO__INIT;

	info.build_id = (char *)build_id;
	info.upload_id = (char *)upload_id;
	m.data_case = PARCA__DEBUGINFO__V1ALPHA1__UPLOAD_REQUEST__DATA_INFO;
	m.info = &info;
	return push_parca_frame(&m.base, ret, ret_bytes);
}

/* Written by hand: the generated code would need the data in memory beside its copy. */
size_t debuginfo_chunk_head(size_t bytes, uint8_t head[DEBUGINFO_CHUNK_HEAD_BYTES])
{
	size_t at = PUSH_PARCA_FRAME_BYTES, left = bytes;

	head[at++] = CHUNK_TAG;
	for (; left >= 0x80; left >>= 7)
		head[at++] = (uint8_t)(left | 0x80);
	head[at++] = (uint8_t)left;
	push_parca_frame_head(at - PUSH_PARCA_FRAME_BYTES + bytes, head);
	return at;
}

/* Return the message of one complete, uncompressed frame. */
static const uint8_t *unframe(const uint8_t *data, size_t bytes, size_t *ret_bytes)
{
	size_t n;

	if (bytes < PUSH_PARCA_FRAME_BYTES || data[0])
		return NULL;
	n = (size_t)data[1] << 24 | (size_t)data[2] << 16 | (size_t)data[3] << 8 | data[4];
	if (n > bytes - PUSH_PARCA_FRAME_BYTES)
		return NULL;
	*ret_bytes = n;
	return data + PUSH_PARCA_FRAME_BYTES;
}

static void *unpack_framed(const ProtobufCMessageDescriptor *what, const uint8_t *data,
			   size_t bytes)
{
	size_t n;
	const uint8_t *message = unframe(data, bytes, &n);

	return message ? protobuf_c_message_unpack(what, NULL, n, message) : NULL;
}

int debuginfo_decode_should(const uint8_t *data, size_t bytes, bool *ret)
{
	ShouldAnswerPb *m = unpack_framed(
		&parca__debuginfo__v1alpha1__should_initiate_upload_response__descriptor, data,
		bytes);

	if (!m)
		return -EBADMSG;
	*ret = m->should_initiate_upload;
	protobuf_c_message_free_unpacked(&m->base, NULL);
	return 0;
}

static bool copy_text(char *to, size_t to_bytes, const char *from)
{
	size_t n = strlen(from);

	if (n >= to_bytes)
		return false;
	memcpy(to, from, n + 1);
	return true;
}

static int take_instructions(const InstructionsPb *m, struct debuginfo_instructions *ret)
{
	if (!m || !copy_text(ret->upload_id, sizeof(ret->upload_id), m->upload_id) ||
	    !copy_text(ret->url, sizeof(ret->url), m->signed_url))
		return -EBADMSG;
	switch ((int)m->upload_strategy) {
	case PARCA__DEBUGINFO__V1ALPHA1__UPLOAD_INSTRUCTIONS__UPLOAD_STRATEGY__UPLOAD_STRATEGY_GRPC:
		ret->way = DEBUGINFO_STREAM;
		return 0;
	case PARCA__DEBUGINFO__V1ALPHA1__UPLOAD_INSTRUCTIONS__UPLOAD_STRATEGY__UPLOAD_STRATEGY_SIGNED_URL:
		ret->way = DEBUGINFO_PUT;
		return ret->url[0] ? 0 : -EBADMSG;
	default:
		return -EBADMSG;
	}
}

int debuginfo_decode_instructions(const uint8_t *data, size_t bytes,
				  struct debuginfo_instructions *ret)
{
	InitiateAnswerPb *m = unpack_framed(
		&parca__debuginfo__v1alpha1__initiate_upload_response__descriptor, data, bytes);
	int err;

	if (!m)
		return -EBADMSG;
	err = take_instructions(m->upload_instructions, ret);
	protobuf_c_message_free_unpacked(&m->base, NULL);
	return err;
}

int debuginfo_decode_uploaded(const uint8_t *data, size_t bytes, uint64_t *ret_file_bytes)
{
	UploadedPb *m = unpack_framed(&parca__debuginfo__v1alpha1__upload_response__descriptor,
				      data, bytes);

	if (!m)
		return -EBADMSG;
	*ret_file_bytes = m->size;
	protobuf_c_message_free_unpacked(&m->base, NULL);
	return 0;
}

/* The body of an upload. */

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
