/* SPDX-License-Identifier: MIT */
/*
 * pprof_read.c - read a pprof file, heaptap's or another tool's, into a profile.
 *
 * The top level is walked field by field (wire.c), several times, because a profile's parts may come in any order:
 * strings first, then the parts that refer only to strings, then locations, then samples. Each part is unpacked by
 * itself through protobuf-c and freed again. So there is never a second copy of the whole profile (a file of empty
 * messages would unpack to fifty times its size), and every error names the offset of the part that is wrong.
 *
 * Accepts what any writer may produce: ids that are any numbers in any order, unknown fields. A reference that leads
 * nowhere is an error, not a guess. tests/lib/pprof_check.c is the strict reader.
 */

#include "base/err.h"
#include "base/hmap.h"
#include "base/printable.h"
#include "base/vec.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "profile/wire.h"
#include "profile.pb-c.h"

struct reader {
	struct profile *p;
	struct err *why;
	uint64_t offset; /* of the current part */
	VEC(int64_t) strings; /* index in the file -> id in p */
	struct hmap mapping_by_id, function_by_id, location_by_id; /* -> index in p */
	VEC(uint32_t) locs;
	VEC(struct profile_label) labels;
};

typedef int (*field_fn)(struct reader *r, const struct wire_field *f);

#define fail(r, ...) format_fail((r)->why, (r)->offset, __VA_ARGS__)

static int get_string(struct reader *r, int64_t index, int64_t *ret)
{
	if (index >= 0 && (uint64_t)index < r->strings.cnt)
		*ret = r->strings.data[index];
	else if (!index) /* proto3's default, in a file without strings */
		*ret = 0;
	else
		return fail(r, "string %lld is referred to, but there are %zu", (long long)index,
			    r->strings.cnt);
	return 0;
}

static int read_string(struct reader *r, const struct wire_field *f)
{
	int64_t id;

	if (f->number != FIELD_STRING)
		return 0;
	if (f->type != WIRE_BYTES)
		return fail(r, "this is no pprof profile: a number where a string belongs");
	id = strset_add_n(r->p->strings, (const char *)f->data, f->bytes);
	return id < 0 ? (int)id : vec_push(&r->strings, id);
}

static int get_strings(struct reader *r, const int64_t *index, size_t cnt,
		       struct profile_texts *ret)
{
	int err = 0;

	for (size_t i = 0; i < cnt && !err; i++) {
		int64_t id = 0;

		err = get_string(r, index[i], &id);
		if (!err)
			err = vec_push(ret, id);
	}
	return err;
}

static int convert_type(struct reader *r, const Perftools__Profiles__ValueType *m,
			struct profile_type *ret)
{
	int err = get_string(r, m->type, &ret->type_str);

	return err ? err : get_string(r, m->unit, &ret->unit_str);
}

static int read_sample_type(struct reader *r, const struct wire_field *f)
{
	Perftools__Profiles__ValueType *m =
		perftools__profiles__value_type__unpack(NULL, f->bytes, f->data);
	struct profile_type type;
	int err;

	if (!m)
		return fail(r, "a damaged sample type");
	err = convert_type(r, m, &type);
	if (!err)
		err = vec_push(&r->p->types, type);
	perftools__profiles__value_type__free_unpacked(m, NULL);
	return err;
}

/* A share or a limit from somebody else's file: NAN, or >= 0. */
static double sound_share(double share)
{
	return isfinite(share) && share >= 0 ? share : NAN;
}

/* The same; 0: not known, in older files. */
static double sound_price(double one_cpu)
{
	return one_cpu > 0 ? sound_share(one_cpu) : NAN;
}

static double sound_limit(double limit)
{
	return isfinite(limit) && limit >= 0 ? limit : 0;
}

static int64_t sound_time(int64_t ns)
{
	return ns > 0 ? ns : 0;
}

/* Moments out of order are dropped: no history. */
static int read_moments(struct reader *r, const Perftools__Profiles__Recording *m)
{
	int err = 0;

	for (size_t i = 0; i < m->n_moment_ns; i++)
		if (m->moment_ns[i] < 0 || (i && m->moment_ns[i] < m->moment_ns[i - 1]))
			return 0;
	r->p->moments_ns.cnt = 0;
	r->p->is_history_partial = m->is_history_partial;
	for (size_t i = 0; i < m->n_moment_ns && !err; i++)
		err = vec_push(&r->p->moments_ns, m->moment_ns[i]);
	return err;
}

static int read_look(struct reader *r, const Perftools__Profiles__ResidentLook *m,
		     struct resident_look *ret)
{
	*ret = (struct resident_look){
		.is_known = m->is_known,
		.is_proved = m->is_proved,
		.rss_bytes = m->rss_bytes,
		.took_ns = m->took_ns,
		.is_counted = m->is_counted,
		.live_cnt = m->live_blocks,
		.live_bytes = m->live_bytes,
		.mmapped_cnt = m->mmapped_blocks,
		.hit_cnt = m->hit_cnt,
		.late_hit_cnt = m->late_hit_cnt,
		.coarsest_rate_bytes = m->coarsest_rate_bytes,
		.age_ns = m->age_ns,
	};
	return get_string(r, m->why, &ret->why_str);
}

static bool is_sound_row(const Perftools__Profiles__ResidentRow *m)
{
	return m->kind < RESIDENT_KIND_CNT && m->begin_bytes <= RESIDENT_BYTES_CAP &&
	       m->begin_bytes >= -RESIDENT_BYTES_CAP && m->end_bytes <= RESIDENT_BYTES_CAP &&
	       m->end_bytes >= -RESIDENT_BYTES_CAP;
}

static int read_classes(struct reader *r, Perftools__Profiles__ResidentClass *const *list,
			size_t cnt, bool is_span)
{
	int err = 0;

	if (cnt > RESIDENT_CLASS_CAP)
		return 0;
	for (size_t i = 0; i < cnt && !err; i++) {
		const Perftools__Profiles__ResidentClass *from = list[i];
		struct resident_class c = { .from_bytes = from->from_bytes,
					    .to_bytes = from->to_bytes,
					    .live_cnt = from->live_blocks,
					    .live_bytes = from->live_bytes,
					    .recorded = { from->recorded_blocks,
							  from->recorded_variance },
					    .is_span = is_span };

		err = get_string(r, from->name, &c.name_str);
		if (!err)
			err = vec_push(&r->p->resident.classes, c);
	}
	return err;
}

/* A row that is not understood comes from a later version: then none is. */
static int read_resident(struct reader *r, const Perftools__Profiles__Recording *m)
{
	struct resident_rows *to = &r->p->resident;
	int err;

	to->list.cnt = to->classes.cnt = 0;
	to->is_asked = false;
	if (!m->resident_begin || !m->resident_end || m->n_resident_row > 2 * RESIDENT_ROW_CAP)
		return 0;
	for (size_t i = 0; i < m->n_resident_row; i++)
		if (!is_sound_row(m->resident_row[i]))
			return 0;
	err = read_look(r, m->resident_begin, &to->begin);
	if (!err)
		err = read_look(r, m->resident_end, &to->end);
	for (size_t i = 0; i < m->n_resident_row && !err; i++) {
		const Perftools__Profiles__ResidentRow *from = m->resident_row[i];
		struct resident_row row = { .kind = (enum resident_kind)from->kind,
					    .begin_bytes = from->begin_bytes,
					    .end_bytes = from->end_bytes };

		err = get_string(r, from->name, &row.name_str);
		if (!err)
			err = get_string(r, from->label, &row.label_str);
		if (!err)
			err = vec_push(&to->list, row);
	}
	if (!err)
		err = read_classes(r, m->resident_class, m->n_resident_class, false);
	if (!err)
		err = read_classes(r, m->resident_span, m->n_resident_span, true);
	to->is_asked = !err;
	return err;
}

static int read_recording(struct reader *r, const Perftools__Profiles__Recording *m)
{
	struct recording *to = &r->p->recording;
	int err;

	if (m->inuse > RECORDING_INUSE_UNKNOWN)
		return 0; /* from a later heaptap: the meaning of its numbers is not known here */
	*to = (struct recording){
		.is_known = true,
		.pid = m->pid > 0 && m->pid <= INT32_MAX ? (int32_t)m->pid : 0,
		.process_cnt = m->process_cnt,
		.is_from_start = m->is_from_start,
		.begin_ns = sound_time(m->begin_ns),
		.end_ns = sound_time(m->end_ns),
		.duration_ns = sound_time(m->duration_ns),
		.overhead_share = sound_share(m->overhead_share),
		.full_share = sound_share(m->full_share),
		.overhead_one_cpu = sound_price(m->overhead_one_cpu),
		.full_one_cpu = sound_price(m->full_one_cpu),
		.limit = { sound_limit(m->limit_cpu_share), sound_limit(m->limit_one_cpu) },
		.inuse = (enum recording_inuse)m->inuse,
		.inuse_since_ns = sound_time(m->inuse_since_ns),
		.watched_ns = sound_time(m->watched_ns),
		.is_lossy = m->is_lossy,
		.has_nameless_frees = m->has_nameless_frees,
		.has_no_tap = m->has_no_tap,
		.follows_children = m->follows_children,
		.rss_begin_bytes = m->rss_begin_bytes,
		.rss_end_bytes = m->rss_end_bytes,
		.rss_file_growth_bytes = m->rss_file_growth_bytes,
		.exec_held_bytes = m->exec_held_bytes,
		.exec_held_objects = m->exec_held_objects,
		.has_ended = m->has_ended,
		.peak_ns = sound_time(m->peak_ns),
		.unrecorded_cnt = m->unrecorded_cnt,
	};
	snprintf(to->program, sizeof(to->program), "%s", m->program);
	make_printable(to->program);
	r->p->has_bins = m->has_bins;
	err = read_moments(r, m);
	if (!err)
		err = read_resident(r, m);
	if (!err)
		err = get_string(r, m->comm, &to->comm_str);
	if (!err)
		err = get_string(r, m->exe, &to->exe_str);
	if (!err)
		err = get_string(r, m->called, &to->called_str);
	return err ? err : get_string(r, m->reason, &to->reason_str);
}

/* A note that is not understood comes from another program, or a later version. */
static int read_scope_notes(struct reader *r, const Perftools__Profiles__ValueType *m)
{
	int err = 0;

	for (size_t i = 0; i < m->n_note && !err; i++) {
		struct scope_note note;
		const char *path;
		int64_t str = 0;

		err = get_string(r, m->note[i], &str);
		if (!err && scope_note_parse(profile_text(r->p, str), &note, &path))
			err = profile_add_scope_note(r->p, &note, path);
	}
	return err;
}

/* Unpack a field that is no table: such fields are small, so each is unpacked as a profile that has only this field. */
static int read_scalar(struct reader *r, const struct wire_field *f, const uint8_t *tag,
		       size_t bytes)
{
	Perftools__Profiles__Profile *m = perftools__profiles__profile__unpack(NULL, bytes, tag);
	int err = 0;

	if (!m)
		return fail(r, "field %u is damaged", f->number);
	if (m->time_nanos)
		r->p->time_ns = m->time_nanos;
	if (m->duration_nanos)
		r->p->duration_ns = m->duration_nanos;
	if (m->period)
		r->p->period = m->period;
	if (m->period_type)
		err = convert_type(r, m->period_type, &r->p->period_type);
	if (!err && m->period_type)
		err = read_scope_notes(r, m->period_type);
	if (!err && m->period_type && m->period_type->recording)
		err = read_recording(r, m->period_type->recording);
	if (!err && m->default_sample_type)
		err = get_string(r, m->default_sample_type, &r->p->default_type_str);
	if (!err)
		err = get_strings(r, m->comment, m->n_comment, &r->p->comments);
	perftools__profiles__profile__free_unpacked(m, NULL);
	return err;
}

/* Note the index of the part with this id. */
static int put_id(struct reader *r, struct hmap *map, uint64_t id, size_t index, const char *what)
{
	if (!id)
		return fail(r, "a %s without an id", what);
	if (hmap_get(map, &id))
		return fail(r, "two %ss have the id %llu", what, (unsigned long long)id);
	if (index >= HT_NO_INDEX)
		return fail(r, "too many %ss", what);
	return hmap_put(map, &id, index);
}

static int get_id(struct reader *r, const struct hmap *map, uint64_t id, const char *what,
		  uint32_t *ret)
{
	const uint64_t *index = hmap_get(map, &id);

	if (!index)
		return fail(r, "%s %llu is referred to and does not exist", what,
			    (unsigned long long)id);
	*ret = *index;
	return 0;
}

static int read_mapping(struct reader *r, const struct wire_field *f)
{
	Perftools__Profiles__Mapping *m =
		perftools__profiles__mapping__unpack(NULL, f->bytes, f->data);
	struct profile_mapping to = { 0 };
	int err;

	if (!m)
		return fail(r, "a damaged mapping");
	to.start = m->memory_start;
	to.limit = m->memory_limit;
	to.offset = m->file_offset;
	to.has_functions = m->has_functions;
	to.has_filenames = m->has_filenames;
	to.has_line_numbers = m->has_line_numbers;
	to.has_inline_frames = m->has_inline_frames;
	err = get_string(r, m->filename, &to.filename_str);
	if (!err)
		err = get_string(r, m->build_id, &to.build_id_str);
	if (!err)
		err = put_id(r, &r->mapping_by_id, m->id, r->p->mappings.cnt, "mapping");
	if (!err)
		err = vec_push(&r->p->mappings, to);
	perftools__profiles__mapping__free_unpacked(m, NULL);
	return err;
}

static int read_function(struct reader *r, const struct wire_field *f)
{
	Perftools__Profiles__Function *m =
		perftools__profiles__function__unpack(NULL, f->bytes, f->data);
	struct profile_function to = { 0 };
	int err;

	if (!m)
		return fail(r, "a damaged function");
	to.start_line = m->start_line;
	err = get_string(r, m->name, &to.name_str);
	if (!err)
		err = get_string(r, m->system_name, &to.system_name_str);
	if (!err)
		err = get_string(r, m->filename, &to.filename_str);
	if (!err)
		err = put_id(r, &r->function_by_id, m->id, r->p->functions.cnt, "function");
	if (!err)
		err = vec_push(&r->p->functions, to);
	perftools__profiles__function__free_unpacked(m, NULL);
	return err;
}

/* Read a part that refers to strings only. */
static int read_simple(struct reader *r, const struct wire_field *f)
{
	uint8_t packed[16];
	size_t n = 0;

	if ((f->number <= FIELD_FUNCTION || f->number == FIELD_PERIOD_TYPE) &&
	    f->type != WIRE_BYTES)
		return fail(r, "this is no pprof profile: field %u has the wrong type", f->number);
	switch (f->number) {
	case FIELD_SAMPLE_TYPE:
		return read_sample_type(r, f);
	case FIELD_MAPPING:
		return read_mapping(r, f);
	case FIELD_FUNCTION:
		return read_function(r, f);
	case FIELD_SAMPLE:
	case FIELD_LOCATION:
	case FIELD_STRING:
		return 0;
	}
	if (f->number > 15)
		return 0; /* of a later version of the format */
	if (f->type == WIRE_BYTES) /* from the tag to the end of the field */
		return read_scalar(r, f, f->data - (f->data_offset - f->offset),
				   f->bytes + (f->data_offset - f->offset));
	packed[n++] = f->number << 3;
	for (uint64_t v = f->value; n < sizeof(packed); v >>= 7) {
		packed[n++] = v >= 0x80 ? (v & 0x7f) | 0x80 : v;
		if (v < 0x80)
			break;
	}
	return f->type == WIRE_VARINT ? read_scalar(r, f, packed, n) :
					fail(r, "field %u has the wrong type", f->number);
}

static int add_lines(struct reader *r, const Perftools__Profiles__Location *m)
{
	for (size_t i = 0; i < m->n_line; i++) {
		struct profile_line line = { .line = m->line[i]->line };
		int err = get_id(r, &r->function_by_id, m->line[i]->function_id, "function",
				 &line.function);

		if (!err)
			err = vec_push(&r->p->lines, line);
		if (err)
			return err;
	}
	return 0;
}

static int read_location(struct reader *r, const struct wire_field *f)
{
	struct profile_location to = { .mapping = HT_NO_INDEX, .line_first = r->p->lines.cnt };
	Perftools__Profiles__Location *m;
	int err = 0;

	if (f->number != FIELD_LOCATION)
		return 0;
	m = perftools__profiles__location__unpack(NULL, f->bytes, f->data);
	if (!m)
		return fail(r, "a damaged location");
	to.address = m->address;
	to.is_folded = m->is_folded;
	to.line_cnt = m->n_line;
	if (m->mapping_id)
		err = get_id(r, &r->mapping_by_id, m->mapping_id, "mapping", &to.mapping);
	if (!err)
		err = add_lines(r, m);
	if (!err)
		err = put_id(r, &r->location_by_id, m->id, r->p->locations.cnt, "location");
	if (!err)
		err = vec_push(&r->p->locations, to);
	perftools__profiles__location__free_unpacked(m, NULL);
	return err;
}

static int get_labels(struct reader *r, const Perftools__Profiles__Sample *m)
{
	r->labels.cnt = 0;
	for (size_t i = 0; i < m->n_label; i++) {
		const Perftools__Profiles__Label *from = m->label[i];
		struct profile_label to = { .num = from->num };
		int err = get_string(r, from->key, &to.key_str);

		if (!err)
			err = get_string(r, from->str, &to.str);
		if (!err)
			err = get_string(r, from->num_unit, &to.num_unit_str);
		if (!err)
			err = vec_push(&r->labels, to);
		if (err)
			return err;
	}
	return 0;
}

/* Anything that is no variance (negative, infinite, not a number) counts as none. */
static double sound_variance(double v)
{
	return v >= 0 && v <= 1e300 ? v : 0;
}

/* Add the lives whose moments exist. */
static int add_lives(struct reader *r, const Perftools__Profiles__ErrorBar *m)
{
	int err = 0;

	for (size_t i = 0; i < m->n_life && !err; i++) {
		const Perftools__Profiles__Life *from = m->life[i];
		const struct history_life life = { from->first, from->last, from->samples,
						   sound_variance(from->bytes),
						   sound_variance(from->variance) };

		if (life.first <= life.last && life.last < r->p->moments_ns.cnt)
			err = profile_add_lives(r->p, &life, 1);
	}
	return err;
}

static int add_ages(struct reader *r, const Perftools__Profiles__ErrorBar *m)
{
	int err = 0;

	for (size_t i = 0; i < m->n_age && !err; i++) {
		const Perftools__Profiles__Age *from = m->age[i];
		const struct age_part part = {
			age_class_of(from->at_least_ns), from->samples,
			sound_variance(from->bytes),	 sound_variance(from->bytes_variance),
			sound_variance(from->objects),	 sound_variance(from->objects_variance)
		};

		err = profile_add_age(r->p, &part);
	}
	r->p->samples.data[r->p->samples.cnt - 1].oldest_ns = m->oldest_ns;
	return err;
}

static int add_bins(struct reader *r, Perftools__Profiles__Bin *const *from, size_t cnt,
		    uint32_t (*bin_of)(uint64_t))
{
	int err = 0;

	for (size_t i = 0; i < cnt && !err; i++) {
		const struct bin_part part = { bin_of(from[i]->at_least), from[i]->samples,
					       sound_variance(from[i]->objects),
					       sound_variance(from[i]->bytes),
					       sound_variance(from[i]->bytes_variance) };

		err = profile_add_bin(r->p, &part);
	}
	return err;
}

static int add_sample(struct reader *r, const Perftools__Profiles__Sample *m)
{
	struct profile_sample *s;
	int err;

	if (m->n_value != r->p->types.cnt)
		return fail(r, "a sample has %zu values, the profile %zu sample types", m->n_value,
			    r->p->types.cnt);
	r->locs.cnt = 0;
	for (size_t i = 0; i < m->n_location_id; i++) {
		uint32_t index = 0;

		err = get_id(r, &r->location_by_id, m->location_id[i], "location", &index);
		if (!err)
			err = vec_push(&r->locs, index);
		if (err)
			return err;
	}
	err = get_labels(r, m);
	if (!err)
		err = profile_add_sample(r->p, r->locs.data, r->locs.cnt, m->value, r->labels.data,
					 r->labels.cnt, &s);
	if (err)
		return err;
	s->has_error = m->error_bar != NULL;
	if (s->has_error) {
		s->inuse_samples = m->error_bar->inuse_samples;
		s->inuse_bytes_variance = sound_variance(m->error_bar->inuse_bytes_variance);
		s->inuse_objects_variance = sound_variance(m->error_bar->inuse_objects_variance);
		s->alloc_samples = m->error_bar->alloc_samples;
		s->alloc_bytes_variance = sound_variance(m->error_bar->alloc_bytes_variance);
		s->alloc_bytes_beyond = sound_variance(m->error_bar->alloc_bytes_beyond);
		s->peak_samples = m->error_bar->peak_samples;
		s->peak_bytes_variance = sound_variance(m->error_bar->peak_bytes_variance);
		s->peak_objects = sound_variance(m->error_bar->peak_objects);
		s->pinned_bytes_variance = sound_variance(m->error_bar->pinned_bytes_variance);
		s->freed_objects = sound_variance(m->error_bar->freed_objects);
		s->freed_bytes = sound_variance(m->error_bar->freed_bytes);
		err = add_lives(r, m->error_bar);
		if (!err)
			err = add_ages(r, m->error_bar);
		if (!err)
			err = add_bins(r, m->error_bar->size, m->error_bar->n_size, bin_of_size);
		if (!err)
			err = add_bins(r, m->error_bar->lifetime, m->error_bar->n_lifetime,
				       bin_of_life);
	}
	return err;
}

static int read_sample(struct reader *r, const struct wire_field *f)
{
	Perftools__Profiles__Sample *m;
	int err;

	if (f->number != FIELD_SAMPLE)
		return 0;
	m = perftools__profiles__sample__unpack(NULL, f->bytes, f->data);
	if (!m)
		return fail(r, "a damaged sample");
	err = add_sample(r, m);
	perftools__profiles__sample__free_unpacked(m, NULL);
	return err;
}

static int each_field(struct reader *r, const uint8_t *data, size_t bytes, field_fn fn)
{
	struct wire w = { .data = data, .bytes = bytes };
	struct wire_field f;
	int rc;

	while ((rc = wire_next(&w, &f, r->why)) > 0) {
		r->offset = f.offset;
		rc = fn(r, &f);
		if (rc)
			return rc;
	}
	return rc;
}

static int read_plain(struct reader *r, const uint8_t *data, size_t bytes)
{
	static const field_fn passes[] = { read_string, read_simple, read_location, read_sample };

	for (size_t i = 0; i < sizeof(passes) / sizeof(*passes); i++) {
		int err = each_field(r, data, bytes, passes[i]);

		if (err)
			return err;
	}
	r->offset = bytes;
	return r->p->types.cnt ? 0 : fail(r, "this is no pprof profile: no sample types");
}

int pprof_read_mem(const void *data, size_t bytes, struct profile **ret, struct err *why)
{
	struct reader r = { .why = why };
	uint8_t *owned = NULL;
	const uint8_t *plain;
	size_t plain_bytes;
	int rc;

	if (why)
		*why = (struct err){ 0 };
	rc = gunzip_mem(data, bytes, GUNZIP_BYTES_MAX, &owned, &plain, &plain_bytes, why);
	if (rc)
		return rc;
	if (import_is_text(plain, plain_bytes)) {
		rc = import_text(plain, plain_bytes, ret, why);
		free(owned);
		return rc;
	}
	hmap_init(&r.mapping_by_id, sizeof(uint64_t));
	hmap_init(&r.function_by_id, sizeof(uint64_t));
	hmap_init(&r.location_by_id, sizeof(uint64_t));
	rc = profile_new(&r.p);
	if (!rc)
		rc = read_plain(&r, plain, plain_bytes);
	if (!rc) {
		*ret = r.p;
		r.p = NULL;
	}
	profile_free(r.p);
	hmap_release(&r.mapping_by_id);
	hmap_release(&r.function_by_id);
	hmap_release(&r.location_by_id);
	vec_release(&r.strings);
	vec_release(&r.locs);
	vec_release(&r.labels);
	free(owned);
	return rc;
}

int pprof_read(int fd, struct profile **ret, struct err *why)
{
	size_t bytes;
	uint8_t *file;
	int rc;

	if (why)
		*why = (struct err){ 0 };
	rc = gunzip_read_fd(fd, GUNZIP_BYTES_MAX, &file, &bytes, why);
	if (rc)
		return rc;
	rc = pprof_read_mem(file, bytes, ret, why);
	free(file);
	return rc;
}
