/* SPDX-License-Identifier: MIT */
/*
 * debuginfo_message.h - the calls of Parca's DebuginfoService as bytes: requests framed for gRPC
 * (push_parca.h), answers without their frame's head. Pure.
 *
 * Whoever has debug information asks whether it is wanted (should), announces it (initiate), is
 * told to stream it to the server (upload) or to PUT it to an address, and says when it is done
 * (finished). Requests are malloc'd.
 */
#ifndef HT_PUSH_DEBUGINFO_MESSAGE_H
#define HT_PUSH_DEBUGINFO_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEBUGINFO_PATH_SHOULD "/parca.debuginfo.v1alpha1.DebuginfoService/ShouldInitiateUpload"
#define DEBUGINFO_PATH_INITIATE "/parca.debuginfo.v1alpha1.DebuginfoService/InitiateUpload"
#define DEBUGINFO_PATH_UPLOAD "/parca.debuginfo.v1alpha1.DebuginfoService/Upload"
#define DEBUGINFO_PATH_FINISHED "/parca.debuginfo.v1alpha1.DebuginfoService/MarkUploadFinished"

#define DEBUGINFO_ID_BYTES 128
#define DEBUGINFO_URL_BYTES 4096
/* Of a message in the stream; gRPC servers take 4 MiB unless told otherwise. */
#define DEBUGINFO_CHUNK_BYTES ((size_t)256 << 10)
/* Before the data of a chunk. */
#define DEBUGINFO_CHUNK_HEAD_BYTES 16

/* is_forced: although an upload of it was begun, which the caller knows to be over. */
int debuginfo_encode_should(const char *build_id, bool is_forced, uint8_t **ret, size_t *ret_bytes);
int debuginfo_encode_initiate(const char *build_id, bool is_forced, uint64_t file_bytes,
			      uint64_t hash, uint8_t **ret, size_t *ret_bytes);
int debuginfo_encode_finished(const char *build_id, const char *upload_id, uint8_t **ret,
			      size_t *ret_bytes);
/* The first message of the stream. */
int debuginfo_encode_info(const char *build_id, const char *upload_id, uint8_t **ret,
			  size_t *ret_bytes);
/* What goes before `bytes` (at most DEBUGINFO_CHUNK_BYTES) of the file; how many bytes it has. */
size_t debuginfo_chunk_head(size_t bytes, uint8_t head[DEBUGINFO_CHUNK_HEAD_BYTES]);

enum debuginfo_way { DEBUGINFO_STREAM, DEBUGINFO_PUT };

struct debuginfo_instructions {
	enum debuginfo_way way;
	char upload_id[DEBUGINFO_ID_BYTES];
	char url[DEBUGINFO_URL_BYTES]; /* of DEBUGINFO_PUT */
};

/* Answers, framed as they arrived. -EBADMSG: not such an answer; of instructions also a way that
 * is not known. */
int debuginfo_decode_should(const uint8_t *data, size_t bytes, bool *ret);
int debuginfo_decode_instructions(const uint8_t *data, size_t bytes,
				  struct debuginfo_instructions *ret);
int debuginfo_decode_uploaded(const uint8_t *data, size_t bytes, uint64_t *ret_file_bytes);

#endif
