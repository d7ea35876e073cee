/* SPDX-License-Identifier: MIT */
/*
 * debuginfo_upload.h - sends debug information to one Parca server: it asks once about each build id that is
 * offered, and sends what the server wants, one file after the other, in the background.
 *
 * Nothing here waits for the network: the caller puts debuginfo_upload_fd() into its epoll loop and calls
 * debuginfo_upload_run() when it is readable. A file is read a piece at a time while it is sent (at most
 * PUSH_HTTP_LONG_SPEED), reduced to names and lines, and never held in memory. Failed requests are
 * tried again as profiles are (push_queue.h). Nothing is remembered on disk: after a restart the server says what
 * it has.
 *
 * Every build id that was offered is in exactly one of: waiting, uploaded, known, nameless, large, refused.
 */
#ifndef HT_PUSH_DEBUGINFO_UPLOAD_H
#define HT_PUSH_DEBUGINFO_UPLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "push/push_http.h"

/* Most build ids that one server is asked about; offers beyond it are not taken. */
#define DEBUGINFO_FILES_CAP 16384

struct debuginfo_file;

struct debuginfo_upload_options {
	struct push_http_options http;
	uint64_t file_bytes_max; /* larger ones are not sent */
	uint64_t retry_min_ns, retry_max_ns;
	/* Ask again after this about a file that the server does not want: another host's upload of it may be the
	 * reason, and may never end. */
	uint64_t ask_again_ns;
	/*
	 * Open the file that is best for a build id, reduced (push_message.h); the caller closes its descriptor.
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

/* Set all but http.target, open_file and ctx. */
void debuginfo_upload_defaults(struct debuginfo_upload_options *opts);
int debuginfo_upload_open(const struct debuginfo_upload_options *opts,
			  struct debuginfo_upload **ret);
/* Gives up an upload in progress. */
void debuginfo_upload_close(struct debuginfo_upload *u);
/* As push_http_set_identity(). */
void debuginfo_upload_set_identity(struct debuginfo_upload *u,
				   const struct push_http_options *opts);
int debuginfo_upload_fd(const struct debuginfo_upload *u);
void debuginfo_upload_run(struct debuginfo_upload *u);

/* Offer a build id; cheap when it is known already. -ENOMEM; "" and texts too long for a build id are ignored. */
int debuginfo_upload_offer(struct debuginfo_upload *u, const char *build_id);
/* True if the server has the file, or says that it will: its frames need no names from here. */
bool debuginfo_upload_is_held(const struct debuginfo_upload *u, const char *build_id);
void debuginfo_upload_stats(const struct debuginfo_upload *u, struct debuginfo_upload_stats *ret);

#endif
