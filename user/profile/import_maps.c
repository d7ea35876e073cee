/* SPDX-License-Identifier: MIT */
/*
 * import_maps.c - MAPPED_LIBRARIES: the lines of /proc/PID/maps, as the process wrote them.
 *
 * Only mappings with code of a file are kept: those that contain an address, and the first, which is the program. The
 * process reads its maps while it runs, so lines may overlap or come out of order; each line must be sound by itself.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/import_lines.h"
#include "profile/profile.h"

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
