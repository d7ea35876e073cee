/* SPDX-License-Identifier: MIT */
/* debuginfo_message.c - see debuginfo_message.h. */
#include "push/debuginfo_message.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "debuginfo.pb-c.h"
#include "push/push_parca.h"

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

static int pack_framed(const ProtobufCMessage *message, uint8_t **ret, size_t *ret_bytes)
{
	size_t n = protobuf_c_message_get_packed_size(message);
	uint8_t *out = malloc(PUSH_PARCA_FRAME_BYTES + n);

	if (!out)
		return -ENOMEM;
	push_parca_frame_head(n, out);
	protobuf_c_message_pack(message, out + PUSH_PARCA_FRAME_BYTES);
	*ret = out;
	*ret_bytes = PUSH_PARCA_FRAME_BYTES + n;
	return 0;
}

int debuginfo_encode_should(const char *build_id, bool is_forced, uint8_t **ret, size_t *ret_bytes)
{
	ShouldPb m = PARCA__DEBUGINFO__V1ALPHA1__SHOULD_INITIATE_UPLOAD_REQUEST__INIT;

	m.build_id = (char *)build_id;
	m.force = is_forced;
	m.build_id_type = PARCA__DEBUGINFO__V1ALPHA1__BUILD_IDTYPE__BUILD_ID_TYPE_GNU;
	return pack_framed(&m.base, ret, ret_bytes);
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
	return pack_framed(&m.base, ret, ret_bytes);
}

int debuginfo_encode_finished(const char *build_id, const char *upload_id, uint8_t **ret,
			      size_t *ret_bytes)
{
	FinishedPb m = PARCA__DEBUGINFO__V1ALPHA1__MARK_UPLOAD_FINISHED_REQUEST__INIT;

	m.build_id = (char *)build_id;
	m.upload_id = (char *)upload_id;
	return pack_framed(&m.base, ret, ret_bytes);
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
	return pack_framed(&m.base, ret, ret_bytes);
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
