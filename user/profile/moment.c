/* SPDX-License-Identifier: MIT */
/* moment.c - see moment.h. */
#include "profile/moment.h"

#include <errno.h>
#include <stdlib.h>

#include "profile/profile.h"

struct types {
	int space, objects, peak; /* -1: none */
};

static struct types find_types(const struct profile *p)
{
	return (struct types){ profile_find_type(p, "inuse_space"),
			       profile_find_type(p, "inuse_objects"),
			       profile_find_type(p, "peak_space") };
}

static int64_t *value_of(struct profile *p, const struct profile_sample *s, int type)
{
	return &p->values.data[s->value_first + (size_t)type];
}

bool profile_peak(const struct profile *p, struct estimate *ret)
{
	const struct types t = find_types(p);
	const struct profile_sample *s;

	*ret = (struct estimate){ .rate_bytes = (double)p->period };
	if (t.peak < 0 || !p->recording.is_known || !p->recording.peak_ns)
		return false;
	vec_each(&p->samples, s) {
		ret->samples += s->peak_samples;
		ret->bytes += (double)p->values.data[s->value_first + (size_t)t.peak];
		ret->bytes_variance += s->peak_bytes_variance;
		ret->objects += s->peak_objects;
	}
	return ret->bytes > 0;
}

/* Note what was in use at the end. 0 or -ENOMEM. */
static int leave_end(struct profile *p, const struct types *t, enum profile_at at, int64_t ns)
{
	struct estimate sum = { .rate_bytes = (double)p->period };
	const struct profile_sample *s;

	if (vec_reserve(&p->ends, p->samples.cnt))
		return -ENOMEM;
	vec_each(&p->samples, s) {
		struct estimate end = {
			.samples = s->inuse_samples,
			.bytes = (double)*value_of(p, s, t->space),
			.bytes_variance = s->inuse_bytes_variance,
			.objects = t->objects < 0 ? 0 : (double)*value_of(p, s, t->objects),
			.rate_bytes = (double)p->period,
		};

		p->ends.data[p->ends.cnt++] = end;
		estimate_merge(&sum, &end);
	}
	p->moment = (struct profile_moment){ .at = at, .ns = ns, .end = sum };
	p->ages.cnt = 0;
	return 0;
}

int profile_move_to_peak(struct profile *p)
{
	const struct types t = find_types(p);
	struct profile_sample *s;
	struct estimate peak;

	if (t.space < 0 || p->moment.at != PROFILE_AT_END || !profile_peak(p, &peak))
		return -ENODATA;
	if (leave_end(p, &t, PROFILE_AT_PEAK, p->recording.peak_ns))
		return -ENOMEM;
	vec_each(&p->samples, s) {
		*value_of(p, s, t.space) = *value_of(p, s, t.peak);
		if (t.objects >= 0)
			*value_of(p, s, t.objects) = profile_value(s->peak_objects);
		s->inuse_samples = s->peak_samples;
		s->inuse_bytes_variance = s->peak_bytes_variance;
		s->inuse_objects_variance = 0;
		s->age_cnt = 0;
	}
	return 0;
}

static size_t nearest_moment(const struct profile *p, int64_t ns)
{
	size_t best = 0;

	for (size_t i = 1; i < p->moments_ns.cnt; i++)
		if (llabs(p->moments_ns.data[i] - ns) < llabs(p->moments_ns.data[best] - ns))
			best = i;
	return best;
}

int profile_move_to_time(struct profile *p, int64_t ns)
{
	const struct types t = find_types(p);
	struct profile_sample *s;
	size_t at;

	if (t.space < 0 || p->moment.at != PROFILE_AT_END || !p->moments_ns.cnt)
		return -ENODATA;
	at = nearest_moment(p, ns);
	if (leave_end(p, &t, PROFILE_AT_TIME, p->moments_ns.data[at]))
		return -ENOMEM;
	vec_each(&p->samples, s) {
		struct estimate sum = { 0 };

		for (uint32_t i = 0; i < s->life_cnt; i++) {
			const struct history_life *life = &p->lives.data[s->life_first + i];

			if (life->first > at || life->last < at)
				continue;
			sum.samples += life->samples;
			sum.bytes += life->bytes;
			sum.bytes_variance += life->variance;
		}
		*value_of(p, s, t.space) = profile_value(sum.bytes);
		if (t.objects >= 0)
			*value_of(p, s, t.objects) = 0;
		s->inuse_samples = sum.samples;
		s->inuse_bytes_variance = sum.bytes_variance;
		s->inuse_objects_variance = 0;
		s->age_cnt = 0;
	}
	return 0;
}

void profile_drop_peak(struct profile *p)
{
	const struct types t = find_types(p);
	struct profile_sample *s;
	size_t to = 0;

	p->recording.peak_ns = 0;
	if (t.peak < 0)
		return;
	/* in the order of the samples, and never more than before */
	vec_each(&p->samples, s) {
		const int64_t *from = p->values.data + s->value_first;

		s->value_first = (uint32_t)to;
		for (size_t i = 0; i < p->types.cnt; i++)
			if (i != (size_t)t.peak)
				p->values.data[to++] = from[i];
		s->peak_samples = 0;
		s->peak_bytes_variance = s->peak_objects = 0;
	}
	p->values.cnt = to;
	p->types.cnt--;
	for (size_t i = (size_t)t.peak; i < p->types.cnt; i++)
		p->types.data[i] = p->types.data[i + 1];
}
