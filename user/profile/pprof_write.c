/* SPDX-License-Identifier: MIT */
/*
 * pprof_write.c - a profile as gzip-compressed profile.proto.
 *
 * A repeated field of a message is stored as its elements one after the other, each with the field's tag and its
 * length. So each element is packed by itself through protobuf-c and goes straight into zlib: there is never a second
 * copy of the whole profile.
 *
 * Ids run from 1 in table order: id = index + 1 for mappings, locations and functions. A string id is its index, and
 * string 0 is "".
 */
#include <zlib.h>

#include "base/vec.h"
#include "base/fd.h"
#include "profile/pprof.h"
#include "profile/wire.h"
#include "profile/profile.h"
#include "profile.pb-c.h"

#define WINDOW_BITS_GZIP (15 + 16)
#define OUT_BYTES 65536

struct writer {
	int fd;
	bool is_counting; /* count only: compress and write nothing */
	uint64_t bytes; /* before compression */
	z_stream z;
	uint8_t out[OUT_BYTES];
	VEC(uint8_t) packed; /* one element */
	VEC(uint64_t) ids;
	VEC(int64_t) note_strs;
	VEC(Perftools__Profiles__Line) lines;
	VEC(Perftools__Profiles__Line *) line_ptrs;
	VEC(Perftools__Profiles__Label) labels;
	VEC(Perftools__Profiles__Label *) label_ptrs;
	VEC(Perftools__Profiles__Life) lives;
	VEC(Perftools__Profiles__Life *) life_ptrs;
	VEC(Perftools__Profiles__Age) ages;
	VEC(Perftools__Profiles__Age *) age_ptrs;
	VEC(Perftools__Profiles__Bin) bins;
	VEC(Perftools__Profiles__Bin *) bin_ptrs;
};

static int compress_bytes(struct writer *w, const void *p, size_t n, int flush)
{
	int rc, err;

	w->bytes += n;
	if (w->is_counting)
		return 0;
	w->z.next_in = (Bytef *)p;
	w->z.avail_in = n;
	do {
		w->z.next_out = w->out;
		w->z.avail_out = OUT_BYTES;
		rc = deflate(&w->z, flush);
		if (rc == Z_STREAM_ERROR)
			return -EINVAL;
		err = write_all(w->fd, w->out, OUT_BYTES - w->z.avail_out);
		if (err)
			return err;
	} while (w->z.avail_out == 0);
	return 0;
}

/* Tag (wire type 2: bytes with a length) and length, as varints. */
static size_t put_header(uint8_t *buf, uint32_t field, uint64_t bytes)
{
	size_t n = 0;

	buf[n++] = field << 3 | 2; /* fields below 16: one byte */
	for (; bytes >= 0x80; bytes >>= 7)
		buf[n++] = bytes | 0x80;
	buf[n++] = bytes;
	return n;
}

static int put_bytes(struct writer *w, uint32_t field, const void *p, size_t n)
{
	uint8_t header[16];
	int err = compress_bytes(w, header, put_header(header, field, n), Z_NO_FLUSH);

	return err ? err : compress_bytes(w, p, n, Z_NO_FLUSH);
}

static int put_message(struct writer *w, uint32_t field, const ProtobufCMessage *m)
{
	size_t n = protobuf_c_message_get_packed_size(m);

	if (vec_reserve(&w->packed, n))
		return -ENOMEM;
	protobuf_c_message_pack(m, w->packed.data);
	return put_bytes(w, field, w->packed.data, n);
}

static int fill_lives(struct writer *w, const struct profile *p, const struct profile_sample *s,
		      Perftools__Profiles__ErrorBar *to)
{
	if (vec_reserve(&w->lives, s->life_cnt + 1) || vec_reserve(&w->life_ptrs, s->life_cnt + 1))
		return -ENOMEM;
	for (uint32_t i = 0; i < s->life_cnt; i++) {
		const struct history_life *life = &p->lives.data[s->life_first + i];
		Perftools__Profiles__Life *m = &w->lives.data[i];

		*m = (Perftools__Profiles__Life)PERFTOOLS__PROFILES__LIFE__INIT;
		m->first = life->first;
		m->last = life->last;
		m->samples = life->samples;
		m->bytes = life->bytes;
		m->variance = life->variance;
		w->life_ptrs.data[i] = m;
	}
	to->n_life = s->life_cnt;
	to->life = w->life_ptrs.data;
	return 0;
}

static int fill_ages(struct writer *w, const struct profile *p, const struct profile_sample *s,
		     Perftools__Profiles__ErrorBar *to)
{
	if (vec_reserve(&w->ages, s->age_cnt + 1) || vec_reserve(&w->age_ptrs, s->age_cnt + 1))
		return -ENOMEM;
	for (uint32_t i = 0; i < s->age_cnt; i++) {
		const struct age_part *part = &p->ages.data[s->age_first + i];
		Perftools__Profiles__Age *m = &w->ages.data[i];

		*m = (Perftools__Profiles__Age)PERFTOOLS__PROFILES__AGE__INIT;
		m->at_least_ns = age_bound_ns(part->age_class);
		m->samples = part->samples;
		m->bytes = part->bytes;
		m->bytes_variance = part->bytes_variance;
		m->objects = part->objects;
		m->objects_variance = part->objects_variance;
		w->age_ptrs.data[i] = m;
	}
	to->n_age = s->age_cnt;
	to->age = w->age_ptrs.data;
	to->oldest_ns = s->oldest_ns;
	return 0;
}

/* The size bins come first. */
static int fill_bins(struct writer *w, const struct profile *p, const struct profile_sample *s,
		     Perftools__Profiles__ErrorBar *to)
{
	if (vec_reserve(&w->bins, s->bin_cnt + 1) || vec_reserve(&w->bin_ptrs, s->bin_cnt + 1))
		return -ENOMEM;
	for (uint32_t i = 0; i < s->bin_cnt; i++) {
		const struct bin_part *part = &p->bins.data[s->bin_first + i];
		Perftools__Profiles__Bin *m = &w->bins.data[i];

		*m = (Perftools__Profiles__Bin)PERFTOOLS__PROFILES__BIN__INIT;
		m->at_least = bin_from(part->bin);
		m->samples = part->samples;
		m->objects = part->objects;
		m->bytes = part->bytes;
		m->bytes_variance = part->bytes_variance;
		w->bin_ptrs.data[i] = m;
		to->n_size += part->bin < HT_BIN_LIFE;
	}
	to->size = w->bin_ptrs.data;
	to->n_lifetime = s->bin_cnt - to->n_size;
	to->lifetime = w->bin_ptrs.data + to->n_size;
	to->freed_objects = s->freed_objects;
	to->freed_bytes = s->freed_bytes;
	return 0;
}

static int put_sample(struct writer *w, const struct profile *p, const struct profile_sample *s)
{
	Perftools__Profiles__Sample m = PERFTOOLS__PROFILES__SAMPLE__INIT;
	Perftools__Profiles__ErrorBar error_bar = PERFTOOLS__PROFILES__ERROR_BAR__INIT;

	if (vec_reserve(&w->ids, s->loc_cnt + 1) || vec_reserve(&w->labels, s->label_cnt + 1) ||
	    vec_reserve(&w->label_ptrs, s->label_cnt + 1))
		return -ENOMEM;
	for (uint32_t i = 0; i < s->loc_cnt; i++)
		w->ids.data[i] = p->sample_locs.data[s->loc_first + i] + 1;
	for (uint32_t i = 0; i < s->label_cnt; i++) {
		const struct profile_label *l = &p->labels.data[s->label_first + i];
		Perftools__Profiles__Label *to = &w->labels.data[i];

		*to = (Perftools__Profiles__Label)PERFTOOLS__PROFILES__LABEL__INIT;
		to->key = l->key_str;
		to->str = l->str;
		to->num = l->num;
		to->num_unit = l->num_unit_str;
		w->label_ptrs.data[i] = to;
	}
	m.n_location_id = s->loc_cnt;
	m.location_id = w->ids.data;
	m.n_value = p->types.cnt;
	m.value = p->values.data + s->value_first;
	m.n_label = s->label_cnt;
	m.label = w->label_ptrs.data;
	if (s->has_error) {
		error_bar.inuse_samples = s->inuse_samples;
		error_bar.inuse_bytes_variance = s->inuse_bytes_variance;
		error_bar.inuse_objects_variance = s->inuse_objects_variance;
		error_bar.alloc_samples = s->alloc_samples;
		error_bar.alloc_bytes_variance = s->alloc_bytes_variance;
		error_bar.alloc_bytes_beyond = s->alloc_bytes_beyond;
		error_bar.peak_samples = s->peak_samples;
		error_bar.peak_bytes_variance = s->peak_bytes_variance;
		error_bar.peak_objects = s->peak_objects;
		error_bar.pinned_bytes_variance = s->pinned_bytes_variance;
		if (fill_lives(w, p, s, &error_bar) || fill_ages(w, p, s, &error_bar) ||
		    fill_bins(w, p, s, &error_bar))
			return -ENOMEM;
		m.error_bar = &error_bar;
	}
	return put_message(w, FIELD_SAMPLE, &m.base);
}

static int put_mapping(struct writer *w, const struct profile *p, uint32_t i)
{
	Perftools__Profiles__Mapping m = PERFTOOLS__PROFILES__MAPPING__INIT;
	const struct profile_mapping *from = &p->mappings.data[i];

	m.id = i + 1;
	m.memory_start = from->start;
	m.memory_limit = from->limit;
	m.file_offset = from->offset;
	m.filename = from->filename_str;
	m.build_id = from->build_id_str;
	m.has_functions = from->has_functions;
	m.has_filenames = from->has_filenames;
	m.has_line_numbers = from->has_line_numbers;
	m.has_inline_frames = from->has_inline_frames;
	return put_message(w, FIELD_MAPPING, &m.base);
}

static int put_location(struct writer *w, const struct profile *p, uint32_t i)
{
	Perftools__Profiles__Location m = PERFTOOLS__PROFILES__LOCATION__INIT;
	const struct profile_location *from = &p->locations.data[i];

	if (vec_reserve(&w->lines, from->line_cnt + 1) ||
	    vec_reserve(&w->line_ptrs, from->line_cnt + 1))
		return -ENOMEM;
	for (uint32_t k = 0; k < from->line_cnt; k++) {
		const struct profile_line *l = &p->lines.data[from->line_first + k];
		Perftools__Profiles__Line *to = &w->lines.data[k];

		*to = (Perftools__Profiles__Line)PERFTOOLS__PROFILES__LINE__INIT;
		to->function_id = l->function + 1;
		to->line = l->line;
		w->line_ptrs.data[k] = to;
	}
	m.id = i + 1;
	m.mapping_id = from->mapping == HT_NO_INDEX ? 0 : from->mapping + 1;
	m.address = from->address;
	m.n_line = from->line_cnt;
	m.line = w->line_ptrs.data;
	m.is_folded = from->is_folded;
	return put_message(w, FIELD_LOCATION, &m.base);
}

static int put_function(struct writer *w, const struct profile *p, uint32_t i)
{
	Perftools__Profiles__Function m = PERFTOOLS__PROFILES__FUNCTION__INIT;
	const struct profile_function *from = &p->functions.data[i];

	m.id = i + 1;
	m.name = from->name_str;
	m.system_name = from->system_name_str;
	m.filename = from->filename_str;
	m.start_line = from->start_line;
	return put_message(w, FIELD_FUNCTION, &m.base);
}

static Perftools__Profiles__ValueType value_type(const struct profile_type *type)
{
	Perftools__Profiles__ValueType m = PERFTOOLS__PROFILES__VALUE_TYPE__INIT;

	m.type = type->type_str;
	m.unit = type->unit_str;
	return m;
}

static Perftools__Profiles__Recording recording_message(const struct recording *from)
{
	Perftools__Profiles__Recording m = PERFTOOLS__PROFILES__RECORDING__INIT;

	m.pid = from->pid;
	m.comm = from->comm_str;
	m.exe = from->exe_str;
	m.called = from->called_str;
	m.process_cnt = from->process_cnt;
	m.reason = from->reason_str;
	m.follows_children = from->follows_children;
	m.is_from_start = from->is_from_start;
	m.begin_ns = from->begin_ns;
	m.end_ns = from->end_ns;
	m.duration_ns = from->duration_ns;
	m.overhead_share = from->overhead_share;
	m.full_share = from->full_share;
	m.overhead_one_cpu = from->overhead_one_cpu;
	m.full_one_cpu = from->full_one_cpu;
	m.limit_cpu_share = from->limit.cpu_share;
	m.limit_one_cpu = from->limit.one_cpu;
	m.inuse = from->inuse;
	m.inuse_since_ns = from->inuse_since_ns;
	m.watched_ns = from->watched_ns;
	m.is_lossy = from->is_lossy;
	m.has_nameless_frees = from->has_nameless_frees;
	m.has_no_tap = from->has_no_tap;
	m.rss_begin_bytes = from->rss_begin_bytes;
	m.rss_end_bytes = from->rss_end_bytes;
	m.rss_file_growth_bytes = from->rss_file_growth_bytes;
	m.exec_held_bytes = from->exec_held_bytes;
	m.exec_held_objects = from->exec_held_objects;
	m.program = (char *)from->program;
	m.has_ended = from->has_ended;
	m.peak_ns = from->peak_ns;
	m.unrecorded_cnt = from->unrecorded_cnt;
	return m;
}

static Perftools__Profiles__ResidentLook look_message(const struct resident_look *from)
{
	Perftools__Profiles__ResidentLook m = PERFTOOLS__PROFILES__RESIDENT_LOOK__INIT;

	m.is_known = from->is_known;
	m.is_proved = from->is_proved;
	m.why = from->why_str;
	m.rss_bytes = from->rss_bytes;
	m.took_ns = from->took_ns;
	m.is_counted = from->is_counted;
	m.live_blocks = from->live_cnt;
	m.live_bytes = from->live_bytes;
	m.mmapped_blocks = from->mmapped_cnt;
	m.hit_cnt = from->hit_cnt;
	m.late_hit_cnt = from->late_hit_cnt;
	m.coarsest_rate_bytes = from->coarsest_rate_bytes;
	m.age_ns = from->age_ns;
	return m;
}

/* The messages that a recording points to. */
struct resident_messages {
	Perftools__Profiles__ResidentLook begin, end;
	Perftools__Profiles__ResidentRow rows[RESIDENT_ROW_CAP * 2];
	Perftools__Profiles__ResidentRow *row_ptrs[RESIDENT_ROW_CAP * 2];
	Perftools__Profiles__ResidentClass classes[RESIDENT_CLASS_CAP];
	Perftools__Profiles__ResidentClass *class_ptrs[RESIDENT_CLASS_CAP],
		*span_ptrs[RESIDENT_CLASS_CAP];
};

static void set_classes(const struct resident_rows *from, struct resident_messages *m,
			Perftools__Profiles__Recording *to)
{
	const struct resident_class *c;
	size_t i = 0;

	to->resident_class = m->class_ptrs;
	to->resident_span = m->span_ptrs;
	vec_each(&from->classes, c) {
		perftools__profiles__resident_class__init(&m->classes[i]);
		m->classes[i].name = c->name_str;
		m->classes[i].from_bytes = c->from_bytes;
		m->classes[i].to_bytes = c->to_bytes;
		m->classes[i].live_blocks = c->live_cnt;
		m->classes[i].live_bytes = c->live_bytes;
		m->classes[i].recorded_blocks = c->recorded.cnt;
		m->classes[i].recorded_variance = c->recorded.variance;
		if (c->is_span)
			m->span_ptrs[to->n_resident_span++] = &m->classes[i];
		else
			m->class_ptrs[to->n_resident_class++] = &m->classes[i];
		if (++i == RESIDENT_CLASS_CAP)
			break;
	}
}

static void set_resident(const struct resident_rows *from, struct resident_messages *m,
			 Perftools__Profiles__Recording *to)
{
	const struct resident_row *row;

	if (!from->is_asked)
		return;
	m->begin = look_message(&from->begin);
	m->end = look_message(&from->end);
	to->resident_begin = &m->begin;
	to->resident_end = &m->end;
	set_classes(from, m, to);
	to->resident_row = m->row_ptrs;
	vec_each(&from->list, row) {
		size_t i = to->n_resident_row;

		if (i == RESIDENT_ROW_CAP * 2)
			break;
		perftools__profiles__resident_row__init(&m->rows[i]);
		m->rows[i].name = row->name_str;
		m->rows[i].label = row->label_str;
		m->rows[i].kind = row->kind;
		m->rows[i].begin_bytes = row->begin_bytes;
		m->rows[i].end_bytes = row->end_bytes;
		m->row_ptrs[i] = &m->rows[i];
		to->n_resident_row++;
	}
}

/* The fields that are not streamed are few and small: one message holds them all. */
static int put_scalars(struct writer *w, const struct profile *p)
{
	Perftools__Profiles__Profile m = PERFTOOLS__PROFILES__PROFILE__INIT;
	Perftools__Profiles__ValueType period_type = value_type(&p->period_type);
	Perftools__Profiles__Recording recording = recording_message(&p->recording);
	struct resident_messages resident;
	size_t n;

	recording.n_moment_ns = p->moments_ns.cnt;
	recording.moment_ns = p->moments_ns.data;
	recording.is_history_partial = p->is_history_partial;
	recording.has_bins = p->has_bins;
	set_resident(&p->resident, &resident, &recording);
	if (p->recording.is_known)
		period_type.recording = &recording;
	period_type.n_note = w->note_strs.cnt;
	period_type.note = w->note_strs.data;
	m.time_nanos = p->time_ns;
	m.duration_nanos = p->duration_ns;
	m.period_type = &period_type;
	m.period = p->period;
	m.default_sample_type = p->default_type_str;
	m.n_comment = p->comments.cnt;
	m.comment = p->comments.data;
	n = protobuf_c_message_get_packed_size(&m.base);
	if (vec_reserve(&w->packed, n))
		return -ENOMEM;
	protobuf_c_message_pack(&m.base, w->packed.data);
	return compress_bytes(w, w->packed.data, n, Z_NO_FLUSH);
}

/* In the file's string table the notes come after the strings of the profile. */
static int put_scope_notes(struct writer *w, const struct profile *p)
{
	const struct scope_note *note;

	vec_each(&p->scope_notes, note) {
		char *text = scope_note_text(note, profile_text(p, note->path_str));
		int64_t str = (int64_t)(strset_cnt(p->strings) + w->note_strs.cnt);
		int err = text ? put_bytes(w, FIELD_STRING, text, strlen(text)) : -ENOMEM;

		free(text);
		if (!err)
			err = vec_push(&w->note_strs, str);
		if (err)
			return err;
	}
	return 0;
}

static int put_profile(struct writer *w, const struct profile *p)
{
	int err = 0;

	for (size_t i = 0; i < p->types.cnt && !err; i++) {
		Perftools__Profiles__ValueType m = value_type(&p->types.data[i]);

		err = put_message(w, FIELD_SAMPLE_TYPE, &m.base);
	}
	for (size_t i = 0; i < p->samples.cnt && !err; i++)
		err = put_sample(w, p, &p->samples.data[i]);
	for (size_t i = 0; i < p->mappings.cnt && !err; i++)
		err = put_mapping(w, p, i);
	for (size_t i = 0; i < p->locations.cnt && !err; i++)
		err = put_location(w, p, i);
	for (size_t i = 0; i < p->functions.cnt && !err; i++)
		err = put_function(w, p, i);
	for (size_t i = 0; i < strset_cnt(p->strings) && !err; i++) {
		const char *str = profile_text(p, i);

		err = put_bytes(w, FIELD_STRING, str, strlen(str));
	}
	if (!err)
		err = put_scope_notes(w, p);
	if (!err)
		err = put_scalars(w, p);
	return err ? err : compress_bytes(w, NULL, 0, Z_FINISH);
}

static void release_writer(struct writer *w)
{
	vec_release(&w->packed);
	vec_release(&w->ids);
	vec_release(&w->note_strs);
	vec_release(&w->lines);
	vec_release(&w->line_ptrs);
	vec_release(&w->labels);
	vec_release(&w->label_ptrs);
	vec_release(&w->lives);
	vec_release(&w->life_ptrs);
	vec_release(&w->ages);
	vec_release(&w->age_ptrs);
	vec_release(&w->bins);
	vec_release(&w->bin_ptrs);
	free(w);
}

int pprof_write(const struct profile *p, int fd)
{
	struct writer *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return -ENOMEM;
	w->fd = fd;
	if (deflateInit2(&w->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_BITS_GZIP, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK) {
		free(w);
		return -ENOMEM;
	}
	err = put_profile(w, p);
	deflateEnd(&w->z);
	release_writer(w);
	return err;
}

int pprof_bytes(const struct profile *p, uint64_t *ret)
{
	struct writer *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return -ENOMEM;
	w->is_counting = true;
	err = put_profile(w, p);
	if (!err)
		*ret = w->bytes;
	release_writer(w);
	return err;
}
