/* SPDX-License-Identifier: MIT */
/*
 * push_message.h - the bytes of requests to destinations, and what their answers mean. Pure; push_http.h carries them.
 */
#ifndef HT_PUSH_MESSAGE_H
#define HT_PUSH_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ProtobufCMessage;

struct push_label {
	const char *name, *value;
};

/* A profile as pprof_write() made it, and the labels that identify it. */
struct push_series {
	const struct push_label *labels;
	size_t label_cnt;
	const void *pprof;
	size_t pprof_bytes;
};

enum push_verdict {
	PUSH_SENT,
	/* The server or the network failed and may recover: send the same bytes again later. */
	PUSH_RETRY,
	/* Servers answer this error both in trouble and to requests that they will never accept: try again, but not
	 * for ever. */
	PUSH_RETRY_FEW,
	/* The request is at fault: another try would give the same. */
	PUSH_REFUSED,
};

struct push_answer {
	enum push_verdict verdict;
	/* Seconds for which the server wants no request (Retry-After); 0: it does not say. */
	uint32_t pause_s;
	/* gRPC's own code if there is one, else 0. */
	unsigned int grpc_status;
	char text[256]; /* the answer, for the log; printable */
};

__attribute__((format(printf, 3, 4))) void
push_answer_set(struct push_answer *a, enum push_verdict verdict, const char *fmt, ...);
/* What an HTTP status means when nothing else says more. */
enum push_verdict push_http_verdict(long status);

/*
 * gRPC's WriteRaw of Parca and Polar Signals.
 *
 * A gRPC call is a POST over HTTP/2. Its body is frames: one byte that says whether the message is compressed (0:
 * no), four bytes of its length, the most significant first, and the message in protobuf. The outcome is not the
 * HTTP status, which is 200 for most errors, but grpc-status in the trailers (or in the headers when nothing but an
 * error is sent).
 */
#define PUSH_PARCA_FRAME_BYTES 5
/* Parca's own limit of a message. */
#define PUSH_PARCA_MESSAGE_MAX ((size_t)64 << 20)

/* Write the head of an uncompressed message of this length. */
void push_parca_frame_head(size_t bytes, uint8_t head[PUSH_PARCA_FRAME_BYTES]);

/* Make one request of all the series, framed; the caller frees it. As push_parca_frame(). */
int push_parca_encode(const struct push_series *series, size_t cnt, uint8_t **ret,
		      size_t *ret_bytes);

struct push_grpc {
	bool has_status;
	unsigned int status;
	char message[192]; /* decoded */
};

/* Read a line of the headers or trailers, with or without its line end. Other lines are ignored. */
void push_parca_header(struct push_grpc *g, const char *line, size_t n);
/* The outcome of a finished exchange. http_status is that of the headers. */
void push_parca_answer(const struct push_grpc *g, long http_status, struct push_answer *ret);

/*
 * Pyroscope's Push in the Connect protocol. A unary Connect call is an ordinary POST of the bare message. Success is
 * status 200; an error has another status and a body in JSON, {"code": "invalid_argument", "message": "..."}.
 */

/* Make one request of all the series; the caller frees it. -ENOMEM. */
int push_pyroscope_encode(const struct push_series *series, size_t cnt, uint8_t **ret,
			  size_t *ret_bytes);
/* body: the part of the answer that was kept. */
void push_pyroscope_answer(long http_status, const char *body, size_t n, struct push_answer *ret);

/*
 * The calls of Parca's DebuginfoService as bytes: requests framed for gRPC,
 * answers without the head of their frame. Pure.
 *
 * A client that has debug information asks whether the server wants it (should), announces it (initiate), is told
 * to stream it to the server (upload) or to PUT it to an address, and says when it is done (finished). Requests are
 * malloc'd.
 */

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
 * nothing but the file, which another process writes into a pipe (serve/pushes.c).
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
