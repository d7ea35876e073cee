/* SPDX-License-Identifier: MIT */
/* push_pyroscope.c - see push_pyroscope.h. */
#include "push/push_pyroscope.h"

#include <errno.h>
#include <stdlib.h>

#include "pyroscope.pb-c.h"

struct series_room {
	Push__V1__RawProfileSeries series;
	Push__V1__RawSample sample, *sample_ptr;
};

static void fill_series(const struct push_series *from, struct series_room *to,
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
	struct push_room room;
	int err = push_room_init(&room, series, cnt, sizeof(struct series_room),
				 sizeof(Push__V1__LabelPair));
	struct series_room *rooms = room.series;
	Push__V1__RawProfileSeries **series_ptrs = room.series_ptrs;
	Push__V1__LabelPair **label_ptrs = room.label_ptrs, *labels = room.labels;

	if (err)
		return err;
	for (size_t i = 0; i < cnt; i++) {
		fill_series(&series[i], &rooms[i], labels, label_ptrs);
		labels += series[i].label_cnt;
		label_ptrs += series[i].label_cnt;
		series_ptrs[i] = &rooms[i].series;
	}
	request.n_series = cnt;
	request.series = series_ptrs;
	err = pack(&request, ret, ret_bytes);
	push_room_release(&room);
	return err;
}

void push_pyroscope_answer(long http_status, const char *body, size_t n, struct push_answer *ret)
{
	enum push_verdict verdict = push_http_verdict(http_status);

	push_answer_set(ret, verdict, "HTTP status %ld", http_status);
	if (verdict != PUSH_SENT && n) {
		push_answer_append(ret, ": ", 2);
		push_answer_append(ret, body, n);
	}
}
