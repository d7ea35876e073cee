/* SPDX-License-Identifier: MIT */
/*
 * debuginfo_upload.h - sends debug information to one Parca server: it asks once about each build id that is
 * offered, and sends what the server wants, one file after the other, in the background.
 *
 * Nothing here waits for the network: it runs in the caller's loop. A file is read a piece at a time while it is sent (at
 * most PUSH_HTTP_LONG_SPEED), reduced to names and lines, and never held in memory. Failed requests are
 * tried again as profiles are (push_queue.h). Nothing is remembered on disk: after a restart the server says what
 * it has.
 *
 * Every build id that was offered is in exactly one of: waiting, uploaded, known, nameless, large, refused.
 */
#ifndef HT_SERVE_DEBUGINFO_UPLOAD_H
#define HT_SERVE_DEBUGINFO_UPLOAD_H

#include "base/std.h"
#include "serve/push_http.h"

struct loop;

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

/* Most build ids that one server is asked about; offers beyond it are not taken. */
#define DEBUGINFO_FILES_CAP 16384

struct debuginfo_upload_options {
	struct loop *loop;
	struct push_http_options http;
	uint64_t file_bytes_max; /* larger ones are not sent */
	uint64_t retry_min_ns, retry_max_ns;
	/* Ask again after this about a file that the server does not want: another host's upload of it may be the
	 * reason, and may never end. */
	uint64_t ask_again_ns;
	/*
	 * Open the file that is best for a build id, reduced; the caller closes its descriptor.
	 * -ENODATA: no file has names; -EMFILE, -ENFILE, -ENOMEM, -EAGAIN: it is asked again; other errors: the
	 * file cannot be had (any more), which counts as -ENODATA.
	 */
	int (*open_file)(void *ctx, const char *build_id, struct debuginfo_file *ret);
	void *ctx;
};

struct debuginfo_upload_stats {
	uint64_t uploaded_cnt, uploaded_bytes;
	uint64_t known_cnt; /* the server did not want them */
	uint64_t nameless_cnt, large_cnt; /* not sent: no names in it, over file_bytes_max */
	uint64_t refused_cnt; /* by the server */
	uint64_t waiting_cnt; /* one of them may be in progress */
	uint64_t failed_cnt; /* tries, of any file */
	uint64_t dropped_cnt; /* offers beyond DEBUGINFO_FILES_CAP */
	bool is_unknown; /* the server does not have this service */
	char last_error[256]; /* "" = none yet */
};

struct debuginfo_upload;

/* Set all but loop, http.target, open_file and ctx. */
extern const struct debuginfo_upload_options debuginfo_upload_defaults;
int debuginfo_upload_open(const struct debuginfo_upload_options *opts,
			  struct debuginfo_upload **ret);
/* Gives up an upload in progress. */
void debuginfo_upload_close(struct debuginfo_upload *u);
/* As push_http_set_identity(). */
void debuginfo_upload_set_identity(struct debuginfo_upload *u,
				   const struct push_identity *identity);

/* Offer a build id; cheap when it is known already. -ENOMEM; "" and texts too long for a build id are ignored. */
int debuginfo_upload_offer(struct debuginfo_upload *u, const char *build_id);
/* True if the server has the file, or says that it will: its frames need no names from here. */
bool debuginfo_upload_is_held(const struct debuginfo_upload *u, const char *build_id);
void debuginfo_upload_stats(const struct debuginfo_upload *u, struct debuginfo_upload_stats *ret);

#endif
