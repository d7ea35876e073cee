/* SPDX-License-Identifier: MIT */
/*
 * import_gperf.c - the heap profiles of gperftools:
 *
 *	heap profile:  12032: 21004416 [ 15032: 36004416] @ heapprofile
 *	    30:  9000000 [    30:  9000000] @ 0x560358281283 0x56035828133f 0x7fbc4f24524a
 *	...
 *	MAPPED_LIBRARIES:                         /proc/self/maps
 *
 * A line is objects: bytes [both since the start] @ return addresses, leaf first. The word after the first line's @
 * says what was counted:
 *	heapprofile    every allocation, by HEAPPROFILE=
 *	heap_v2/RATE   samples, one per RATE bytes; one line each, freed ones are not listed
 *	growth         how the heap grew: every piece that was requested from the system
 * Older versions wrote heapz_v2 and growthz.
 *
 * The totals of the first line may be larger than the sum of the lines: the profiler leaves out lines for which its
 * buffer has no room. A comment in the profile says so.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/import_lines.h"
#include "profile/profile.h"

struct gperf {
	struct importer *im;
	uint64_t rate; /* 1: everything was counted */
	struct import_counts head;
	uint64_t inuse_bytes; /* sum of the lines, before weighting */
};

static int set_growth_types(struct profile *p)
{
	struct profile_type objects = { profile_str(p, "objects"), profile_str(p, "count") };
	struct profile_type space = { profile_str(p, "space"), profile_str(p, "bytes") };

	if (objects.type_str < 0 || objects.unit_str < 0 || space.type_str < 0 ||
	    space.unit_str < 0)
		return -ENOMEM;
	p->types.data[0] = objects;
	p->types.data[1] = space;
	p->default_type_str = space.type_str;
	p->period_type = (struct profile_type){ 0 };
	p->period = 0;
	return 0;
}

static int read_kind(struct gperf *g, struct import_line *l)
{
	struct importer *im = g->im;
	bool is_growth = import_take(l, "growth"), is_every = import_take(l, "heapprofile");
	int err;

	g->rate = 1;
	if (is_growth)
		import_take(l, "z");
	else if (!is_every && ((!import_take(l, "heap_v2/") && !import_take(l, "heapz_v2/")) ||
			       !import_take_number(l, &g->rate) || !g->rate))
		return import_fail(im, "after @ there must be heapprofile, heap_v2/RATE or growth "
				       "(of Go's /debug/pprof/heap: ask without debug=1)");
	if (!import_at_end(l))
		return import_fail(im, "something follows the kind of the profile");
	/* Samples and growth do not know what was freed: the second pair repeats the first. A profile made by
	 * report_heap.c from one without allocated values has zeros there. */
	im->has_alloc = is_every && g->head.alloc_bytes >= g->head.inuse_bytes;
	err = import_set_types(im, g->rate);
	if (!err && is_growth)
		err = set_growth_types(im->p);
	if (!err && g->rate > 1)
		err = profile_comment(im->p,
				      "imported: heap profile of gperftools, one sample per %llu "
				      "bytes",
				      (unsigned long long)g->rate);
	else if (!err)
		err = profile_comment(im->p, "imported: heap %s of gperftools",
				      is_growth ? "growth" : "profile");
	return err;
}

static int read_stack(struct gperf *g, struct import_line *l)
{
	double values[PROFILE_VALUE_CNT];
	struct import_counts c;
	int err;

	if (!import_take_counts(l, &c) || !import_take(l, "@"))
		return import_fail(g->im, "not a line 'objects: bytes [objects: bytes] @ stack'");
	err = import_stack(g->im, l);
	if (err)
		return err;
	if (__builtin_add_overflow(g->inuse_bytes, c.inuse_bytes, &g->inuse_bytes))
		return import_fail(g->im, "a value that is too large");
	import_weigh(c.alloc_objects, c.alloc_bytes, g->rate, &values[PROFILE_ALLOC_OBJECTS],
		     &values[PROFILE_ALLOC_SPACE]);
	import_weigh(c.inuse_objects, c.inuse_bytes, g->rate, &values[PROFILE_INUSE_OBJECTS],
		     &values[PROFILE_INUSE_SPACE]);
	return import_sample(g->im, values, NULL, 0);
}

static int end_stacks(struct gperf *g)
{
	int err = 0;

	if (g->head.inuse_bytes != g->inuse_bytes)
		err = profile_comment(g->im->p,
				      "imported: the stacks have %llu bytes in use, the first "
				      "line says %llu",
				      (unsigned long long)g->inuse_bytes,
				      (unsigned long long)g->head.inuse_bytes);
	return err ? err : import_mappings(g->im);
}

int import_gperf(struct importer *im, struct import_line *head)
{
	struct gperf g = { .im = im };
	struct import_line l;
	int rc;

	if (!import_take_counts(head, &g.head) || !import_take(head, "@"))
		return import_fail(im, "not a line 'heap profile: objects: bytes [objects: bytes] "
				       "@ kind'");
	rc = read_kind(&g, head);
	while (!rc && (rc = import_next_line(im, &l)) > 0) {
		if (import_take(&l, "MAPPED_LIBRARIES:") && import_at_end(&l))
			return end_stacks(&g);
		rc = read_stack(&g, &l);
	}
	return rc ? rc : import_fail(im, "cut off after this line: no MAPPED_LIBRARIES");
}
