/* SPDX-License-Identifier: MIT */
/*
 * debuginfo_upload.c - see debuginfo_upload.h.
 *
 * One file at a time is in progress, through the steps of enum step: each is a request, whose answer decides on the
 * next one. Files wait in a list that only grows; `next` walks around it.
 */
#include "serve/debuginfo_upload.h"

#include <poll.h>

#include "base/clock.h"
#include "base/hmap.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/vec.h"
#include "debuginfo.pb-c.h"
#include "elf/elf_file.h"
#include "proc/reader.h"
#include "serve/push_message.h"
#include "serve/push_queue.h"

/* The messages. */

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

static int debuginfo_encode_finished(const char *build_id, const char *upload_id, uint8_t **ret,
				     size_t *ret_bytes)
{
	FinishedPb m = PARCA__DEBUGINFO__V1ALPHA1__MARK_UPLOAD_FINISHED_REQUEST__INIT;

	m.build_id = (char *)build_id;
	m.upload_id = (char *)upload_id;
	return push_parca_frame(&m.base, ret, ret_bytes);
}

/* The first message of the stream. */
static int debuginfo_encode_info(const char *build_id, const char *upload_id, uint8_t **ret,
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

/*
 * Write what goes before `bytes` (at most DEBUGINFO_CHUNK_BYTES) of the file; return its length. Written by hand: the
 * generated code would need the data in memory beside its copy.
 */
static size_t debuginfo_chunk_head(size_t bytes, uint8_t head[DEBUGINFO_CHUNK_HEAD_BYTES])
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

/* The upload. */

/* gRPC's codes; the first two mean here: somebody else has sent the file meanwhile. */
#define GRPC_ALREADY_EXISTS 6
#define GRPC_FAILED_PRECONDITION 9
#define GRPC_UNIMPLEMENTED 12

enum step { STEP_NONE, STEP_SHOULD, STEP_INITIATE, STEP_SEND, STEP_FINISHED };

enum file_state {
	FILE_WAITING,
	FILE_UPLOADED,
	FILE_KNOWN,
	FILE_NAMELESS,
	FILE_LARGE,
	FILE_REFUSED,
	FILE_STATE_CNT
};

struct file {
	char build_id[2 * BUILD_ID_BYTES_CAP + 1];
	enum file_state state;
	bool is_forced; /* an upload of ours was cut off */
	unsigned int few_tries;
	uint64_t due_ns; /* for is_asked_again(): when */
};

struct debuginfo_upload {
	struct debuginfo_upload_options opts;
	struct push_http *http;
	VEC(struct file) files;
	struct hmap idx; /* build id -> index */
	size_t next; /* where the search for the next file begins */
	uint64_t state_cnt[FILE_STATE_CNT];
	uint64_t pause_ns; /* nothing is sent before; 0: no pause */
	unsigned int fails; /* in a row */
	struct debuginfo_upload_stats stats; /* without counts of states */
	/* The file in progress. */
	size_t current;
	enum step step;
	uint8_t *request;
	struct debuginfo_file reduced; /* fd -1: none */
	struct debuginfo_instructions how;
	struct debuginfo_stream stream;
};

const struct debuginfo_upload_options debuginfo_upload_defaults = {
	.http = { .timeout_ns = 15 * NS_PER_S },
	.file_bytes_max = (uint64_t)500 << 20,
	.retry_min_ns = NS_PER_S,
	.retry_max_ns = 60 * NS_PER_S,
	.ask_again_ns = 3600 * NS_PER_S,
};

static void set_state(struct debuginfo_upload *u, struct file *f, enum file_state state)
{
	u->state_cnt[f->state]--;
	u->state_cnt[state]++;
	f->state = state;
}

static void release_current(struct debuginfo_upload *u)
{
	debuginfo_stream_release(&u->stream);
	if (u->reduced.fd >= 0)
		close(u->reduced.fd);
	u->reduced.fd = -1;
	free(u->request);
	u->request = NULL;
	u->step = STEP_NONE;
}

/* The server may lose a file that it has, and may take later one that it refuses. */
static bool is_asked_again(enum file_state state)
{
	return state == FILE_KNOWN || state == FILE_REFUSED;
}

/* End work on the file in progress, for good or for now. */
static void settle(struct debuginfo_upload *u, enum file_state state)
{
	struct file *f = &u->files.data[u->current];

	set_state(u, f, state);
	f->few_tries = 0;
	f->due_ns = is_asked_again(state) ? now_ns() + u->opts.ask_again_ns : 0;
	release_current(u);
	if (u->fails && (state == FILE_UPLOADED || state == FILE_KNOWN))
		log_info("push: '%s' takes debug information again", u->opts.http.target.name);
	u->fails = 0;
}

static void pause_after_failure(struct debuginfo_upload *u)
{
	u->fails++;
	u->pause_ns = now_ns() +
		      push_retry_delay_ns(u->opts.retry_min_ns, u->opts.retry_max_ns, u->fails);
}

static void fail(struct debuginfo_upload *u, enum push_verdict verdict, const char *text)
{
	struct file *f = &u->files.data[u->current];

	u->stats.failed_cnt++;
	snprintf(u->stats.last_error, sizeof(u->stats.last_error), "%s", text);
	/* A file that never gets through must not be sent for ever. */
	if (verdict == PUSH_RETRY && u->step == STEP_SEND)
		verdict = PUSH_RETRY_FEW;
	if (verdict == PUSH_RETRY_FEW && ++f->few_tries >= PUSH_TRIES_MAX)
		verdict = PUSH_REFUSED;
	if (verdict == PUSH_REFUSED) {
		log_warn("push: '%s' refuses debug information of %s: %s", u->opts.http.target.name,
			 f->build_id, text);
		settle(u, FILE_REFUSED);
		return;
	}
	if (!u->fails)
		log_warn("push: cannot send debug information to '%s': %s; retrying",
			 u->opts.http.target.name, text);
	/* An upload that the server still believes to be in progress is this one. */
	f->is_forced = f->is_forced || u->step >= STEP_SEND;
	release_current(u);
	pause_after_failure(u);
}

static ssize_t read_stream(void *ctx, void *buf, size_t bytes)
{
	return debuginfo_stream_read(ctx, buf, bytes);
}

static int begin_should(struct debuginfo_upload *u, const struct file *f,
			struct push_http_call *call)
{
	call->grpc_path = DEBUGINFO_PATH_SHOULD;
	return debuginfo_encode_should(f->build_id, f->is_forced, &u->request, &call->body_bytes);
}

/* -ENODATA, -EFBIG: there is nothing to send for this file. Other errors: not now. */
static int begin_initiate(struct debuginfo_upload *u, const struct file *f,
			  struct push_http_call *call)
{
	int err = u->opts.open_file(u->opts.ctx, f->build_id, &u->reduced);

	if (err == -EMFILE || err == -ENFILE || err == -ENOMEM || err == -EAGAIN)
		return err;
	if (err)
		return -ENODATA;
	if (u->reduced.bytes > u->opts.file_bytes_max)
		return -EFBIG;
	call->grpc_path = DEBUGINFO_PATH_INITIATE;
	return debuginfo_encode_initiate(f->build_id, f->is_forced, u->reduced.bytes,
					 u->reduced.hash, &u->request, &call->body_bytes);
}

static int begin_send(struct debuginfo_upload *u, const struct file *f, struct push_http_call *call)
{
	int err = debuginfo_stream_init(&u->stream, &u->reduced, f->build_id, &u->how);

	if (err)
		return err;
	if (u->how.way == DEBUGINFO_PUT)
		call->put_url = u->how.url;
	else
		call->grpc_path = DEBUGINFO_PATH_UPLOAD;
	call->read = read_stream;
	call->read_ctx = &u->stream;
	call->read_bytes = debuginfo_stream_bytes(&u->stream);
	return 0;
}

static int begin_finished(struct debuginfo_upload *u, const struct file *f,
			  struct push_http_call *call)
{
	call->grpc_path = DEBUGINFO_PATH_FINISHED;
	return debuginfo_encode_finished(f->build_id, u->how.upload_id, &u->request,
					 &call->body_bytes);
}

static void begin(struct debuginfo_upload *u, enum step step)
{
	const struct file *f = &u->files.data[u->current];
	struct push_http_call call = { 0 };
	int err = 0;

	free(u->request);
	u->request = NULL;
	u->step = step;
	switch (step) {
	case STEP_SHOULD:
		err = begin_should(u, f, &call);
		break;
	case STEP_INITIATE:
		err = begin_initiate(u, f, &call);
		break;
	case STEP_SEND:
		err = begin_send(u, f, &call);
		break;
	case STEP_FINISHED:
		err = begin_finished(u, f, &call);
		break;
	case STEP_NONE:
		return;
	}
	call.body = u->request;
	if (!err)
		err = push_http_call(u->http, &call);
	if (err == -ENODATA)
		settle(u, FILE_NAMELESS);
	else if (err == -EFBIG)
		settle(u, FILE_LARGE);
	else if (err)
		fail(u, PUSH_RETRY, strerror(-err));
}

/* Handle the answer whether the server wants the file. */
static void on_should(struct debuginfo_upload *u, const uint8_t *answer, size_t bytes)
{
	bool is_wanted;

	if (debuginfo_decode_should(answer, bytes, &is_wanted))
		fail(u, PUSH_RETRY_FEW, "its answer is not in Parca's format");
	else if (is_wanted)
		begin(u, STEP_INITIATE);
	else
		settle(u, FILE_KNOWN);
}

static void on_instructions(struct debuginfo_upload *u, const uint8_t *answer, size_t bytes)
{
	if (debuginfo_decode_instructions(answer, bytes, &u->how))
		fail(u, PUSH_RETRY_FEW, "its instructions are not in Parca's format");
	else
		begin(u, STEP_SEND);
}

static void on_sent(struct debuginfo_upload *u, const uint8_t *answer, size_t bytes)
{
	uint64_t taken_bytes;

	if (u->how.way == DEBUGINFO_STREAM &&
	    (debuginfo_decode_uploaded(answer, bytes, &taken_bytes) ||
	     taken_bytes != u->reduced.bytes))
		fail(u, PUSH_RETRY_FEW, "not all of the file has arrived");
	else
		begin(u, STEP_FINISHED);
}

static void on_finished(struct debuginfo_upload *u)
{
	const struct file *f = &u->files.data[u->current];

	u->stats.uploaded_bytes += u->reduced.bytes;
	log_debug("push: '%s' has the debug information of %s, %llu bytes",
		  u->opts.http.target.name, f->build_id, (unsigned long long)u->reduced.bytes);
	settle(u, FILE_UPLOADED);
}

static void on_success(struct debuginfo_upload *u, const struct push_answer *answer)
{
	switch (u->step) {
	case STEP_SHOULD:
		on_should(u, answer->body, answer->body_bytes);
		break;
	case STEP_INITIATE:
		on_instructions(u, answer->body, answer->body_bytes);
		break;
	case STEP_SEND:
		on_sent(u, answer->body, answer->body_bytes);
		break;
	case STEP_FINISHED:
		on_finished(u);
		break;
	case STEP_NONE:
		break;
	}
}

static void on_done(void *ctx, const struct push_answer *answer)
{
	struct debuginfo_upload *u = ctx;

	if (answer->verdict == PUSH_SENT) {
		on_success(u, answer);
		return;
	}
	if (answer->grpc_status == GRPC_UNIMPLEMENTED && u->step == STEP_SHOULD) {
		log_warn("push: '%s' takes no debug information", u->opts.http.target.name);
		u->stats.is_unknown = true;
		release_current(u);
		return;
	}
	if (u->step == STEP_INITIATE && (answer->grpc_status == GRPC_ALREADY_EXISTS ||
					 answer->grpc_status == GRPC_FAILED_PRECONDITION)) {
		settle(u, FILE_KNOWN);
		return;
	}
	fail(u, answer->verdict, answer->text);
	u->pause_ns += answer->pause_s * NS_PER_S;
}

/* Find the next file that waits, or that is to be asked about again. */
static bool find_next(struct debuginfo_upload *u, uint64_t now)
{
	for (size_t n = 0; n < u->files.cnt; n++) {
		size_t i = (u->next + n) % u->files.cnt;
		struct file *f = &u->files.data[i];

		if (f->state != FILE_WAITING && !(is_asked_again(f->state) && now >= f->due_ns))
			continue;
		u->current = i;
		u->next = i + 1;
		return true;
	}
	return false;
}

/* Set the timer for work that no socket announces. */
static void set_timer(struct debuginfo_upload *u)
{
	uint64_t next = 0;

	if (u->step == STEP_NONE && !u->stats.is_unknown) {
		next = u->state_cnt[FILE_WAITING] ? u->pause_ns : 0;
		/* Files to ask about again are looked for now and then, not exactly on time. */
		if (!next && u->state_cnt[FILE_KNOWN] + u->state_cnt[FILE_REFUSED])
			next = now_ns() + u->opts.ask_again_ns / 4 + 1;
	}
	push_http_wake_at(u->http, next);
}

static void start_next(struct debuginfo_upload *u)
{
	uint64_t now = now_ns();

	if (u->step != STEP_NONE || u->stats.is_unknown || now < u->pause_ns)
		return;
	u->pause_ns = 0;
	if (find_next(u, now))
		begin(u, STEP_SHOULD);
}

static void on_ready(void *ctx, int fd)
{
	struct debuginfo_upload *u = ctx;

	(void)fd;
	push_http_run(u->http);
	start_next(u);
	set_timer(u);
}

/* Keys of the index have one size. */
static bool make_key(const char *build_id, char key[2 * BUILD_ID_BYTES_CAP + 1])
{
	if (!*build_id || strlen(build_id) > 2 * BUILD_ID_BYTES_CAP)
		return false;
	strncpy(key, build_id, 2 * BUILD_ID_BYTES_CAP + 1); /* the rest is 0 */
	return true;
}

int debuginfo_upload_offer(struct debuginfo_upload *u, const char *build_id)
{
	struct file f = { .state = FILE_WAITING };
	int err;

	if (!make_key(build_id, f.build_id) || hmap_get(&u->idx, f.build_id))
		return 0;
	if (u->files.cnt >= DEBUGINFO_FILES_CAP) {
		u->stats.dropped_cnt++;
		return 0;
	}
	err = vec_push(&u->files, f);
	if (!err)
		err = hmap_put(&u->idx, f.build_id, u->files.cnt - 1);
	if (err)
		return err;
	u->state_cnt[FILE_WAITING]++;
	start_next(u);
	set_timer(u);
	return 0;
}

bool debuginfo_upload_is_held(const struct debuginfo_upload *u, const char *build_id)
{
	char key[2 * BUILD_ID_BYTES_CAP + 1];
	const uint64_t *i = make_key(build_id, key) ? hmap_get(&u->idx, key) : NULL;

	return i &&
	       (u->files.data[*i].state == FILE_UPLOADED || u->files.data[*i].state == FILE_KNOWN);
}

void debuginfo_upload_stats(const struct debuginfo_upload *u, struct debuginfo_upload_stats *ret)
{
	*ret = u->stats;
	ret->uploaded_cnt = u->state_cnt[FILE_UPLOADED];
	ret->known_cnt = u->state_cnt[FILE_KNOWN];
	ret->nameless_cnt = u->state_cnt[FILE_NAMELESS];
	ret->large_cnt = u->state_cnt[FILE_LARGE];
	ret->refused_cnt = u->state_cnt[FILE_REFUSED];
	ret->waiting_cnt = u->state_cnt[FILE_WAITING];
}

int debuginfo_upload_open(const struct debuginfo_upload_options *opts,
			  struct debuginfo_upload **ret)
{
	struct debuginfo_upload *u = calloc(1, sizeof(*u));
	int err;

	if (!u)
		return -ENOMEM;
	u->opts = *opts;
	u->reduced.fd = -1;
	hmap_init(&u->idx, 2 * BUILD_ID_BYTES_CAP + 1);
	err = push_http_open(&opts->http, on_done, u, &u->http);
	if (!err)
		err = loop_watch(opts->loop, push_http_fd(u->http), on_ready, u);
	if (err)
		debuginfo_upload_close(u);
	else
		*ret = u;
	return err;
}

void debuginfo_upload_close(struct debuginfo_upload *u)
{
	if (!u)
		return;
	if (u->http)
		loop_unwatch(u->opts.loop, push_http_fd(u->http));
	push_http_close(u->http); /* first: it reads the stream */
	release_current(u);
	vec_release(&u->files);
	hmap_release(&u->idx);
	free(u);
}

void debuginfo_upload_set_identity(struct debuginfo_upload *u, const struct push_identity *identity)
{
	push_http_set_identity(u->http, identity);
}
