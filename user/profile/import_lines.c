/* SPDX-License-Identifier: MIT */
/* import_lines.c - see import_priv.h. */
#include "profile/import_priv.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "profile/profile.h"

/* A larger value cannot be exact, or is no value of a process. */
#define VALUE_MAX 9e18

int import_fail(struct importer *im, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	err_set_args(im->why, -EBADMSG, fmt, args);
	va_end(args);
	if (im->why) {
		im->why->line = im->line;
		im->why->offset = im->line_pos - im->start;
	}
	return -EBADMSG;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void skip_blanks(struct import_line *l)
{
	while (l->pos < l->end && is_blank(*l->pos))
		l->pos++;
}

bool import_at_end(struct import_line *l)
{
	skip_blanks(l);
	return l->pos == l->end;
}

int import_next_line(struct importer *im, struct import_line *ret)
{
	while (im->pos < im->end) {
		const char *eol = memchr(im->pos, '\n', im->end - im->pos);

		im->line++;
		im->line_pos = im->pos;
		*ret = (struct import_line){ im->pos, eol };
		if (!eol) /* every writer ends its last line */
			return import_fail(im, "cut off in the middle of a line");
		im->pos = eol + 1;
		if (memchr(ret->pos, '\0', eol - ret->pos))
			return import_fail(im, "a byte 0 in a text");
		while (ret->end > ret->pos && is_blank(ret->end[-1]))
			ret->end--;
		if (!import_at_end(ret))
			return 1;
	}
	return 0;
}

bool import_take(struct import_line *l, const char *text)
{
	size_t n = strlen(text);

	skip_blanks(l);
	if ((size_t)(l->end - l->pos) < n || memcmp(l->pos, text, n) != 0)
		return false;
	l->pos += n;
	return true;
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 16;
}

static bool take_digits(struct import_line *l, uint64_t base, uint64_t *ret)
{
	const char *pos = l->pos;
	uint64_t n = 0;

	for (; pos < l->end && (uint64_t)digit_of(*pos) < base; pos++)
		if (__builtin_mul_overflow(n, base, &n) ||
		    __builtin_add_overflow(n, (uint64_t)digit_of(*pos), &n))
			return false;
	if (pos == l->pos)
		return false;
	l->pos = pos;
	*ret = n;
	return true;
}

bool import_take_number(struct import_line *l, uint64_t *ret)
{
	skip_blanks(l);
	return take_digits(l, 10, ret);
}

bool import_take_hex(struct import_line *l, uint64_t *ret)
{
	struct import_line before = *l;

	import_take(l, "0x");
	if (take_digits(l, 16, ret))
		return true;
	*l = before;
	return false;
}

bool import_take_counts(struct import_line *l, struct import_counts *ret)
{
	struct import_line at = *l;

	if (!import_take_number(&at, &ret->inuse_objects) || !import_take(&at, ":") ||
	    !import_take_number(&at, &ret->inuse_bytes) || !import_take(&at, "[") ||
	    !import_take_number(&at, &ret->alloc_objects) || !import_take(&at, ":") ||
	    !import_take_number(&at, &ret->alloc_bytes) || !import_take(&at, "]"))
		return false;
	*l = at;
	return true;
}

static int get_location(struct importer *im, uint64_t address, uint32_t *ret)
{
	const uint64_t *known = hmap_get(&im->location_by_address, &address);
	struct profile_location l = { .mapping = HT_NO_INDEX, .address = address };
	int err;

	if (known) {
		*ret = *known;
		return 0;
	}
	if (im->p->locations.cnt >= HT_NO_INDEX)
		return import_fail(im, "too many addresses");
	err = vec_push(&im->p->locations, l);
	if (!err)
		err = hmap_put(&im->location_by_address, &address, im->p->locations.cnt - 1);
	if (!err)
		*ret = im->p->locations.cnt - 1;
	return err;
}

int import_stack(struct importer *im, struct import_line *l)
{
	im->locs.cnt = 0;
	while (!import_at_end(l)) {
		uint64_t address;
		uint32_t loc = 0;
		int err;

		if (!import_take_hex(l, &address) || (l->pos < l->end && !is_blank(*l->pos)))
			return import_fail(im, "a stack that is not of addresses");
		err = get_location(im, address ? address - 1 : 0, &loc);
		if (!err)
			err = vec_push(&im->locs, loc);
		if (err)
			return err;
	}
	return 0;
}

int import_set_types(struct importer *im, uint64_t rate_bytes)
{
	struct profile *p = im->p;
	int err = profile_set_heap_types(p, rate_bytes ? rate_bytes : 1);

	if (err || im->has_alloc)
		return err;
	p->types.data[0] = p->types.data[PROFILE_INUSE_OBJECTS];
	p->types.data[1] = p->types.data[PROFILE_INUSE_SPACE];
	p->types.cnt = 2;
	return 0;
}

void import_weigh(double objects, double bytes, uint64_t rate_bytes, double *ret_objects,
		  double *ret_bytes)
{
	double scale = 1;

	if (rate_bytes > 1 && objects > 0 && bytes > 0)
		scale = -1 / expm1(-bytes / objects / (double)rate_bytes);
	*ret_objects = objects * scale;
	*ret_bytes = bytes * scale;
}

int import_sample(struct importer *im, const double *values, const struct profile_label *labels,
		  size_t label_cnt)
{
	int64_t rounded[PROFILE_VALUE_CNT];
	bool is_empty = true;

	for (size_t i = im->has_alloc ? 0 : 2; i < PROFILE_VALUE_CNT; i++) {
		if (!(values[i] < VALUE_MAX))
			return import_fail(im, "a value that is too large");
		rounded[i] = llround(values[i]);
		is_empty &= !rounded[i];
	}
	if (is_empty)
		return 0;
	return profile_add_sample(im->p, im->locs.data, im->locs.cnt,
				  rounded + (im->has_alloc ? 0 : 2), labels, label_cnt, NULL);
}

/*
 * MAPPED_LIBRARIES: the lines of /proc/PID/maps, as the process wrote them.
 *
 * Only mappings with code of a file are kept: those that contain an address, and the first, which is the program. The
 * process reads its maps while it runs, so lines may overlap or come out of order; each line must be sound by itself.
 */

struct map {
	uint64_t start, limit, offset;
	int64_t file_str;
	uint32_t mapping; /* HT_NO_INDEX until an address is in it */
};

struct maps {
	VEC(struct map) list;
};

/* "5604dc310000-5604dc311000 r-xp 00001000 fe:00 9978257    /usr/bin/server" */
static int read_map(struct importer *im, struct import_line *l, struct maps *maps)
{
	struct map m = { .mapping = HT_NO_INDEX };
	uint64_t ignored;
	const char *perms;

	if (!import_take_hex(l, &m.start) || !import_take(l, "-") ||
	    !import_take_hex(l, &m.limit) || import_at_end(l) || l->end - l->pos < 4)
		return import_fail(im, "not a line of /proc/PID/maps");
	perms = l->pos;
	l->pos += 4;
	if (!import_take_hex(l, &m.offset) || !import_take_hex(l, &ignored) ||
	    !import_take(l, ":") || !import_take_hex(l, &ignored) ||
	    !import_take_number(l, &ignored))
		return import_fail(im, "not a line of /proc/PID/maps");
	if (m.start >= m.limit)
		return import_fail(im, "a mapping that ends before it begins");
	if (perms[2] != 'x' || import_at_end(l))
		return 0;
	m.file_str = strset_add_n(im->p->strings, l->pos, l->end - l->pos);
	return m.file_str < 0 ? (int)m.file_str : vec_push(&maps->list, m);
}

static int add_map(struct importer *im, struct map *m)
{
	struct profile_mapping to = {
		.start = m->start,
		.limit = m->limit,
		.offset = m->offset,
		.filename_str = m->file_str,
	};
	int err;

	if (m->mapping != HT_NO_INDEX)
		return 0;
	err = vec_push(&im->p->mappings, to);
	if (!err)
		m->mapping = im->p->mappings.cnt - 1;
	return err;
}

static int compare_maps(const void *a, const void *b)
{
	const struct map *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* The last map that starts at or before address. */
static struct map *find_map(const struct maps *maps, uint64_t address)
{
	size_t first = 0, cnt = maps->list.cnt;

	while (cnt) {
		size_t half = cnt / 2;

		if (maps->list.data[first + half].start <= address) {
			first += half + 1;
			cnt -= half + 1;
		} else {
			cnt = half;
		}
	}
	return first && address < maps->list.data[first - 1].limit ? &maps->list.data[first - 1] :
								     NULL;
}

static int place_locations(struct importer *im, struct maps *maps)
{
	struct profile_location *l;
	int err;

	if (!maps->list.cnt)
		return 0;
	err = add_map(im, &maps->list.data[0]);
	qsort(maps->list.data, maps->list.cnt, sizeof(*maps->list.data), compare_maps);
	vec_each(&im->p->locations, l) {
		struct map *m = find_map(maps, l->address);

		if (err)
			break;
		if (!m)
			continue;
		err = add_map(im, m);
		l->mapping = m->mapping;
	}
	return err;
}

int import_mappings(struct importer *im)
{
	struct maps maps = { 0 };
	struct import_line l;
	int rc;

	while ((rc = import_next_line(im, &l)) > 0) {
		rc = read_map(im, &l, &maps);
		if (rc)
			break;
	}
	if (!rc)
		rc = place_locations(im, &maps);
	vec_release(&maps.list);
	return rc;
}
