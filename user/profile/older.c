/* SPDX-License-Identifier: MIT */
/* older.c - see older.h. */
#include "profile/older.h"

#include <errno.h>
#include <math.h>

#include "profile/bins.h"
#include "profile/profile.h"

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
