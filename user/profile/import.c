/* SPDX-License-Identifier: MIT */
/* import.c - see import.h. */
#include "profile/import.h"

#include <stdlib.h>
#include <string.h>

#include "profile/import_lines.h"
#include "profile/profile.h"

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
