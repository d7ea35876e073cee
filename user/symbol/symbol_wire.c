/* SPDX-License-Identifier: MIT */
/*
 * symbol_wire.c - writes the helper's answers, and reads them with checks.
 */
#include "symbol/symbol_wire.h"

#include "base/printable.h"
#include "base/fd.h"

#define WRITE_BUF_BYTES 65536
#define FRAME_WORDS 5
/* Limit of a stream's length: a share for each address and a base. */
#define STREAM_BASE_BYTES (16u << 20)
#define STREAM_ADDR_BYTES 16384u

struct record_header {
	uint32_t kind, bytes;
};

/* --- writer --- */

int wire_writer_init(struct wire_writer *w, int fd)
{
	memset(w, 0, sizeof(*w));
	w->fd = fd;
	w->buf = malloc(WRITE_BUF_BYTES);
	if (!w->buf)
		return -ENOMEM;
	if (strset_new(&w->sent)) {
		free(w->buf);
		w->buf = NULL;
		return -ENOMEM;
	}
	return 0;
}

void wire_writer_release(struct wire_writer *w)
{
	free(w->buf);
	strset_free(w->sent);
	memset(w, 0, sizeof(*w));
}

static int flush(struct wire_writer *w)
{
	size_t n = w->bytes;

	w->bytes = 0;
	return write_all(w->fd, w->buf, n);
}

static int put(struct wire_writer *w, const void *p, size_t n)
{
	int err = 0;

	if (n > WRITE_BUF_BYTES - w->bytes)
		err = flush(w);
	if (err)
		return err;
	if (n > WRITE_BUF_BYTES)
		return write_all(w->fd, p, n);
	memcpy(w->buf + w->bytes, p, n);
	w->bytes += n;
	return 0;
}

static int put_record(struct wire_writer *w, enum wire_kind kind, const void *body, size_t n)
{
	struct record_header h = { .kind = kind, .bytes = (uint32_t)n };
	int err = put(w, &h, sizeof(h));

	return err ? err : put(w, body, n);
}

/* Id of s in the stream; sends it when it is new. */
static int put_string(struct wire_writer *w, const char *s, uint32_t *ret_id)
{
	size_t known = strset_cnt(w->sent);
	size_t n = s ? strnlen(s, WIRE_STRING_BYTES_CAP / 4) : 0;
	int64_t id = strset_add_n(w->sent, s ? s : "", n);
	int err = 0;

	if (id < 0)
		return -ENOMEM;
	/* The set has made it valid UTF-8: at most three times as long. */
	if ((size_t)id >= known) {
		const char *text = strset_get(w->sent, id);

		err = put_record(w, WIRE_STRING, text, strlen(text));
	}
	*ret_id = (uint32_t)id;
	return err;
}

int wire_put_address(struct wire_writer *w, uint32_t addr_idx, enum wire_source source,
		     const struct symbol_frame *frames, size_t frame_cnt)
{
	uint32_t body[2 + FRAME_WORDS * WIRE_FRAMES_CAP];
	uint32_t *word = body;
	int err = 0;

	*word++ = addr_idx;
	*word++ = source;
	for (size_t i = 0; i < frame_cnt && i < WIRE_FRAMES_CAP && !err; i++) {
		err = put_string(w, frames[i].name, word++);
		if (!err)
			err = put_string(w, frames[i].system_name, word++);
		if (!err)
			err = put_string(w, frames[i].file, word++);
		*word++ = frames[i].line;
		*word++ = frames[i].start_line;
	}
	if (err)
		return err;
	return put_record(w, WIRE_ADDRESS, body, (size_t)((uint8_t *)word - (uint8_t *)body));
}

int wire_put_done(struct wire_writer *w, uint32_t flags)
{
	int err = put_record(w, WIRE_DONE, &flags, sizeof(flags));

	return err ? err : flush(w);
}

/* --- reader --- */

int wire_reader_init(struct wire_reader *r, size_t addr_cnt)
{
	int err = 0;

	memset(r, 0, sizeof(*r));
	r->addr_cnt = addr_cnt;
	r->answers = calloc(addr_cnt ? addr_cnt : 1, sizeof(*r->answers));
	if (!r->answers || strset_new(&r->strings))
		err = -ENOMEM;
	if (err)
		wire_reader_release(r);
	else
		wire_reader_restart(r);
	return err;
}

void wire_reader_release(struct wire_reader *r)
{
	strset_free(r->strings);
	free(r->answers);
	vec_release(&r->frames);
	vec_release(&r->ids);
	vec_release(&r->pending);
	memset(r, 0, sizeof(*r));
}

void wire_reader_restart(struct wire_reader *r)
{
	r->ids.cnt = 0;
	r->pending.cnt = 0;
	r->stream_bytes = 0;
	r->is_done = false;
	r->done_flags = 0;
}

static int take_string(struct wire_reader *r, const uint8_t *body, size_t n)
{
	char *copy;
	int64_t id;

	if (n > WIRE_STRING_BYTES_CAP)
		return -EBADMSG;
	copy = malloc(n + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, body, n);
	id = strset_add_n(r->strings, copy, make_printable_n(copy, n));
	free(copy);
	if (id < 0 || vec_push(&r->ids, id))
		return -ENOMEM;
	return 0;
}

/* NULL: the id was never sent. */
static const char *text_of(const struct wire_reader *r, uint32_t id)
{
	if (id == 0)
		return "";
	if (id > r->ids.cnt)
		return NULL;
	return strset_get(r->strings, r->ids.data[id - 1]);
}

static int take_frame(struct wire_reader *r, const uint8_t *p)
{
	uint32_t word[FRAME_WORDS];
	struct symbol_frame f;

	memcpy(word, p, sizeof(word));
	f.name = text_of(r, word[0]);
	f.system_name = text_of(r, word[1]);
	f.file = text_of(r, word[2]);
	f.line = word[3];
	f.start_line = word[4];
	if (!f.name || !f.name[0] || !f.system_name || !f.file)
		return -EBADMSG;
	return vec_push(&r->frames, f) ? -ENOMEM : 0;
}

static int take_address(struct wire_reader *r, const uint8_t *body, size_t n)
{
	const size_t frame_bytes = FRAME_WORDS * sizeof(uint32_t);
	struct wire_answer *a;
	uint32_t head[2];
	size_t cnt;
	int err = 0;

	if (n < sizeof(head) + frame_bytes || (n - sizeof(head)) % frame_bytes != 0)
		return -EBADMSG;
	memcpy(head, body, sizeof(head));
	cnt = (n - sizeof(head)) / frame_bytes;
	if (head[0] >= r->addr_cnt || r->answers[head[0]].cnt || cnt > WIRE_FRAMES_CAP ||
	    (head[1] != WIRE_FROM_SYMBOL && head[1] != WIRE_FROM_DWARF))
		return -EBADMSG;
	if (r->frames.cnt + cnt > UINT32_MAX)
		return -EBADMSG;
	a = &r->answers[head[0]];
	a->first = (uint32_t)r->frames.cnt;
	for (size_t i = 0; i < cnt && !err; i++)
		err = take_frame(r, body + sizeof(head) + i * frame_bytes);
	if (err) {
		r->frames.cnt = a->first;
		return err;
	}
	a->cnt = (uint32_t)cnt;
	a->source = head[1];
	r->dwarf_cnt += head[1] == WIRE_FROM_DWARF;
	r->symbol_cnt += head[1] == WIRE_FROM_SYMBOL;
	return 0;
}

static int take_record(struct wire_reader *r, uint32_t kind, const uint8_t *body, size_t n)
{
	if (r->is_done)
		return -EBADMSG;
	if (kind == WIRE_STRING)
		return take_string(r, body, n);
	if (kind == WIRE_ADDRESS)
		return take_address(r, body, n);
	if (kind != WIRE_DONE || n != sizeof(r->done_flags))
		return -EBADMSG;
	memcpy(&r->done_flags, body, sizeof(r->done_flags));
	r->done_flags &= WIRE_FLAGS_ALL;
	r->is_done = true;
	return 0;
}

int wire_reader_feed(struct wire_reader *r, const void *bytes, size_t n)
{
	uint64_t bound = STREAM_BASE_BYTES + (uint64_t)STREAM_ADDR_BYTES * r->addr_cnt;
	struct record_header h;
	size_t pos = 0;
	int err = 0;

	r->stream_bytes += n;
	if (r->stream_bytes > bound)
		return -EBADMSG;
	if (n == 0)
		return 0;
	if (vec_reserve(&r->pending, r->pending.cnt + n))
		return -ENOMEM;
	memcpy(r->pending.data + r->pending.cnt, bytes, n);
	r->pending.cnt += n;
	while (!err && r->pending.cnt - pos >= sizeof(h)) {
		memcpy(&h, r->pending.data + pos, sizeof(h));
		if (h.bytes > WIRE_BODY_BYTES_CAP)
			return -EBADMSG;
		if (r->pending.cnt - pos - sizeof(h) < h.bytes)
			break;
		err = take_record(r, h.kind, r->pending.data + pos + sizeof(h), h.bytes);
		pos += sizeof(h) + h.bytes;
	}
	memmove(r->pending.data, r->pending.data + pos, r->pending.cnt - pos);
	r->pending.cnt -= pos;
	return err;
}
