/* SPDX-License-Identifier: MIT */
/*
 * debuginfo_message.h - the calls of Parca's DebuginfoService as bytes: requests framed for gRPC (push_message.h),
 * answers without the head of their frame. Pure.
 *
 * A client that has debug information asks whether the server wants it (should), announces it (initiate), is told
 * to stream it to the server (upload) or to PUT it to an address, and says when it is done (finished). Requests are
 * malloc'd.
 */
#ifndef HT_PUSH_DEBUGINFO_MESSAGE_H
#define HT_PUSH_DEBUGINFO_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define DEBUGINFO_PATH_SHOULD "/parca.debuginfo.v1alpha1.DebuginfoService/ShouldInitiateUpload"
#define DEBUGINFO_PATH_INITIATE "/parca.debuginfo.v1alpha1.DebuginfoService/InitiateUpload"
#define DEBUGINFO_PATH_UPLOAD "/parca.debuginfo.v1alpha1.DebuginfoService/Upload"
#define DEBUGINFO_PATH_FINISHED "/parca.debuginfo.v1alpha1.DebuginfoService/MarkUploadFinished"

#define DEBUGINFO_ID_BYTES 128
#define DEBUGINFO_URL_BYTES 4096
/* Bytes of one message in the stream; gRPC servers take 4 MiB unless told otherwise. */
#define DEBUGINFO_CHUNK_BYTES ((size_t)256 << 10)
/* Bytes before the data of a chunk. */
#define DEBUGINFO_CHUNK_HEAD_BYTES 16

/* is_forced: ask although an upload of the file was begun; the caller knows that this upload is over. */
int debuginfo_encode_should(const char *build_id, bool is_forced, uint8_t **ret, size_t *ret_bytes);
int debuginfo_encode_initiate(const char *build_id, bool is_forced, uint64_t file_bytes,
			      uint64_t hash, uint8_t **ret, size_t *ret_bytes);
int debuginfo_encode_finished(const char *build_id, const char *upload_id, uint8_t **ret,
			      size_t *ret_bytes);
/* The first message of the stream. */
int debuginfo_encode_info(const char *build_id, const char *upload_id, uint8_t **ret,
			  size_t *ret_bytes);
/* Write what goes before `bytes` (at most DEBUGINFO_CHUNK_BYTES) of the file; return its length. */
size_t debuginfo_chunk_head(size_t bytes, uint8_t head[DEBUGINFO_CHUNK_HEAD_BYTES]);

enum debuginfo_way { DEBUGINFO_STREAM, DEBUGINFO_PUT };

struct debuginfo_instructions {
	enum debuginfo_way way;
	char upload_id[DEBUGINFO_ID_BYTES];
	char url[DEBUGINFO_URL_BYTES]; /* for DEBUGINFO_PUT */
};

/* Decode answers, framed as they arrived. -EBADMSG: not such an answer; for instructions also: the way of uploading
 * is not known. */
int debuginfo_decode_should(const uint8_t *data, size_t bytes, bool *ret);
int debuginfo_decode_instructions(const uint8_t *data, size_t bytes,
				  struct debuginfo_instructions *ret);
int debuginfo_decode_uploaded(const uint8_t *data, size_t bytes, uint64_t *ret_file_bytes);

/*
 * The body of an upload, made while it is sent: the file unchanged, or as the messages of gRPC's Upload call. Reads
 * nothing but the file, which another process writes into a pipe (serve/debug_job.c).
 */

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
