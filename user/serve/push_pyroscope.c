/* SPDX-License-Identifier: MIT */
/* push_pyroscope.c - see push_pyroscope.h. */
#include "serve/push_pyroscope.h"

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

int push_pyroscope_encode(const struct push_series *series, size_t cnt, uint8_t **ret,
			  size_t *ret_bytes)
{
	Push__V1__PushRequest request = PUSH__V1__PUSH_REQUEST__INIT;
	struct series_room *rooms = calloc(cnt + 1, sizeof(*rooms));
	Push__V1__RawProfileSeries **series_ptrs = calloc(cnt + 1, sizeof(*series_ptrs));
	Push__V1__LabelPair **label_ptrs = NULL, *labels = NULL;
	size_t label_cnt = 0, used = 0, bytes;
	uint8_t *out;
	int err = -ENOMEM;

	for (size_t i = 0; i < cnt; i++)
		label_cnt += series[i].label_cnt;
	labels = calloc(label_cnt + 1, sizeof(*labels));
	label_ptrs = calloc(label_cnt + 1, sizeof(*label_ptrs));
	if (!rooms || !series_ptrs || !labels || !label_ptrs)
		goto out;
	for (size_t i = 0; i < cnt; i++) {
		fill_series(&series[i], &rooms[i], labels + used, label_ptrs + used);
		used += series[i].label_cnt;
		series_ptrs[i] = &rooms[i].series;
	}
	request.n_series = cnt;
	request.series = series_ptrs;
	bytes = protobuf_c_message_get_packed_size(&request.base);
	out = malloc(bytes + 1);
	if (!out)
		goto out;
	protobuf_c_message_pack(&request.base, out);
	*ret = out;
	*ret_bytes = bytes;
	err = 0;
out:
	free(rooms);
	free(series_ptrs);
	free(labels);
	free(label_ptrs);
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
