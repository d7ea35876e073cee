/* SPDX-License-Identifier: MIT */
/* profile.c - see profile.h. */
#include "profile/profile.h"

int64_t profile_value(double sum)
{
	if (isnan(sum))
		return 0;
	if (sum >= PROFILE_VALUE_MAX)
		return INT64_MAX;
	return sum <= -PROFILE_VALUE_MAX ? INT64_MIN : llround(sum);
}

int profile_new(struct profile **ret)
{
	struct profile *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	err = strset_new(&p->strings);
	if (err) {
		free(p);
		return err;
	}
	p->recording = RECORDING_NONE;
	*ret = p;
	return 0;
}

void profile_free(struct profile *p)
{
	if (!p)
		return;
	strset_free(p->strings);
	vec_release(&p->types);
	vec_release(&p->mappings);
	vec_release(&p->functions);
	vec_release(&p->lines);
	vec_release(&p->locations);
	vec_release(&p->sample_locs);
	vec_release(&p->values);
	vec_release(&p->labels);
	vec_release(&p->samples);
	vec_release(&p->moments_ns);
	vec_release(&p->lives);
	vec_release(&p->ages);
	vec_release(&p->bins);
	vec_release(&p->ends);
	vec_release(&p->comments);
	vec_release(&p->scope_notes);
	vec_release(&p->resident.list);
	vec_release(&p->resident.classes);
	free(p);
}

int64_t profile_str(struct profile *p, const char *str)
{
	return strset_add(p->strings, str);
}

const char *profile_text(const struct profile *p, int64_t id)
{
	return strset_get(p->strings, id);
}

int profile_comment(struct profile *p, const char *fmt, ...)
{
	va_list args;
	char *text;
	int64_t id;
	int len;

	va_start(args, fmt);
	len = vasprintf(&text, fmt, args);
	va_end(args);
	if (len < 0)
		return -ENOMEM;
	id = profile_str(p, text);
	free(text);
	return id < 0 ? (int)id : vec_push(&p->comments, id);
}

int profile_add_scope_note(struct profile *p, const struct scope_note *note, const char *path)
{
	struct scope_note n = *note;

	n.path_str = profile_str(p, path);
	return n.path_str < 0 ? (int)n.path_str : vec_push(&p->scope_notes, n);
}

int profile_set_heap_types(struct profile *p, uint64_t rate_bytes)
{
	static const char *const names[PROFILE_VALUE_CNT][2] = {
		[PROFILE_ALLOC_OBJECTS] = { "alloc_objects", "count" },
		[PROFILE_ALLOC_SPACE] = { "alloc_space", "bytes" },
		[PROFILE_INUSE_OBJECTS] = { "inuse_objects", "count" },
		[PROFILE_INUSE_SPACE] = { "inuse_space", "bytes" },
	};

	p->types.cnt = 0;
	for (size_t i = 0; i < PROFILE_VALUE_CNT; i++) {
		struct profile_type type = { profile_str(p, names[i][0]),
					     profile_str(p, names[i][1]) };

		if (type.type_str < 0 || type.unit_str < 0 || vec_push(&p->types, type))
			return -ENOMEM;
	}
	p->default_type_str = p->types.data[PROFILE_INUSE_SPACE].type_str;
	p->period_type.type_str = profile_str(p, "space");
	p->period_type.unit_str = profile_str(p, "bytes");
	p->period = rate_bytes;
	return p->period_type.type_str < 0 || p->period_type.unit_str < 0 ? -ENOMEM : 0;
}

int profile_add_type(struct profile *p, const char *name)
{
	struct profile_type type = { profile_str(p, name), profile_str(p, "bytes") };

	return type.type_str < 0 || type.unit_str < 0 ? -ENOMEM : vec_push(&p->types, type);
}

void profile_drop_type(struct profile *p, const char *name)
{
	int type = profile_find_type(p, name);
	struct profile_sample *s;
	size_t to = 0;

	if (type < 0)
		return;
	/* in the order of the samples, and never more than before */
	vec_each(&p->samples, s) {
		const int64_t *from = p->values.data + s->value_first;

		s->value_first = (uint32_t)to;
		for (size_t i = 0; i < p->types.cnt; i++)
			if (i != (size_t)type)
				p->values.data[to++] = from[i];
	}
	p->values.cnt = to;
	p->types.cnt--;
	for (size_t i = (size_t)type; i < p->types.cnt; i++)
		p->types.data[i] = p->types.data[i + 1];
}

int profile_find_type(const struct profile *p, const char *name)
{
	for (size_t i = 0; i < p->types.cnt; i++)
		if (!strcmp(profile_text(p, p->types.data[i].type_str), name))
			return i;
	return -ENOENT;
}

int profile_add_sample(struct profile *p, const uint32_t *locs, size_t loc_cnt,
		       const int64_t *values, const struct profile_label *labels, size_t label_cnt,
		       struct profile_sample **ret)
{
	struct profile_sample s = {
		.loc_first = p->sample_locs.cnt,
		.loc_cnt = loc_cnt,
		.value_first = p->values.cnt,
		.label_first = p->labels.cnt,
		.label_cnt = label_cnt,
	};

	/* Reserve all room first: a failure must not leave half a sample. */
	if (vec_reserve(&p->sample_locs, p->sample_locs.cnt + loc_cnt) ||
	    vec_reserve(&p->values, p->values.cnt + p->types.cnt) ||
	    vec_reserve(&p->labels, p->labels.cnt + label_cnt) ||
	    vec_reserve(&p->samples, p->samples.cnt + 1))
		return -ENOMEM;
	if (loc_cnt)
		memcpy(p->sample_locs.data + p->sample_locs.cnt, locs, loc_cnt * sizeof(*locs));
	p->sample_locs.cnt += loc_cnt;
	if (p->types.cnt)
		memcpy(p->values.data + p->values.cnt, values, p->types.cnt * sizeof(*values));
	p->values.cnt += p->types.cnt;
	if (label_cnt)
		memcpy(p->labels.data + p->labels.cnt, labels, label_cnt * sizeof(*labels));
	p->labels.cnt += label_cnt;
	p->samples.data[p->samples.cnt++] = s;
	if (ret)
		*ret = &p->samples.data[p->samples.cnt - 1];
	return 0;
}

int profile_add_lives(struct profile *p, const struct history_life *lives, size_t cnt)
{
	struct profile_sample *s = &p->samples.data[p->samples.cnt - 1];

	if (!cnt)
		return 0;
	if (vec_reserve(&p->lives, p->lives.cnt + cnt))
		return -ENOMEM;
	if (!s->life_cnt)
		s->life_first = (uint32_t)p->lives.cnt;
	memcpy(p->lives.data + p->lives.cnt, lives, cnt * sizeof(*lives));
	p->lives.cnt += cnt;
	s->life_cnt += (uint32_t)cnt;
	return 0;
}

int profile_add_age(struct profile *p, const struct age_part *part)
{
	struct profile_sample *s = &p->samples.data[p->samples.cnt - 1];
	int err = vec_push(&p->ages, *part);

	if (err)
		return err;
	if (!s->age_cnt++)
		s->age_first = (uint32_t)p->ages.cnt - 1;
	return 0;
}

int profile_add_bin(struct profile *p, const struct bin_part *part)
{
	struct profile_sample *s = &p->samples.data[p->samples.cnt - 1];
	int err = vec_push(&p->bins, *part);

	if (err)
		return err;
	if (!s->bin_cnt++)
		s->bin_first = (uint32_t)p->bins.cnt - 1;
	return 0;
}

const struct profile_label *profile_find_label(const struct profile *p,
					       const struct profile_sample *s, const char *key)
{
	for (uint32_t i = 0; i < s->label_cnt; i++) {
		const struct profile_label *l = &p->labels.data[s->label_first + i];

		if (!strcmp(profile_text(p, l->key_str), key))
			return l;
	}
	return NULL;
}

const char *profile_sample_label(const struct profile *p, const struct profile_sample *s,
				 const char *key)
{
	const struct profile_label *l = profile_find_label(p, s, key);

	return l && l->str ? profile_text(p, l->str) : NULL;
}
