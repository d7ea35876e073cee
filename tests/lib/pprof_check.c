/* SPDX-License-Identifier: MIT */
/*
 * pprof_check.c - does a file keep the rules of the profiles that heaptap writes?
 *
 * Stricter than any reader, and on purpose built without the reader: the file is unpacked as one
 * message. A rule is here because some consumer breaks without it: ids with gaps, a mapping
 * limit of 0 or a doc_url each lost somebody's frames or the whole file.
 *
 * why->offset is that of the broken part only for what is wrong on the wire or in a string;
 * else the text names the part by its position in its table.
 */
#include "pprof_check.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/hmap.h"
#include "base/vec.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "profile/scope_note.h"
#include "profile/wire.h"
#include "profile.pb-c.h"

#define FIELD_STRING 6

typedef Perftools__Profiles__Profile Profile;

#define broken(...) format_fail(why, 0, __VA_ARGS__)

static bool is_utf8(const uint8_t *s, size_t n)
{
	for (size_t i = 0; i < n;) {
		uint32_t c = s[i], min, more;

		if (c < 0x80) {
			i++;
			continue;
		}
		more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
		min = more == 3 ? 0x10000 : more == 2 ? 0x800 : 0x80;
		if (c < 0xc0 || c > 0xf7 || more > n - i - 1)
			return false;
		c &= 0x3f >> more;
		for (uint32_t k = 1; k <= more; k++) {
			if (s[i + k] >> 6 != 2)
				return false;
			c = c << 6 | (s[i + k] & 0x3f);
		}
		if (c < min || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
			return false;
		i += more + 1;
	}
	return true;
}

static int check_strings(const uint8_t *data, size_t bytes, struct err *why)
{
	struct wire w = { .data = data, .bytes = bytes };
	struct wire_field f;
	size_t cnt = 0;
	int rc;

	while ((rc = wire_next(&w, &f, why)) > 0) {
		if (f.number != FIELD_STRING || f.type != WIRE_BYTES)
			continue;
		if (!cnt && f.bytes)
			return format_fail(why, f.offset, "string 0 is not empty");
		if (!is_utf8(f.data, f.bytes))
			return format_fail(why, f.offset, "string %zu is not valid UTF-8", cnt);
		if (f.bytes && memchr(f.data, 0, f.bytes))
			return format_fail(why, f.offset, "string %zu has a byte 0", cnt);
		cnt++;
	}
	if (rc < 0)
		return rc;
	return cnt ? 0 : broken("there is no string table");
}

static bool has_string(const Profile *p, int64_t i)
{
	return i >= 0 && (uint64_t)i < p->n_string_table;
}

static const char *text_of(const Profile *p, int64_t i)
{
	return has_string(p, i) ? p->string_table[i] : "";
}

static bool is_type(const Profile *p, const Perftools__Profiles__ValueType *t, const char *type,
		    const char *unit)
{
	return t && !strcmp(text_of(p, t->type), type) && !strcmp(text_of(p, t->unit), unit);
}

static int check_comment(const Profile *p, size_t i, struct err *why)
{
	if (!text_of(p, p->comment[i])[0])
		return broken("comment %zu has no text", i);
	return 0;
}

static int check_note(const Profile *p, size_t i, struct err *why)
{
	const char *text = text_of(p, p->period_type->note[i]);
	struct scope_note note;
	const char *path;

	if (!scope_note_parse(text, &note, &path))
		return broken("note %zu is not understood: '%.60s'", i, text);
	return 0;
}

static int check_header(const Profile *p, struct err *why)
{
	static const char *const types[][2] = {
		{ "alloc_objects", "count" },
		{ "alloc_space", "bytes" },
		{ "inuse_objects", "count" },
		{ "inuse_space", "bytes" },
	};
	const char *default_type = text_of(p, p->default_sample_type);

	/* then peak_space and pinned_space, where they are known */
	if (p->n_sample_type < 4 || p->n_sample_type > 6)
		return broken("%zu sample types, not 4 to 6", p->n_sample_type);
	for (size_t i = 0; i < 4; i++)
		if (!is_type(p, p->sample_type[i], types[i][0], types[i][1]))
			return broken("sample type %zu is not %s/%s", i, types[i][0], types[i][1]);
	if (strcmp(default_type, "inuse_space") != 0 && strcmp(default_type, "alloc_space") != 0)
		return broken("the default sample type is '%s'", default_type);
	if (!is_type(p, p->period_type, "space", "bytes"))
		return broken("the period type is not space/bytes");
	if (p->period < 1)
		return broken("the period is %lld", (long long)p->period);
	if (p->time_nanos <= 0)
		return broken("there is no time");
	if (p->duration_nanos < 0)
		return broken("the duration is negative");
	if (p->doc_url || p->drop_frames || p->keep_frames)
		return broken("has a doc_url, drop_frames or keep_frames");
	for (size_t i = 0; i < p->n_comment; i++)
		if (check_comment(p, i, why))
			return -EBADMSG;
	for (size_t i = 0; i < p->period_type->n_note; i++)
		if (check_note(p, i, why))
			return -EBADMSG;
	return 0;
}

/* A key that must be new; *map is from a key of that size. */
static int check_new(struct hmap *map, const void *key, bool *ret_is_new)
{
	*ret_is_new = !hmap_get(map, key);
	return *ret_is_new ? hmap_put(map, key, 1) : 0;
}

static int check_mapping(const Profile *p, size_t i, struct hmap *seen, struct err *why)
{
	const Perftools__Profiles__Mapping *m = p->mapping[i];
	int64_t key[2] = { m->filename, m->build_id };
	const char *id = text_of(p, m->build_id);
	bool is_new;
	int rc;

	if (m->id != i + 1)
		return broken("mapping %zu has the id %llu", i, (unsigned long long)m->id);
	if (!text_of(p, m->filename)[0])
		return broken("mapping %zu has no file name", i);
	if (!has_string(p, m->build_id) || id[strspn(id, "0123456789abcdef")])
		return broken("mapping %zu has a build id that is not hexadecimal", i);
	if (m->memory_start || m->memory_limit != UINT64_MAX || m->file_offset)
		return broken("mapping %zu does not run from 0 to 2^64-1", i);
	rc = check_new(seen, key, &is_new);
	if (!rc && !is_new)
		return broken("mapping %zu is of the same file and build id as another", i);
	return rc;
}

static int check_function(const Profile *p, size_t i, struct err *why)
{
	const Perftools__Profiles__Function *f = p->function[i];

	if (f->id != i + 1)
		return broken("function %zu has the id %llu", i, (unsigned long long)f->id);
	if (!text_of(p, f->name)[0])
		return broken("function %zu has no name", i);
	if (!has_string(p, f->system_name) || !has_string(p, f->filename))
		return broken("function %zu refers to a string that is not there", i);
	if (f->start_line < 0)
		return broken("function %zu has a negative line", i);
	return 0;
}

/* One location per mapping and address; another of the same only with other lines (without the
 * allocator's inlined functions). */
static int check_location(const Profile *p, size_t i, struct hmap *seen, struct err *why)
{
	const Perftools__Profiles__Location *l = p->location[i];
	uint64_t key[4] = { l->mapping_id, l->address, l->n_line, 0 };
	bool is_new;
	int rc;

	if (l->id != i + 1)
		return broken("location %zu has the id %llu", i, (unsigned long long)l->id);
	if (l->mapping_id > p->n_mapping)
		return broken("location %zu refers to mapping %llu, which is not there", i,
			      (unsigned long long)l->mapping_id);
	if (l->mapping_id && p->mapping[l->mapping_id - 1]->has_functions && !l->n_line)
		return broken("location %zu has no line, but its mapping has functions", i);
	for (size_t k = 0; k < l->n_line; k++) {
		if (!l->line[k]->function_id || l->line[k]->function_id > p->n_function)
			return broken("location %zu refers to function %llu, which is not there", i,
				      (unsigned long long)l->line[k]->function_id);
		if (l->line[k]->line < 0)
			return broken("location %zu has a negative line number", i);
		key[3] = (key[3] ^ l->line[k]->function_id) * 0x9e3779b97f4a7c15ULL ^
			 (uint64_t)l->line[k]->line;
	}
	rc = check_new(seen, key, &is_new);
	if (!rc && !is_new)
		return broken("location %zu is the same as another", i);
	return rc;
}

static int check_label(const Profile *p, size_t i, size_t k, struct err *why)
{
	const Perftools__Profiles__Sample *s = p->sample[i];
	const Perftools__Profiles__Label *l = s->label[k];

	if (!text_of(p, l->key)[0])
		return broken("sample %zu has a label without a key", i);
	if (!has_string(p, l->str) || !has_string(p, l->num_unit))
		return broken("sample %zu has a label with a string that is not there", i);
	if (l->str && (l->num || l->num_unit))
		return broken("sample %zu has a label that is text and a number", i);
	for (size_t other = 0; other < k; other++)
		if (s->label[other]->key == l->key)
			return broken("sample %zu has two values for the label '%s'", i,
				      text_of(p, l->key));
	return 0;
}

/* The labels whose meaning readers know (and the program's own must not take). */
static int check_known_label(const Profile *p, size_t i, const Perftools__Profiles__Label *l,
			     struct err *why)
{
	static const char *const texts[] = { "scope", "thread", "task_state" };
	const char *key = text_of(p, l->key);

	if (!strcmp(key, "task") && (l->str || l->num_unit))
		return broken("sample %zu has a task that is not a plain number", i);
	for (size_t k = 0; k < sizeof(texts) / sizeof(*texts); k++)
		if (!strcmp(key, texts[k]) && !text_of(p, l->str)[0])
			return broken("sample %zu has a label '%s' without text", i, key);
	if (!strcmp(key, "task_state") && strcmp(text_of(p, l->str), "exited") != 0)
		return broken("sample %zu has the task_state '%s'", i, text_of(p, l->str));
	return 0;
}

static bool has_label(const Profile *p, const Perftools__Profiles__Sample *s, const char *key)
{
	for (size_t i = 0; i < s->n_label; i++)
		if (!strcmp(text_of(p, s->label[i]->key), key))
			return true;
	return false;
}

/* What tasks allocated stands in the rows without a task, or it would be there twice. */
static int check_task(const Profile *p, size_t i, struct err *why)
{
	const Perftools__Profiles__Sample *s = p->sample[i];
	bool is_task = has_label(p, s, "task");

	if (!is_task && has_label(p, s, "task_state"))
		return broken("sample %zu has a task_state, but no task", i);
	if (is_task && !has_label(p, s, "scope"))
		return broken("sample %zu has a task, but no scope", i);
	if (is_task && (s->value[PROFILE_ALLOC_OBJECTS] || s->value[PROFILE_ALLOC_SPACE]))
		return broken("sample %zu has a task and an allocated sum", i);
	return 0;
}

static bool is_variance(double v)
{
	return isfinite(v) && v >= 0;
}

static int check_lives(const Profile *p, size_t i, struct err *why)
{
	const Perftools__Profiles__ErrorBar *bar = p->sample[i]->error_bar;
	const Perftools__Profiles__Recording *r = p->period_type ? p->period_type->recording : NULL;

	for (size_t k = 0; bar && k < bar->n_life; k++) {
		const Perftools__Profiles__Life *life = bar->life[k];

		if (!r || life->first > life->last || life->last >= r->n_moment_ns)
			return broken("sample %zu has a life at moments that are not there", i);
		if (!life->samples || !is_variance(life->bytes) || !is_variance(life->variance))
			return broken("sample %zu has a life of no samples, bytes or variance", i);
	}
	return 0;
}

static int check_ages(const Profile *p, size_t i, struct err *why)
{
	const Perftools__Profiles__ErrorBar *bar = p->sample[i]->error_bar;

	for (size_t k = 0; bar && k < bar->n_age; k++) {
		const Perftools__Profiles__Age *age = bar->age[k];

		if (k && age->at_least_ns <= bar->age[k - 1]->at_least_ns)
			return broken("sample %zu has ages that do not ascend", i);
		if (!age->samples || !is_variance(age->bytes) ||
		    !is_variance(age->bytes_variance) || !is_variance(age->objects) ||
		    !is_variance(age->objects_variance))
			return broken("sample %zu has an age of no samples, bytes or variance", i);
	}
	return 0;
}

static int check_bins(Perftools__Profiles__Bin *const *bins, size_t cnt, size_t i,
		      uint32_t (*bin_of)(uint64_t), struct err *why)
{
	for (size_t k = 0; k < cnt; k++) {
		const Perftools__Profiles__Bin *b = bins[k];

		if (bin_from(bin_of(b->at_least)) != b->at_least ||
		    (k && b->at_least <= bins[k - 1]->at_least))
			return broken("sample %zu has bins that are none, or do not ascend", i);
		if (!b->samples || !is_variance(b->objects) || !is_variance(b->bytes) ||
		    !is_variance(b->bytes_variance))
			return broken("sample %zu has a bin of no samples, bytes or variance", i);
	}
	return 0;
}

static int check_all_bins(const Profile *p, size_t i, struct err *why)
{
	const Perftools__Profiles__ErrorBar *bar = p->sample[i]->error_bar;
	const Perftools__Profiles__Recording *r = p->period_type ? p->period_type->recording : NULL;
	int rc;

	if (!bar)
		return 0;
	if ((bar->n_size || bar->n_lifetime) && (!r || !r->has_bins))
		return broken("sample %zu has bins that the recording does not know of", i);
	if (!is_variance(bar->freed_objects) || !is_variance(bar->freed_bytes))
		return broken("sample %zu has a freed sum that is none", i);
	rc = check_bins(bar->size, bar->n_size, i, bin_of_size, why);
	return rc ? rc : check_bins(bar->lifetime, bar->n_lifetime, i, bin_of_life, why);
}

static int check_sample(const Profile *p, size_t i, struct err *why)
{
	const Perftools__Profiles__Sample *s = p->sample[i];

	if (s->n_value != p->n_sample_type)
		return broken("sample %zu has %zu values", i, s->n_value);
	for (size_t k = 0; k < s->n_value; k++)
		if (s->value[k] < 0)
			return broken("sample %zu has a negative value", i);
	if (!s->n_location_id)
		return broken("sample %zu has no stack", i);
	for (size_t k = 0; k < s->n_location_id; k++)
		if (!s->location_id[k] || s->location_id[k] > p->n_location)
			return broken("sample %zu refers to location %llu, which is not there", i,
				      (unsigned long long)s->location_id[k]);
	for (size_t k = 0; k < s->n_label; k++) {
		int rc = check_label(p, i, k, why);

		if (!rc)
			rc = check_known_label(p, i, s->label[k], why);
		if (rc)
			return rc;
	}
	if (check_task(p, i, why))
		return -EBADMSG;
	if (s->error_bar && (!is_variance(s->error_bar->inuse_bytes_variance) ||
			     !is_variance(s->error_bar->inuse_objects_variance) ||
			     !is_variance(s->error_bar->alloc_bytes_variance)))
		return broken("sample %zu has a variance that is none", i);
	if (check_lives(p, i, why) || check_ages(p, i, why))
		return -EBADMSG;
	return check_all_bins(p, i, why);
}

static int check_tables(const Profile *p, struct err *why)
{
	struct hmap mappings, locations;
	int rc = check_header(p, why);

	hmap_init(&mappings, 2 * sizeof(int64_t));
	hmap_init(&locations, 4 * sizeof(uint64_t));
	for (size_t i = 0; i < p->n_mapping && !rc; i++)
		rc = check_mapping(p, i, &mappings, why);
	for (size_t i = 0; i < p->n_function && !rc; i++)
		rc = check_function(p, i, why);
	for (size_t i = 0; i < p->n_location && !rc; i++)
		rc = check_location(p, i, &locations, why);
	for (size_t i = 0; i < p->n_sample && !rc; i++)
		rc = check_sample(p, i, why);
	hmap_release(&mappings);
	hmap_release(&locations);
	return rc;
}

int pprof_check(const void *data, size_t bytes, struct err *why)
{
	uint8_t *owned = NULL;
	const uint8_t *raw;
	size_t raw_bytes;
	Profile *p = NULL;
	int rc = gunzip_mem(data, bytes, GUNZIP_BYTES_MAX, &owned, &raw, &raw_bytes, why);

	if (rc)
		return rc;
	rc = check_strings(raw, raw_bytes, why);
	if (!rc) {
		p = perftools__profiles__profile__unpack(NULL, raw_bytes, raw);
		rc = p ? check_tables(p, why) : broken("not a profile: some part is damaged");
	}
	if (p)
		perftools__profiles__profile__free_unpacked(p, NULL);
	free(owned);
	return rc;
}
