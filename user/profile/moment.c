/* SPDX-License-Identifier: MIT */
/* moment.c - see moment.h. */
#include "profile/moment.h"

#include "profile/bins.h"
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
	struct profile_sample *s;

	p->recording.peak_ns = 0;
	profile_drop_type(p, "peak_space");
	vec_each(&p->samples, s) {
		s->peak_samples = 0;
		s->peak_bytes_variance = s->peak_objects = 0;
	}
}

#define VALUE_MAX 0x1p62 /* a file may contain anything */

/* The sums of the parts of a sample that stay. */
static void keep_parts(const struct profile *p, struct profile_sample *s, uint32_t from,
		       double *ret_bytes, double *ret_objects)
{
	double bytes = 0, objects = 0, variance = 0, objects_variance = 0;
	uint64_t samples = 0;

	for (uint32_t i = 0; i < s->age_cnt; i++) {
		const struct age_part *part = &p->ages.data[s->age_first + i];

		if (part->age_class < from)
			continue;
		samples += part->samples;
		bytes += part->bytes;
		objects += part->objects;
		variance += part->bytes_variance;
		objects_variance += part->objects_variance;
	}
	s->inuse_samples = samples;
	s->inuse_bytes_variance = variance;
	s->inuse_objects_variance = objects_variance;
	s->alloc_samples = 0;
	s->alloc_bytes_variance = 0;
	s->alloc_bytes_beyond = 0;
	*ret_bytes = bytes;
	*ret_objects = objects;
}

/* Drop the younger parts of a sample, for a later reader of the ages. */
static void drop_parts(struct profile *p, struct profile_sample *s, uint32_t from)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < s->age_cnt; i++)
		if (p->ages.data[s->age_first + i].age_class >= from)
			p->ages.data[s->age_first + kept++] = p->ages.data[s->age_first + i];
	s->age_cnt = kept;
}

int profile_keep_older(struct profile *p, uint64_t bound_ns)
{
	int bytes_type = profile_find_type(p, "inuse_space");
	int objects_type = profile_find_type(p, "inuse_objects");
	uint32_t from = age_class_of(bound_ns);
	struct profile_type types[2];
	struct profile_sample *s;
	size_t kept = 0;

	if (!p->ages.cnt || bytes_type < 0 || objects_type < 0 || p->types.cnt < 2)
		return -ENODATA;
	types[0] = p->types.data[objects_type];
	types[1] = p->types.data[bytes_type];
	vec_each(&p->samples, s) {
		double bytes, objects;

		keep_parts(p, s, from, &bytes, &objects);
		drop_parts(p, s, from);
		if (!s->inuse_samples)
			continue;
		/* never more values than before, so they can move to the front */
		s->value_first = (uint32_t)kept * 2;
		p->values.data[kept * 2] = llround(fmin(objects, VALUE_MAX));
		p->values.data[kept * 2 + 1] = llround(fmin(bytes, VALUE_MAX));
		s->life_cnt = s->bin_cnt = 0;
		p->samples.data[kept++] = *s;
	}
	p->samples.cnt = kept;
	p->values.cnt = kept * 2;
	p->types.data[0] = types[0];
	p->types.data[1] = types[1];
	p->types.cnt = 2;
	p->default_type_str = types[1].type_str;
	p->moments_ns.cnt = p->lives.cnt = p->bins.cnt = p->scope_notes.cnt = 0;
	p->has_bins = false;
	return 0;
}
