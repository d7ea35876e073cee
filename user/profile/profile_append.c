/* SPDX-License-Identifier: MIT */
/* profile_append.c - see profile_append.h. */
#include "profile/profile_append.h"

#include <errno.h>
#include <stdlib.h>

#include "profile/profile.h"

struct append {
	struct profile *to;
	const struct profile *from;
	int64_t *strings; /* id of `from` -> id of `to`; -1: not known yet */
	uint32_t mapping_first, function_first, line_first, location_first; /* in `to` */
	VEC(int) types; /* of `to` -> of `from` or -1 */
	VEC(uint32_t) locs;
	VEC(int64_t) values;
	VEC(struct profile_label) labels;
};

/* false: no memory. */
static bool take_string(struct append *a, int64_t id, int64_t *ret)
{
	if (a->strings[id] < 0)
		a->strings[id] = profile_str(a->to, profile_text(a->from, id));
	*ret = a->strings[id];
	return *ret >= 0;
}

static int begin(struct append *a)
{
	size_t cnt = strset_cnt(a->from->strings);
	const struct profile_type *type;

	a->strings = malloc(cnt * sizeof(*a->strings));
	if (!a->strings)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++)
		a->strings[i] = -1;
	a->mapping_first = (uint32_t)a->to->mappings.cnt;
	a->function_first = (uint32_t)a->to->functions.cnt;
	a->line_first = (uint32_t)a->to->lines.cnt;
	a->location_first = (uint32_t)a->to->locations.cnt;
	vec_each(&a->to->types, type)
		if (vec_push(&a->types,
			     profile_find_type(a->from, profile_text(a->to, type->type_str))))
			return -ENOMEM;
	return 0;
}

static int append_tables(struct append *a)
{
	const struct profile_mapping *m;
	const struct profile_function *f;
	const struct profile_line *line;
	const struct profile_location *l;

	vec_each(&a->from->mappings, m) {
		struct profile_mapping copy = *m;

		if (!take_string(a, m->filename_str, &copy.filename_str) ||
		    !take_string(a, m->build_id_str, &copy.build_id_str) ||
		    vec_push(&a->to->mappings, copy))
			return -ENOMEM;
	}
	vec_each(&a->from->functions, f) {
		struct profile_function copy = *f;

		if (!take_string(a, f->name_str, &copy.name_str) ||
		    !take_string(a, f->system_name_str, &copy.system_name_str) ||
		    !take_string(a, f->filename_str, &copy.filename_str) ||
		    vec_push(&a->to->functions, copy))
			return -ENOMEM;
	}
	vec_each(&a->from->lines, line) {
		struct profile_line copy = *line;

		copy.function += a->function_first;
		if (vec_push(&a->to->lines, copy))
			return -ENOMEM;
	}
	vec_each(&a->from->locations, l) {
		struct profile_location copy = *l;

		copy.line_first += a->line_first;
		if (copy.mapping != HT_NO_INDEX)
			copy.mapping += a->mapping_first;
		if (vec_push(&a->to->locations, copy))
			return -ENOMEM;
	}
	return 0;
}

static int copy_labels(struct append *a, const struct profile_sample *s)
{
	a->labels.cnt = 0;
	for (uint32_t i = 0; i < s->label_cnt; i++) {
		struct profile_label l = a->from->labels.data[s->label_first + i];

		if (!take_string(a, l.key_str, &l.key_str) || !take_string(a, l.str, &l.str) ||
		    !take_string(a, l.num_unit_str, &l.num_unit_str) || vec_push(&a->labels, l))
			return -ENOMEM;
	}
	return 0;
}

/* value * sign. Somebody's file may have INT64_MIN, which has no opposite. */
static int64_t signed_value(int64_t value, int sign)
{
	return sign > 0 ? value : value == INT64_MIN ? INT64_MAX : -value;
}

static int append_sample(struct append *a, const struct profile_sample *s, int sign)
{
	const int64_t *values = a->from->values.data + s->value_first;
	struct profile_sample *copy;
	int err = copy_labels(a, s);

	a->locs.cnt = a->values.cnt = 0;
	for (uint32_t i = 0; i < s->loc_cnt && !err; i++)
		err = vec_push(&a->locs,
			       a->from->sample_locs.data[s->loc_first + i] + a->location_first);
	for (size_t i = 0; i < a->types.cnt && !err; i++) {
		int type = a->types.data[i];

		err = vec_push(&a->values, type < 0 ? 0 : signed_value(values[type], sign));
	}
	if (!err)
		err = profile_add_sample(a->to, a->locs.data, a->locs.cnt, a->values.data,
					 a->labels.data, a->labels.cnt, &copy);
	if (err || sign < 0)
		return err;
	copy->has_error = s->has_error;
	copy->inuse_samples = s->inuse_samples;
	copy->inuse_bytes_variance = s->inuse_bytes_variance;
	copy->inuse_objects_variance = s->inuse_objects_variance;
	copy->alloc_samples = s->alloc_samples;
	copy->alloc_bytes_variance = s->alloc_bytes_variance;
	copy->alloc_bytes_beyond = s->alloc_bytes_beyond;
	copy->peak_samples = s->peak_samples;
	copy->peak_bytes_variance = s->peak_bytes_variance;
	copy->peak_objects = s->peak_objects;
	return 0;
}

int profile_append(struct profile *to, const struct profile *from, const uint32_t *samples,
		   size_t cnt, int sign)
{
	struct append a = { .to = to, .from = from };
	int err = begin(&a);

	if (!err)
		err = append_tables(&a);
	for (size_t i = 0; i < cnt && !err; i++)
		err = append_sample(&a, &from->samples.data[samples[i]], sign);
	free(a.strings);
	vec_release(&a.types);
	vec_release(&a.locs);
	vec_release(&a.values);
	vec_release(&a.labels);
	return err;
}
