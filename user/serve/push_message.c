/* SPDX-License-Identifier: MIT */
/* push_message.c - see push_message.h. */
#include "serve/push_message.h"

#include "base/units.h"
#include "parca.pb-c.h"
#include "pyroscope.pb-c.h"

/* Arrays that the message of a request points to, zeroed: arrays of pointers, and of the structs they point to. */
struct room {
	void *series, *series_ptrs; /* one for each series */
	void *labels, *label_ptrs; /* one for each label, one series after the other */
};

static void room_release(struct room *r)
{
	free(r->series);
	free(r->series_ptrs);
	free(r->labels);
	free(r->label_ptrs);
	memset(r, 0, sizeof(*r));
}

/* -ENOMEM. series_bytes, label_bytes: size of one. */
static int room_init(struct room *r, const struct push_series *series, size_t cnt,
		     size_t series_bytes, size_t label_bytes)
{
	size_t label_cnt = 0;

	for (size_t i = 0; i < cnt; i++)
		label_cnt += series[i].label_cnt;
	/* one more, because calloc() of 0 may return NULL */
	r->series = calloc(cnt + 1, series_bytes);
	r->series_ptrs = calloc(cnt + 1, sizeof(void *));
	r->labels = calloc(label_cnt + 1, label_bytes);
	r->label_ptrs = calloc(label_cnt + 1, sizeof(void *));
	if (r->series && r->series_ptrs && r->labels && r->label_ptrs)
		return 0;
	room_release(r);
	return -ENOMEM;
}

/* Append n bytes of a server's text to a->text: control characters become '?', and no character at its end is cut
 * in half. */
static void answer_append(struct push_answer *a, const char *text, size_t n)
{
	size_t used = strlen(a->text), room = sizeof(a->text) - 1 - used;

	if (n > room) {
		n = room;
		/* 10xxxxxx continues a character of UTF-8: cut before the character, not inside it. */
		while (n && ((unsigned char)text[n] & 0xc0) == 0x80)
			n--;
	}
	for (size_t i = 0; i < n; i++) {
		unsigned char c = text[i];

		a->text[used + i] = c < ' ' || c == 0x7f ? '?' : (char)c;
	}
	a->text[used + n] = 0;
}

void push_answer_set(struct push_answer *a, enum push_verdict verdict, const char *fmt, ...)
{
	char line[sizeof(a->text)];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	a->verdict = verdict;
	a->grpc_status = 0;
	a->pause_s = 0;
	a->text[0] = 0;
	answer_append(a, line, strlen(line));
}

/* 401 and 403 are tried again: replacing a token must not cost data. */
enum push_verdict push_http_verdict(long status)
{
	if (status >= 200 && status < 300)
		return PUSH_SENT;
	switch (status) {
	case 401:
	case 403:
	case 407:
	case 408:
	case 421:
	case 425:
	case 429:
	case 502:
	case 503:
	case 504:
		return PUSH_RETRY;
	}
	/* 404: a proxy may answer this while its server is being replaced. */
	return status >= 500 || status == 404 ? PUSH_RETRY_FEW : PUSH_REFUSED;
}

/* Parca. */

typedef Parca__Profilestore__V1alpha1__WriteRawRequest RequestPb;
typedef Parca__Profilestore__V1alpha1__RawProfileSeries SeriesPb;
typedef Parca__Profilestore__V1alpha1__LabelSet LabelSetPb;
typedef Parca__Profilestore__V1alpha1__Label LabelPb;
typedef Parca__Profilestore__V1alpha1__RawSample SamplePb;

/* Everything that the message of one series points to. */
struct parca_room {
	SeriesPb series;
	LabelSetPb set;
	SamplePb sample, *sample_ptr;
};

static void fill_parca(const struct push_series *from, struct parca_room *to, LabelPb *labels,
		       LabelPb **label_ptrs)
{
	for (size_t i = 0; i < from->label_cnt; i++) {
		labels[i] = (LabelPb)PARCA__PROFILESTORE__V1ALPHA1__LABEL__INIT;
		labels[i].name = (char *)from->labels[i].name;
		labels[i].value = (char *)from->labels[i].value;
		label_ptrs[i] = &labels[i];
	}
	to->set = (LabelSetPb)PARCA__PROFILESTORE__V1ALPHA1__LABEL_SET__INIT;
	to->set.n_labels = from->label_cnt;
	to->set.labels = label_ptrs;
	to->sample = (SamplePb)PARCA__PROFILESTORE__V1ALPHA1__RAW_SAMPLE__INIT;
	to->sample.raw_profile.data = (uint8_t *)from->pprof;
	to->sample.raw_profile.len = from->pprof_bytes;
	to->sample_ptr = &to->sample;
	to->series = (SeriesPb)PARCA__PROFILESTORE__V1ALPHA1__RAW_PROFILE_SERIES__INIT;
	to->series.labels = &to->set;
	to->series.n_samples = 1;
	to->series.samples = &to->sample_ptr;
}

void push_parca_frame_head(size_t bytes, uint8_t head[PUSH_PARCA_FRAME_BYTES])
{
	head[0] = 0; /* uncompressed: the profiles are compressed */
	head[1] = (uint8_t)(bytes >> 24);
	head[2] = (uint8_t)(bytes >> 16);
	head[3] = (uint8_t)(bytes >> 8);
	head[4] = (uint8_t)bytes;
}

int push_parca_frame(const ProtobufCMessage *m, uint8_t **ret, size_t *ret_bytes)
{
	size_t n = protobuf_c_message_get_packed_size(m);
	uint8_t *out;

	if (n > PUSH_PARCA_MESSAGE_MAX)
		return -E2BIG;
	out = malloc(PUSH_PARCA_FRAME_BYTES + n);
	if (!out)
		return -ENOMEM;
	push_parca_frame_head(n, out);
	protobuf_c_message_pack(m, out + PUSH_PARCA_FRAME_BYTES);
	*ret = out;
	*ret_bytes = PUSH_PARCA_FRAME_BYTES + n;
	return 0;
}

int push_parca_encode(const struct push_series *series, size_t cnt, uint8_t **ret,
		      size_t *ret_bytes)
{
	RequestPb request = PARCA__PROFILESTORE__V1ALPHA1__WRITE_RAW_REQUEST__INIT;
	struct room room;
	int err = room_init(&room, series, cnt, sizeof(struct parca_room), sizeof(LabelPb));
	struct parca_room *rooms = room.series;
	SeriesPb **series_ptrs = room.series_ptrs;
	LabelPb **label_ptrs = room.label_ptrs, *labels = room.labels;

	if (err)
		return err;
	for (size_t i = 0; i < cnt; i++) {
		fill_parca(&series[i], &rooms[i], labels, label_ptrs);
		labels += series[i].label_cnt;
		label_ptrs += series[i].label_cnt;
		series_ptrs[i] = &rooms[i].series;
	}
	request.n_series = cnt;
	request.series = series_ptrs;
	request.normalized = true;
	err = push_parca_frame(&request.base, ret, ret_bytes);
	room_release(&room);
	return err;
}

/* If the line is the header `name`, return its value without blanks around it. */
static bool header_value(const char *line, size_t n, const char *name, const char **ret,
			 size_t *ret_n)
{
	size_t name_n = strlen(name);

	if (n <= name_n || strncasecmp(line, name, name_n) != 0 || line[name_n] != ':')
		return false;
	line += name_n + 1;
	n -= name_n + 1;
	while (n && isspace((unsigned char)line[0])) {
		line++;
		n--;
	}
	while (n && isspace((unsigned char)line[n - 1]))
		n--;
	*ret = line;
	*ret_n = n;
	return true;
}

/* gRPC writes '%', and what is not printable ASCII, as %XX. Any other form is copied as it is. */
static void decode_message(const char *s, size_t n, char *to, size_t cap)
{
	size_t used = 0;

	for (size_t i = 0; i < n && used + 1 < cap; i++) {
		int high = s[i] == '%' && i + 2 < n ? hex_digit(s[i + 1]) : -1;
		int low = high >= 0 ? hex_digit(s[i + 2]) : -1;

		if (low >= 0 && (high || low)) {
			to[used++] = (char)(high << 4 | low);
			i += 2;
		} else if (s[i]) {
			to[used++] = s[i];
		}
	}
	to[used] = 0;
}

void push_parca_header(struct push_grpc *g, const char *line, size_t n)
{
	const char *value;
	size_t value_n;
	unsigned int status = 0;

	if (header_value(line, n, "grpc-message", &value, &value_n)) {
		decode_message(value, value_n, g->message, sizeof(g->message));
	} else if (header_value(line, n, "grpc-status", &value, &value_n)) {
		if (!value_n || value_n > 3)
			return;
		for (size_t i = 0; i < value_n; i++) {
			if (!isdigit((unsigned char)value[i]))
				return;
			status = status * 10 + (value[i] - '0');
		}
		g->status = status;
		g->has_status = true;
	}
}

/* gRPC's codes. A server's own, unclassified errors arrive as UNKNOWN. */
static const struct {
	const char *name;
	enum push_verdict verdict;
} codes[] = {
	[0] = { "OK", PUSH_SENT },
	[1] = { "CANCELLED", PUSH_RETRY },
	[2] = { "UNKNOWN", PUSH_RETRY_FEW },
	[3] = { "INVALID_ARGUMENT", PUSH_REFUSED },
	[4] = { "DEADLINE_EXCEEDED", PUSH_RETRY },
	[5] = { "NOT_FOUND", PUSH_REFUSED },
	[6] = { "ALREADY_EXISTS", PUSH_REFUSED },
	[7] = { "PERMISSION_DENIED", PUSH_RETRY },
	[8] = { "RESOURCE_EXHAUSTED", PUSH_RETRY_FEW },
	[9] = { "FAILED_PRECONDITION", PUSH_REFUSED },
	[10] = { "ABORTED", PUSH_RETRY },
	[11] = { "OUT_OF_RANGE", PUSH_REFUSED },
	[12] = { "UNIMPLEMENTED", PUSH_REFUSED },
	[13] = { "INTERNAL", PUSH_RETRY_FEW },
	[14] = { "UNAVAILABLE", PUSH_RETRY },
	[15] = { "DATA_LOSS", PUSH_RETRY_FEW },
	[16] = { "UNAUTHENTICATED", PUSH_RETRY },
};

void push_parca_answer(const struct push_grpc *g, long http_status, struct push_answer *ret)
{
	if (!g->has_status) {
		/* The answer is from a proxy, or not from a gRPC server at all. Success needs gRPC's status. */
		enum push_verdict verdict = push_http_verdict(http_status);

		push_answer_set(ret, verdict == PUSH_SENT ? PUSH_RETRY_FEW : verdict,
				"HTTP status %ld and no grpc-status", http_status);
		return;
	}
	if (g->status < ARRAY_CNT(codes))
		push_answer_set(ret, codes[g->status].verdict, "%s", codes[g->status].name);
	else
		push_answer_set(ret, PUSH_RETRY_FEW, "gRPC status %u", g->status);
	ret->grpc_status = g->status;
	if (g->message[0]) {
		answer_append(ret, ": ", 2);
		answer_append(ret, g->message, strlen(g->message));
	}
}

/* Pyroscope. */

struct pyroscope_room {
	Push__V1__RawProfileSeries series;
	Push__V1__RawSample sample, *sample_ptr;
};

static void fill_pyroscope(const struct push_series *from, struct pyroscope_room *to,
			   Push__V1__LabelPair *labels, Push__V1__LabelPair **label_ptrs)
{
	for (size_t i = 0; i < from->label_cnt; i++) {
		labels[i] = (Push__V1__LabelPair)PUSH__V1__LABEL_PAIR__INIT;
		labels[i].name = (char *)from->labels[i].name;
		labels[i].value = (char *)from->labels[i].value;
		label_ptrs[i] = &labels[i];
	}
	to->sample = (Push__V1__RawSample)PUSH__V1__RAW_SAMPLE__INIT;
	to->sample.raw_profile.data = (uint8_t *)from->pprof;
	to->sample.raw_profile.len = from->pprof_bytes;
	to->sample_ptr = &to->sample;
	to->series = (Push__V1__RawProfileSeries)PUSH__V1__RAW_PROFILE_SERIES__INIT;
	to->series.n_labels = from->label_cnt;
	to->series.labels = label_ptrs;
	to->series.n_samples = 1;
	to->series.samples = &to->sample_ptr;
}

static int pack(const Push__V1__PushRequest *request, uint8_t **ret, size_t *ret_bytes)
{
	size_t bytes = protobuf_c_message_get_packed_size(&request->base);
	uint8_t *out = malloc(bytes + 1);

	if (!out)
		return -ENOMEM;
	protobuf_c_message_pack(&request->base, out);
	*ret = out;
	*ret_bytes = bytes;
	return 0;
}

int push_pyroscope_encode(const struct push_series *series, size_t cnt, uint8_t **ret,
			  size_t *ret_bytes)
{
	Push__V1__PushRequest request = PUSH__V1__PUSH_REQUEST__INIT;
	struct room room;
	int err = room_init(&room, series, cnt, sizeof(struct pyroscope_room),
			    sizeof(Push__V1__LabelPair));
	struct pyroscope_room *rooms = room.series;
	Push__V1__RawProfileSeries **series_ptrs = room.series_ptrs;
	Push__V1__LabelPair **label_ptrs = room.label_ptrs, *labels = room.labels;

	if (err)
		return err;
	for (size_t i = 0; i < cnt; i++) {
		fill_pyroscope(&series[i], &rooms[i], labels, label_ptrs);
		labels += series[i].label_cnt;
		label_ptrs += series[i].label_cnt;
		series_ptrs[i] = &rooms[i].series;
	}
	request.n_series = cnt;
	request.series = series_ptrs;
	err = pack(&request, ret, ret_bytes);
	room_release(&room);
	return err;
}

void push_pyroscope_answer(long http_status, const char *body, size_t n, struct push_answer *ret)
{
	enum push_verdict verdict = push_http_verdict(http_status);

	push_answer_set(ret, verdict, "HTTP status %ld", http_status);
	if (verdict != PUSH_SENT && n) {
		answer_append(ret, ": ", 2);
		answer_append(ret, body, n);
	}
}
