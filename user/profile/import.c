/* SPDX-License-Identifier: MIT */
/*
 * import.c - reads the heap profiles of other allocators, which are texts: jemalloc's heap_v2, gperftools' heap and
 * growth, and either with names, as from jeprof --raw (see pprof.h).
 */
#include "profile/pprof.h"

#include "base/err.h"
#include "base/hmap.h"
#include "base/vec.h"
#include "profile/profile.h"

/* The unread rest of a line, without its end. */
struct import_line {
	const char *pos, *end;
};

struct importer {
	struct profile *p;
	struct err *why;
	const char *start, *pos, *end; /* of the text */
	const char *line_pos;
	uint64_t line; /* number of the line that was read last, from 1 */
	struct hmap location_by_address;
	struct hmap name_by_address; /* of the symbol section: id of "caller--inlined" in p */
	struct hmap function_by_name;
	VEC(uint32_t) locs; /* the current stack, leaf first */
	bool has_alloc; /* the file has totals of what was allocated */
};

/* inuse: in use now; alloc: since the start. */
struct import_counts {
	uint64_t inuse_objects, inuse_bytes, alloc_objects, alloc_bytes;
};

/* A larger value cannot be exact, or is no value of a process. */
#define VALUE_MAX 9e18

/* Fill *why with a message and the current line; return -EBADMSG. */
__attribute__((format(printf, 2, 3))) static int import_fail(struct importer *im, const char *fmt,
							     ...)
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

/* Only blanks are left. */
static bool import_at_end(struct import_line *l)
{
	skip_blanks(l);
	return l->pos == l->end;
}

/* Next line that is not blank: 1; 0: the end; -EBADMSG. */
static int import_next_line(struct importer *im, struct import_line *ret)
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

/* Each takes blanks and then the thing in its name from the front of the line. false: nothing was taken. */
static bool import_take(struct import_line *l, const char *text)
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

static bool import_take_number(struct import_line *l, uint64_t *ret)
{
	skip_blanks(l);
	return take_digits(l, 10, ret);
}

/* With or without 0x. */
static bool import_take_hex(struct import_line *l, uint64_t *ret)
{
	struct import_line before = *l;

	import_take(l, "0x");
	if (take_digits(l, 16, ret))
		return true;
	*l = before;
	return false;
}

/* "1: 2 [3: 4]" */
static bool import_take_counts(struct import_line *l, struct import_counts *ret)
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

/* Read the rest of the line, return addresses from the leaf on, into im->locs. */
static int import_stack(struct importer *im, struct import_line *l)
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

/* Set the sample types: all four, or only inuse_* if there are no alloc_*. */
static int import_set_types(struct importer *im, uint64_t rate_bytes)
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

/*
 * Weight sampled counts: they stand for bytes / (1 - exp(-mean / rate)), where mean is bytes / objects; the divisor is
 * the share of allocations of that size that are sampled. jemalloc since 5.3 prints numbers from which this formula
 * makes its unbiased sums, whatever sizes meet in a stack. A rate up to 1 changes nothing.
 */
static void import_weigh(double objects, double bytes, uint64_t rate_bytes, double *ret_objects,
			 double *ret_bytes)
{
	double scale = 1;

	if (rate_bytes > 1 && objects > 0 && bytes > 0)
		scale = -1 / expm1(-bytes / objects / (double)rate_bytes);
	*ret_objects = objects * scale;
	*ret_bytes = bytes * scale;
}

/* Add a sample. Values as in enum profile_value; alloc_* are left out if the file has none. */
static int import_sample(struct importer *im, const double *values,
			 const struct profile_label *labels, size_t label_cnt)
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

/* After "MAPPED_LIBRARIES:": read the rest of the file, set the mapping of each location. */
static int import_mappings(struct importer *im)
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

/*
 * The heap profiles of gperftools:
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
		return import_fail(im, "unexpected text after the kind of the profile");
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

/* After the first line, "heap profile: ...": read a gperftools profile. */
static int import_gperf(struct importer *im, struct import_line *head)
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

/*
 * A heap dump of jemalloc:
 *
 *	heap_v2/524288                            one sample per this many bytes
 *	  t*: 28106: 56637512 [0: 0]              all threads: objects, bytes; [allocated since start]
 *	  t3: 352: 16777344 [0: 0] worker         one thread, perhaps with its name
 *	@ 0x5f86da8 0x5f5a1dc 0x29e4dc            a stack of return addresses, leaf first
 *	  t*: 13: 6688 [0: 0]
 *	  t3: 12: 6496 [0: 0]
 *	...
 *	MAPPED_LIBRARIES:                         /proc/self/maps
 *
 * The value of a stack is its weighted line of all threads. It is divided among the threads in the proportion of their
 * own weighted lines, so that the profile adds up to what jeprof prints. The totals in the head are not used: weights
 * differ from stack to stack, so they have no meaning.
 */

#define VALUES PROFILE_VALUE_CNT

struct thread_row {
	uint64_t id;
	double values[VALUES];
};

struct jeheap {
	struct importer *im;
	uint64_t rate;
	struct hmap name_by_thread; /* id -> string */
	bool has_stack, has_total; /* a stack is open; its line t* has been read */
	double total[VALUES];
	VEC(struct thread_row) threads; /* of the open stack */
};

static void weigh(const struct jeheap *j, const struct import_counts *c, double *values)
{
	import_weigh(c->alloc_objects, c->alloc_bytes, j->rate, &values[PROFILE_ALLOC_OBJECTS],
		     &values[PROFILE_ALLOC_SPACE]);
	import_weigh(c->inuse_objects, c->inuse_bytes, j->rate, &values[PROFILE_INUSE_OBJECTS],
		     &values[PROFILE_INUSE_SPACE]);
}

/* Threads without a name are told apart by jemalloc's number. */
static int thread_label(struct jeheap *j, uint64_t id, struct profile_label *ret)
{
	const uint64_t *name = hmap_get(&j->name_by_thread, &id);
	char text[32];

	*ret = (struct profile_label){ .key_str = profile_str(j->im->p, "thread") };
	snprintf(text, sizeof(text), "t%llu", (unsigned long long)id);
	ret->str = name ? (int64_t)*name : profile_str(j->im->p, text);
	return ret->key_str < 0 || ret->str < 0 ? -ENOMEM : 0;
}

/*
 * Emit thread i's share. Shares are cut from the total one after the other at rounded places, so that they add up to
 * the total and none is negative.
 */
static int emit_thread(struct jeheap *j, size_t i, const double *sums, double *before)
{
	double share[VALUES];
	struct profile_label label;
	int err = thread_label(j, j->threads.data[i].id, &label);

	for (size_t v = 0; v < VALUES; v++) {
		double after = before[v] + j->threads.data[i].values[v];
		double total = __builtin_round(j->total[v]);

		share[v] = 0;
		if (sums[v] > 0)
			share[v] = __builtin_round(total * (after / sums[v])) -
				   __builtin_round(total * (before[v] / sums[v]));
		before[v] = after;
	}
	return err ? err : import_sample(j->im, share, &label, 1);
}

static int end_stack(struct jeheap *j)
{
	double sums[VALUES] = { 0 }, before[VALUES] = { 0 }, rest[VALUES];
	int err = 0;

	if (!j->has_stack)
		return 0;
	if (!j->has_total)
		return import_fail(j->im, "before this line a stack has no line 't*'");
	for (size_t i = 0; i < j->threads.cnt; i++)
		for (size_t v = 0; v < VALUES; v++)
			sums[v] += j->threads.data[i].values[v];
	for (size_t i = 0; i < j->threads.cnt && !err; i++)
		err = emit_thread(j, i, sums, before);
	for (size_t v = 0; v < VALUES; v++) /* left for threads that the file does not list */
		rest[v] = sums[v] > 0 ? 0 : j->total[v];
	return err ? err : import_sample(j->im, rest, NULL, 0);
}

static int start_stack(struct jeheap *j, struct import_line *l)
{
	int err = end_stack(j);

	j->has_stack = true;
	j->has_total = false;
	j->threads.cnt = 0;
	return err ? err : import_stack(j->im, l);
}

/* Read a thread's line in the head: only the thread's name is used. */
static int read_head_thread(struct jeheap *j, uint64_t id, struct import_line *l)
{
	int64_t name;

	if (import_at_end(l))
		return 0;
	name = strset_add_n(j->im->p->strings, l->pos, l->end - l->pos);
	return name < 0 ? (int)name : hmap_put(&j->name_by_thread, &id, name);
}

static int read_counts(struct jeheap *j, struct import_line *l)
{
	struct thread_row row = { 0 };
	struct import_counts counts;
	bool is_all = import_take(l, "*");

	if ((!is_all && !import_take_number(l, &row.id)) || !import_take(l, ":") ||
	    !import_take_counts(l, &counts))
		return import_fail(j->im, "not a line 'tN: objects: bytes [objects: bytes]'");
	if (!j->has_stack)
		return is_all ? 0 : read_head_thread(j, row.id, l);
	if (!import_at_end(l))
		return import_fail(j->im, "unexpected text after the numbers of a thread");
	if (is_all == j->has_total)
		return import_fail(j->im, is_all ? "a second line 't*' of one stack" :
						   "a thread before the line 't*' of its stack");
	j->has_total = true;
	weigh(j, &counts, is_all ? j->total : row.values);
	return is_all ? 0 : vec_push(&j->threads, row);
}

/* Read the total line: if it counts allocated bytes, there are alloc_* sample types. */
static int read_head(struct jeheap *j)
{
	struct import_counts all;
	struct import_line l;
	int rc = import_next_line(j->im, &l);

	if (rc < 0)
		return rc;
	if (!rc)
		return import_fail(j->im, "cut off after this line");
	if (!import_take(&l, "t*") || !import_take(&l, ":") || !import_take_counts(&l, &all) ||
	    !import_at_end(&l))
		return import_fail(j->im, "not the line 't*: objects: bytes [objects: bytes]'");
	j->im->has_alloc = all.alloc_objects || all.alloc_bytes;
	rc = import_set_types(j->im, j->rate);
	return rc ? rc :
		    profile_comment(j->im->p,
				    "imported: heap dump of jemalloc, one sample per %llu bytes",
				    (unsigned long long)j->rate);
}

static int read_stacks(struct jeheap *j)
{
	struct import_line l;
	int rc = read_head(j);

	while (!rc && (rc = import_next_line(j->im, &l)) > 0) {
		if (import_take(&l, "@"))
			rc = start_stack(j, &l);
		else if (import_take(&l, "t"))
			rc = read_counts(j, &l);
		else if (import_take(&l, "MAPPED_LIBRARIES:") && import_at_end(&l)) {
			rc = end_stack(j);
			return rc ? rc : import_mappings(j->im);
		} else
			rc = import_fail(j->im, "not a stack, a thread or MAPPED_LIBRARIES");
	}
	return rc ? rc : import_fail(j->im, "cut off after this line: no MAPPED_LIBRARIES");
}

/* After the first line, "heap_v2/RATE": read a jemalloc dump. */
static int import_jeheap(struct importer *im, struct import_line *head)
{
	struct jeheap j = { .im = im };
	int err;

	if (!import_take_number(head, &j.rate) || !import_at_end(head) || !j.rate)
		return import_fail(im, "'heap_v2/' without a sampling rate in bytes");
	hmap_init(&j.name_by_thread, sizeof(uint64_t));
	err = read_stacks(&j);
	hmap_release(&j.name_by_thread);
	vec_release(&j.threads);
	return err;
}

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
