/* SPDX-License-Identifier: MIT */
/*
 * pprof_read.c - a pprof file, heaptap's or anybody's, into a profile.
 *
 * Two steps: a walk over the wire format that finds where a damaged file breaks, and protobuf-c's
 * own unpacking of what has passed it. Ids of a foreign profile may be any numbers, in any order;
 * here they become indexes. A reference that leads nowhere is an error, not a guess.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hmap.h"
#include "format/gunzip.h"
#include "format/pprof.h"
#include "format/wire.h"
#include "model/profile.h"
#include "profile.pb-c.h"

typedef Perftools__Profiles__Profile pb_profile;

struct reader {
	const pb_profile *pb;
	struct profile *p;
	struct format_error *err;
	struct hmap mapping_by_id, function_by_id, location_by_id;
	int64_t *string_ids; /* index in the file -> id in p */
};

/* Does every field of the profile and of its messages end where it should? */
static int walk_wire(const uint8_t *data, size_t bytes, struct format_error *err)
{
	struct wire top = { .data = data, .bytes = bytes };
	struct wire_field f;
	bool has_types = false;
	int rc;

	while ((rc = wire_next(&top, &f, err)) > 0) {
		struct wire inner = { .data = f.data, .bytes = f.bytes, .base = f.data_offset };
		struct wire_field g;

		if (f.number > 15 || (f.number <= 6 && f.type != WIRE_BYTES))
			return format_fail(err, f.offset, "this is no pprof profile (field %u)",
					   f.number);
		has_types |= f.number == 1;
		while (f.number <= 5 && (rc = wire_next(&inner, &g, err)) > 0)
			;
		if (rc < 0)
			return rc;
	}
	if (rc)
		return rc;
	return has_types ? 0 : format_fail(err, bytes, "this is no pprof profile: no sample types");
}

static int bad_reference(struct reader *r, const char *what, uint64_t id)
{
	return format_fail(r->err, 0, "%s %llu is referred to and does not exist", what,
			 (unsigned long long)id);
}

static int read_strings(struct reader *r)
{
	r->string_ids = calloc(r->pb->n_string_table + 1, sizeof(*r->string_ids));
	if (!r->string_ids)
		return -ENOMEM;
	for (size_t i = 0; i < r->pb->n_string_table; i++) {
		r->string_ids[i] = profile_str(r->p, r->pb->string_table[i]);
		if (r->string_ids[i] < 0)
			return -ENOMEM;
	}
	return 0;
}

static int string_id(struct reader *r, int64_t idx, int64_t *ret)
{
	if (idx < 0 || (size_t)idx >= r->pb->n_string_table) {
		*ret = 0;
		return idx ? bad_reference(r, "string", idx) : 0;
	}
	*ret = r->string_ids[idx];
	return 0;
}

static int read_type(struct reader *r, const Perftools__Profiles__ValueType *from,
		     struct profile_type *ret)
{
	int err = string_id(r, from->type, &ret->type_str);

	return err ? err : string_id(r, from->unit, &ret->unit_str);
}

static int read_header(struct reader *r)
{
	const pb_profile *pb = r->pb;
	int err = string_id(r, pb->default_sample_type, &r->p->default_type_str);

	for (size_t i = 0; i < pb->n_sample_type && !err; i++) {
		struct profile_type type;

		err = read_type(r, pb->sample_type[i], &type);
		if (!err)
			err = vec_push(&r->p->types, type);
	}
	for (size_t i = 0; i < pb->n_comment && !err; i++) {
		int64_t id;

		err = string_id(r, pb->comment[i], &id);
		if (!err)
			err = vec_push(&r->p->comments, id);
	}
	if (!err && pb->period_type)
		err = read_type(r, pb->period_type, &r->p->period_type);
	r->p->period = pb->period;
	r->p->time_ns = pb->time_nanos;
	r->p->duration_ns = pb->duration_nanos;
	return err;
}

static int read_mappings(struct reader *r)
{
	for (size_t i = 0; i < r->pb->n_mapping; i++) {
		const Perftools__Profiles__Mapping *from = r->pb->mapping[i];
		struct profile_mapping m = {
			.start = from->memory_start,
			.limit = from->memory_limit,
			.offset = from->file_offset,
			.has_functions = from->has_functions,
			.has_filenames = from->has_filenames,
			.has_line_numbers = from->has_line_numbers,
			.has_inline_frames = from->has_inline_frames,
		};
		int err = string_id(r, from->filename, &m.filename_str);

		if (!err)
			err = string_id(r, from->build_id, &m.build_id_str);
		if (!err)
			err = vec_push(&r->p->mappings, m);
		if (!err)
			err = hmap_put(&r->mapping_by_id, &from->id, i);
		if (err)
			return err;
	}
	return 0;
}

static int read_functions(struct reader *r)
{
	for (size_t i = 0; i < r->pb->n_function; i++) {
		const Perftools__Profiles__Function *from = r->pb->function[i];
		struct profile_function f = { .start_line = from->start_line };
		int err = string_id(r, from->name, &f.name_str);

		if (!err)
			err = string_id(r, from->system_name, &f.system_name_str);
		if (!err)
			err = string_id(r, from->filename, &f.filename_str);
		if (!err)
			err = vec_push(&r->p->functions, f);
		if (!err)
			err = hmap_put(&r->function_by_id, &from->id, i);
		if (err)
			return err;
	}
	return 0;
}

static int read_location(struct reader *r, const Perftools__Profiles__Location *from)
{
	struct profile_location loc = { .mapping = HT_NO_INDEX, .address = from->address };
	const uint64_t *idx = hmap_get(&r->mapping_by_id, &from->mapping_id);

	if (from->mapping_id && !idx)
		return bad_reference(r, "mapping", from->mapping_id);
	if (idx)
		loc.mapping = *idx;
	loc.is_folded = from->is_folded;
	loc.line_first = r->p->lines.cnt;
	loc.line_cnt = from->n_line;
	for (size_t i = 0; i < from->n_line; i++) {
		struct profile_line line = { .line = from->line[i]->line };

		idx = hmap_get(&r->function_by_id, &from->line[i]->function_id);
		if (!idx)
			return bad_reference(r, "function", from->line[i]->function_id);
		line.function = *idx;
		if (vec_push(&r->p->lines, line))
			return -ENOMEM;
	}
	return vec_push(&r->p->locations, loc);
}

static int read_locations(struct reader *r)
{
	for (size_t i = 0; i < r->pb->n_location; i++) {
		int err = read_location(r, r->pb->location[i]);

		if (!err)
			err = hmap_put(&r->location_by_id, &r->pb->location[i]->id, i);
		if (err)
			return err;
	}
	return 0;
}

static int read_labels(struct reader *r, const Perftools__Profiles__Sample *from,
		       struct profile_label *labels)
{
	for (size_t i = 0; i < from->n_label; i++) {
		struct profile_label *l = &labels[i];
		int err = string_id(r, from->label[i]->key, &l->key_str);

		if (!err)
			err = string_id(r, from->label[i]->str, &l->str);
		if (!err)
			err = string_id(r, from->label[i]->num_unit, &l->num_unit_str);
		if (err)
			return err;
		l->num = from->label[i]->num;
	}
	return 0;
}

static int read_sample(struct reader *r, const Perftools__Profiles__Sample *from)
{
	struct profile_label *labels = calloc(from->n_label + 1, sizeof(*labels));
	uint32_t *locs = calloc(from->n_location_id + 1, sizeof(*locs));
	struct profile_sample *s;
	int err = labels && locs ? 0 : -ENOMEM;

	if (!err && from->n_value != r->p->types.cnt)
		err = format_fail(r->err, 0, "a sample has %zu values, the profile %zu sample types",
				from->n_value, r->p->types.cnt);
	for (size_t i = 0; i < from->n_location_id && !err; i++) {
		const uint64_t *idx = hmap_get(&r->location_by_id, &from->location_id[i]);

		if (idx)
			locs[i] = *idx;
		else
			err = bad_reference(r, "location", from->location_id[i]);
	}
	if (!err)
		err = read_labels(r, from, labels);
	if (!err)
		err = profile_add_sample(r->p, locs, from->n_location_id, from->value, labels,
					 from->n_label, &s);
	if (!err) {
		/* The file does not say "no error bars": rows without samples have none. */
		s->has_error = from->inuse_samples > 0;
		s->inuse_samples = from->inuse_samples;
		s->inuse_bytes_variance = from->inuse_bytes_variance;
		s->inuse_objects_variance = from->inuse_objects_variance;
	}
	free(labels);
	free(locs);
	return err;
}

static int convert(struct reader *r)
{
	int err = read_strings(r);

	if (!err)
		err = read_header(r);
	if (!err)
		err = read_mappings(r);
	if (!err)
		err = read_functions(r);
	if (!err)
		err = read_locations(r);
	for (size_t i = 0; i < r->pb->n_sample && !err; i++)
		err = read_sample(r, r->pb->sample[i]);
	return err;
}

static int read_plain(const uint8_t *data, size_t bytes, struct profile **ret,
		      struct format_error *err)
{
	struct reader r = { .err = err };
	pb_profile *pb;
	int rc = walk_wire(data, bytes, err);

	if (rc)
		return rc;
	pb = perftools__profiles__profile__unpack(NULL, bytes, data);
	if (!pb)
		return format_fail(err, 0, "this is no pprof profile, or memory ran out");
	r.pb = pb;
	hmap_init(&r.mapping_by_id, sizeof(uint64_t));
	hmap_init(&r.function_by_id, sizeof(uint64_t));
	hmap_init(&r.location_by_id, sizeof(uint64_t));
	rc = profile_new(&r.p);
	if (!rc)
		rc = convert(&r);
	if (!rc) {
		*ret = r.p;
		r.p = NULL;
	}
	profile_free(r.p);
	free(r.string_ids);
	hmap_release(&r.mapping_by_id);
	hmap_release(&r.function_by_id);
	hmap_release(&r.location_by_id);
	perftools__profiles__profile__free_unpacked(pb, NULL);
	return rc;
}

int pprof_read_mem(const void *data, size_t bytes, struct profile **ret, struct format_error *err)
{
	const uint8_t *plain;
	size_t plain_bytes;
	uint8_t *owned;
	int rc;

	memset(err, 0, sizeof(*err));
	rc = gunzip_mem(data, bytes, GUNZIP_BYTES_MAX, &owned, &plain, &plain_bytes, err);
	if (rc)
		return rc;
	rc = read_plain(plain, plain_bytes, ret, err);
	free(owned);
	return rc;
}

int pprof_read(int fd, struct profile **ret, struct format_error *err)
{
	size_t bytes;
	uint8_t *file;
	int rc;

	memset(err, 0, sizeof(*err));
	rc = gunzip_read_fd(fd, GUNZIP_BYTES_MAX, &file, &bytes, err);
	if (rc)
		return rc;
	rc = pprof_read_mem(file, bytes, ret, err);
	free(file);
	return rc;
}
