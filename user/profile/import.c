/* SPDX-License-Identifier: MIT */
/* import.c - see pprof.h. */
#include "profile/pprof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/import_lines.h"
#include "profile/profile.h"

/*
 * The section that jeprof --raw writes first:
 *
 *	--- symbol
 *	binary=/usr/bin/server
 *	0x5604dc310208 main--load--parse          callers first, then inlined functions
 *	---
 *
 * The leaf's address may be as it stands in the stack; callers' addresses are less 1.
 */

/* Drop the vaddr by which jeprof tells functions of one name apart: "worker<0000000000001256>". */
static void drop_vaddr(struct import_line *l)
{
	const char *mark = l->end - 18;

	if (l->end - l->pos <= 18 || *mark != '<' || l->end[-1] != '>')
		return;
	for (const char *c = mark + 1; c < l->end - 1; c++)
		if (!strchr("0123456789abcdef", *c))
			return;
	l->end = mark;
}

/* After "--- symbol": read the rest of the section. */
static int import_symbols(struct importer *im)
{
	struct import_line l;
	int rc;

	while ((rc = import_next_line(im, &l)) > 0) {
		uint64_t address;
		int64_t name;

		if (import_take(&l, "---"))
			return import_at_end(&l) ? 0 :
						   import_fail(im, "not the end of the symbols");
		if (import_take(&l, "binary="))
			continue;
		if (!import_take(&l, "0x") || !import_take_hex(&l, &address) || import_at_end(&l))
			return import_fail(im, "not a line '0xADDRESS name'");
		drop_vaddr(&l);
		name = strset_add_n(im->p->strings, l.pos, l.end - l.pos);
		rc = name < 0 ? (int)name : hmap_put(&im->name_by_address, &address, name);
		if (rc)
			return rc;
	}
	return rc ? rc : import_fail(im, "cut off after this line: no end of the symbols");
}

static int get_function(struct importer *im, const char *name, size_t bytes, uint32_t *ret)
{
	int64_t id = strset_add_n(im->p->strings, name, bytes);
	struct profile_function fn = { .name_str = id, .system_name_str = id };
	const uint64_t *known;
	int err;

	if (id < 0)
		return (int)id;
	known = hmap_get(&im->function_by_name, &id);
	if (known) {
		*ret = *known;
		return 0;
	}
	err = vec_push(&im->p->functions, fn);
	if (!err)
		err = hmap_put(&im->function_by_name, &id, im->p->functions.cnt - 1);
	if (!err)
		*ret = im->p->functions.cnt - 1;
	return err;
}

/* Take the names from the end: a location's lines are innermost first. */
static int add_lines(struct importer *im, struct profile_location *l, const char *names)
{
	size_t end = strlen(names), pos = end;
	int err = 0;

	l->line_first = im->p->lines.cnt;
	while (pos && !err) {
		struct profile_line line = { 0 };

		pos--;
		if (pos && (pos < 2 || memcmp(names + pos - 2, "--", 2) != 0))
			continue;
		if (end > pos) {
			err = get_function(im, names + pos, end - pos, &line.function);
			if (!err)
				err = vec_push(&im->p->lines, line);
			l->line_cnt++;
		}
		pos = pos ? pos - 2 : 0;
		end = pos;
	}
	return err;
}

/* At the end: name the locations by the symbol section. */
static int import_name_locations(struct importer *im)
{
	struct profile_location *l;
	int err = 0;

	if (!im->name_by_address.cnt)
		return 0;
	vec_each(&im->p->locations, l) {
		uint64_t as_it_stood = l->address + 1;
		const uint64_t *name = hmap_get(&im->name_by_address, &l->address);

		if (!name)
			name = hmap_get(&im->name_by_address, &as_it_stood);
		if (name)
			err = add_lines(im, l, profile_text(im->p, *name));
		if (err)
			return err;
	}
	return 0;
}

bool import_is_text(const void *data, size_t bytes)
{
	static const char *const begins[] = { "heap_v2/", "heap profile:", "--- symbol" };

	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++)
		if (bytes >= strlen(begins[i]) && !memcmp(data, begins[i], strlen(begins[i])))
			return true;
	return false;
}

static int next_line(struct importer *im, struct import_line *l)
{
	int rc = import_next_line(im, l);

	return rc < 0 ? rc : rc ? 0 : import_fail(im, "cut off after this line");
}

static int read_text(struct importer *im)
{
	struct import_line l;
	int err = next_line(im, &l);

	if (!err && import_take(&l, "--- symbol")) {
		err = import_at_end(&l) ? import_symbols(im) :
					  import_fail(im, "not the line '--- symbol'");
		if (!err)
			err = next_line(im, &l);
		/* jeprof puts a line between the two parts, gperftools' pprof does not. */
		if (!err && import_take(&l, "--- ")) {
			if (!import_take(&l, "heap") && !import_take(&l, "growth"))
				return import_fail(im, "not the line '--- heap' or '--- growth'");
			err = next_line(im, &l);
		}
	}
	if (err)
		return err;
	if (import_take(&l, "heap_v2/"))
		err = import_jeheap(im, &l);
	else if (import_take(&l, "heap profile:"))
		err = import_gperf(im, &l);
	else
		err = import_fail(im, "neither 'heap_v2/' nor 'heap profile:'");
	return err ? err : import_name_locations(im);
}

int import_text(const void *data, size_t bytes, struct profile **ret, struct err *why)
{
	struct importer im = { .why = why, .start = data, .pos = data, .line_pos = data };
	int rc = profile_new(&im.p);

	if (rc)
		return rc;
	im.end = im.start + bytes;
	hmap_init(&im.location_by_address, sizeof(uint64_t));
	hmap_init(&im.name_by_address, sizeof(uint64_t));
	hmap_init(&im.function_by_name, sizeof(int64_t));
	rc = read_text(&im);
	if (!rc) {
		*ret = im.p;
		im.p = NULL;
	}
	profile_free(im.p);
	hmap_release(&im.location_by_address);
	hmap_release(&im.name_by_address);
	hmap_release(&im.function_by_name);
	vec_release(&im.locs);
	return rc;
}
