/* SPDX-License-Identifier: MIT */
/*
 * report_heap.c - the text form of heap profiles, for jeprof and gperftools' pprof:
 *
 *	--- symbol
 *	binary=/usr/bin/server
 *	0x0001000000001210 main--load             callers first, inlined functions behind
 *	---
 *	heap profile:      3:     3000 [     9:     9000] @ heapprofile
 *	     3:     3000 [     9:     9000] @ 0x0001000000001211 0x0001000000001300
 *
 *	MAPPED_LIBRARIES:
 *	0001000000000000-0002000000000000 r-xp 00000000 00:00 0   /usr/bin/server
 *
 * The kind is heapprofile, because readers do not scale its numbers: ours are weighted already.
 * (heap_v2/1 would be scaled by up to 1.58, for objects of 1 byte.) The file contains the names, so
 * that the programs are not needed; readers take such a file without naming a program.
 *
 * Addresses are made up: the mapping's number above 48 bits of the file's address. A location
 * without such an address, or that shares it with another, gets a number of its own. Stacks have
 * the address + 1, as they hold return addresses: jeprof subtracts 1 again except at the leaf,
 * gperftools' pprof does not. So each name is there for both addresses.
 *
 * The other form is for a server of gperftools' remote protocol: no names, and the locations' own
 * addresses, whose names readers ask for afterwards. All readers then subtract 1 from the callers,
 * and nothing from the leaf; only `go tool pprof` does that, too. The leaf's address is within its
 * call either way.
 *
 * And a heap dump in jemalloc's format, with the same names in front:
 *
 *	--- symbol
 *	...
 *	---
 *	heap_v2/65536                             one sample per this many bytes
 *	  t*: 30: 41000 [0: 0]                    all threads: objects, bytes in use; [allocated]
 *	  t1: 30: 41000 [0: 0] worker             one thread, and its name
 *	@ 0x0001000000001211 0x0001000000001300
 *	  t*: 30: 41000 [0: 0]
 *	  t1: 30: 41000 [0: 0]
 *
 *	MAPPED_LIBRARIES:
 *	...
 *
 * The numbers are those of samples: a reader scales them up. So a row's estimate is turned back
 * into what was sampled of it (import_weigh() has the formula: objects and bytes are divided by the
 * same number, and their mean stays). Samples are whole: a row, and a thread's part of it, is off
 * by up to half a sample, which is less than its random error; except for that, the parts add up to
 * the row.
 *
 * At a rate of R a sample stands for R bytes or more. A smaller row (its samples were drawn at
 * other rates, or it is a difference) cannot be expressed at the profile's rate. Then all rows use
 * a lower rate, at which each, and each thread's part of it, has at least 3/4 of a sample. An
 * unsampled profile has "heap_v2/1" and its own numbers; jeprof scales those of objects under 8
 * bytes, which no allocator hands out.
 *
 * Samples without a thread are those of t0, if others have one.
 */

#include "base/hmap.h"
#include "base/vec.h"
#include "report/report_rows.h"

#define MODULE_SHIFT 48
#define MODULE_BYTES (1ULL << MODULE_SHIFT)
/* Readers skip addresses of 2^63 and above. */
#define MODULE_CAP 0x7ffeU
/* Locations without a file address are in the last module, numbered one after the other. */
#define OWN_BASE ((uint64_t)MODULE_CAP << MODULE_SHIFT)
#define OWN_NO_STACK (OWN_BASE + 16)
#define OWN_NOT_MATCHED (OWN_BASE + 32)
#define OWN_LOCATION(index) (OWN_BASE + 48 + (index)*16ULL)

#define VALUE_MAX 9e18 /* the most that a reader takes */
#define SAMPLES_MIN 0.75 /* of a row, and of each thread in it */

struct heap_text {
	const struct report *r;
	FILE *out;
	uint64_t *address; /* by location; 0: in no stack */
	struct hmap used; /* used addresses, and these + 1 */
};

/* Control characters become blanks. */
static void put_text(const char *text, FILE *out)
{
	for (; *text; text++)
		fputc(iscntrl((unsigned char)*text) ? ' ' : *text, out);
}

/* "--" separates inlined functions, so operator-- gets a blank. */
static void put_function(const char *name, FILE *out)
{
	for (; *name; name++) {
		fputc(iscntrl((unsigned char)*name) ? ' ' : *name, out);
		if (name[0] == '-' && name[1] == '-')
			fputc(' ', out);
	}
}

static int take_address(struct heap_text *h, uint64_t address, bool *ret_is_new)
{
	uint64_t next = address + 1;
	int err;

	*ret_is_new = !hmap_get(&h->used, &address) && !hmap_get(&h->used, &next);
	if (!*ret_is_new)
		return 0;
	err = hmap_put(&h->used, &address, 1);
	return err ? err : hmap_put(&h->used, &next, 1);
}

static int name_location(struct heap_text *h, uint32_t index)
{
	const struct profile *p = h->r->p;
	const struct profile_location *l = &p->locations.data[index];
	bool has_address = false;
	uint64_t vaddr = l->address;
	int err = 0;

	if (l->mapping != HT_NO_INDEX)
		vaddr += p->mappings.data[l->mapping].offset - p->mappings.data[l->mapping].start;
	if (l->mapping < MODULE_CAP - 1 && vaddr < MODULE_BYTES - 1) {
		h->address[index] = (l->mapping + 1ULL) * MODULE_BYTES + vaddr;
		err = take_address(h, h->address[index], &has_address);
	}
	if (!has_address)
		h->address[index] = OWN_LOCATION(index);
	return err;
}

static void put_location_names(const struct heap_text *h, uint32_t index)
{
	const struct profile *p = h->r->p;
	struct report_frame f = { .location = &p->locations.data[index] };
	uint32_t cnt = f.location->line_cnt;
	char buf[REPORT_NAME_BUF];

	for (uint32_t i = cnt ? cnt : 1; i-- > 0;) {
		f.line = cnt ? &p->lines.data[f.location->line_first + i] : NULL;
		put_function(report_frame_name(p, &f, buf, sizeof(buf)), h->out);
		if (i)
			fputs("--", h->out);
	}
	fputc('\n', h->out);
}

/* A stack of a row; NULL: the row of what --match left out. */
static const struct profile_sample *sample_of(const struct report *r, const struct report_row *row)
{
	if (!row->sample_cnt)
		return NULL;
	return &r->p->samples.data[r->order.data[row->sample_first]];
}

static void put_own_name(uint64_t address, const char *name, FILE *out)
{
	for (uint64_t i = 0; i < 2; i++)
		fprintf(out, "0x%016" PRIx64 " %s\n", address + i, name);
}

/* Write the name twice: for the address, and for the address + 1. */
static int put_location(struct heap_text *h, uint32_t index)
{
	int err = 0;

	if (h->address[index])
		return 0;
	err = name_location(h, index);
	for (uint64_t i = 0; i < 2 && !err; i++) {
		fprintf(h->out, "0x%016" PRIx64 " ", h->address[index] + i);
		put_location_names(h, index);
	}
	return err;
}

/* Write the section "--- symbol", and make up the addresses. */
static int put_symbols(struct heap_text *h)
{
	const struct profile *p = h->r->p;
	const struct report_row *row;
	int err = 0;

	fputs("--- symbol\n", h->out);
	if (p->mappings.cnt) {
		fputs("binary=", h->out);
		put_text(profile_text(p, p->mappings.data[0].filename_str), h->out);
		fputc('\n', h->out);
	}
	vec_each(&h->r->rows, row) {
		const struct profile_sample *s = sample_of(h->r, row);

		for (uint32_t i = 0; s && i < s->loc_cnt && !err; i++)
			err = put_location(h, p->sample_locs.data[s->loc_first + i]);
	}
	put_own_name(OWN_NO_STACK, "[no stack]", h->out);
	put_own_name(OWN_NOT_MATCHED, "[not matched]", h->out);
	fputs("---\n", h->out);
	return err;
}

static int64_t above_0(int64_t value)
{
	return value > 0 ? value : 0;
}

static void put_counts(const struct heap_text *h, const struct report_row *row)
{
	bool is_growth = h->r->opts->heap_is_growth;

	fprintf(h->out, "%6" PRId64 ": %8" PRId64 " [%6" PRId64 ": %8" PRId64 "] @",
		above_0(is_growth ? row->alloc_objects : row->objects),
		above_0(is_growth ? row->alloc : row->value), above_0(row->alloc_objects),
		above_0(row->alloc));
}

/* Write the addresses of a row's stack, a blank before each, and end the line. */
static void put_stack(const struct heap_text *h, const struct report_row *row)
{
	const struct profile *p = h->r->p;
	const struct profile_sample *s = sample_of(h->r, row);
	bool is_named = h->r->opts->heap_form == REPORT_HEAP_NAMED;

	for (uint32_t i = 0; s && i < s->loc_cnt; i++)
		fprintf(h->out, " 0x%016" PRIx64,
			h->address[p->sample_locs.data[s->loc_first + i]] + (i || is_named));
	if (!s || !s->loc_cnt)
		fprintf(h->out, " 0x%016" PRIx64, (s ? OWN_NO_STACK : OWN_NOT_MATCHED) + 1);
	fputc('\n', h->out);
}

static void put_own_mappings(const struct heap_text *h)
{
	const struct profile_mapping *m;

	fputs("\nMAPPED_LIBRARIES:\n", h->out);
	vec_each(&h->r->p->mappings, m) {
		fprintf(h->out, "%016" PRIx64 "-%016" PRIx64 " r-xp %08" PRIx64 " 00:00 0   ",
			m->start, m->limit, m->offset);
		put_text(profile_text(h->r->p, m->filename_str), h->out);
		fputc('\n', h->out);
	}
}

static void put_mappings(const struct heap_text *h)
{
	const struct profile *p = h->r->p;

	fputs("\nMAPPED_LIBRARIES:\n", h->out);
	for (uint64_t i = 0; i < p->mappings.cnt && i < MODULE_CAP - 1; i++) {
		fprintf(h->out, "%016llx-%016llx r-xp 00000000 00:00 0   ", (i + 1) * MODULE_BYTES,
			(i + 2) * MODULE_BYTES);
		put_text(profile_text(p, p->mappings.data[i].filename_str), h->out);
		fputc('\n', h->out);
	}
}

/* Release it in any case. */
static int open_text(const struct report *r, FILE *out, struct heap_text *h)
{
	*h = (struct heap_text){ .r = r, .out = out };
	hmap_init(&h->used, sizeof(uint64_t));
	h->address = calloc(r->p->locations.cnt + 1, sizeof(*h->address));
	return h->address ? 0 : -ENOMEM;
}

static void release_text(struct heap_text *h)
{
	hmap_release(&h->used);
	free(h->address);
}

static int write_text(const struct report *r, FILE *out)
{
	bool is_named = r->opts->heap_form == REPORT_HEAP_NAMED;
	const struct report_row *row;
	struct heap_text h;
	int err = open_text(r, out, &h);

	if (!err && is_named)
		err = put_symbols(&h);
	for (size_t i = 0; !err && !is_named && i < r->p->locations.cnt; i++)
		h.address[i] = r->p->locations.data[i].address;
	if (!err) {
		fputs("heap profile: ", out);
		put_counts(&h, &r->total);
		fputs(r->opts->heap_is_growth ? " growthz\n" : " heapprofile\n", out);
		vec_each(&r->rows, row) {
			put_counts(&h, row);
			put_stack(&h, row);
		}
		if (is_named)
			put_mappings(&h);
		else
			put_own_mappings(&h);
	}
	release_text(&h);
	return err;
}

struct counts {
	int64_t objects, bytes, alloc_objects, alloc_bytes;
};

struct heap_v2 {
	struct heap_text text;
	const struct report *r;
	uint64_t rate_bytes; /* 1: not sampled */
	VEC(int64_t) threads; /* names, strings of the profile; the first is of no thread */
	uint32_t *thread_of; /* by sample */
	struct counts *sums; /* of the current row, by thread; all 0 between rows */
	VEC(uint32_t) touched; /* the threads of that row */
	struct counts *totals, total; /* of all rows, by thread and together */
};

static void add(struct counts *into, const struct counts *c)
{
	into->objects = report_add_saturating(into->objects, c->objects);
	into->bytes = report_add_saturating(into->bytes, c->bytes);
	into->alloc_objects = report_add_saturating(into->alloc_objects, c->alloc_objects);
	into->alloc_bytes = report_add_saturating(into->alloc_bytes, c->alloc_bytes);
}

/* Convert an estimate to the numbers of its samples. */
static void to_samples(uint64_t rate_bytes, int64_t *objects, int64_t *bytes)
{
	double mean, kept;

	*objects = *objects > 0 ? *objects : 0;
	*bytes = *bytes > 0 ? *bytes : 0;
	if (rate_bytes <= 1 || !*objects || !*bytes)
		return;
	mean = (double)*bytes / (double)*objects;
	kept = fmax(round((double)*objects * -expm1(-mean / (double)rate_bytes)), 1);
	*objects = (int64_t)fmin(kept, VALUE_MAX);
	*bytes = (int64_t)fmin(round(kept * mean), VALUE_MAX);
}

static struct counts sampled(const struct heap_v2 *v, struct counts c)
{
	to_samples(v->rate_bytes, &c.objects, &c.bytes);
	to_samples(v->rate_bytes, &c.alloc_objects, &c.alloc_bytes);
	return c;
}

static int number_threads(struct heap_v2 *v)
{
	const struct profile *p = v->r->p;
	struct hmap number_by_name;
	int err = vec_push(&v->threads, 0);

	hmap_init(&number_by_name, sizeof(int64_t));
	for (size_t i = 0; i < p->samples.cnt && !err; i++) {
		const struct profile_label *l =
			profile_find_label(p, &p->samples.data[i], "thread");
		int64_t name = l ? l->str : 0;
		uint64_t number = 0;

		if (name)
			err = hmap_add(&number_by_name, &name, v->threads.cnt, &number);
		if (!err && number == v->threads.cnt)
			err = vec_push(&v->threads, name);
		v->thread_of[i] = (uint32_t)number;
	}
	hmap_release(&number_by_name);
	return err;
}

static int open_threads(struct heap_v2 *v)
{
	int err;

	v->thread_of = calloc(v->r->p->samples.cnt + 1, sizeof(*v->thread_of));
	err = v->thread_of ? number_threads(v) : -ENOMEM;
	if (err)
		return err;
	v->sums = calloc(v->threads.cnt, sizeof(*v->sums));
	v->totals = calloc(v->threads.cnt, sizeof(*v->totals));
	return v->sums && v->totals ? 0 : -ENOMEM;
}

static bool is_touched(const struct counts *c)
{
	return c->objects || c->bytes || c->alloc_objects || c->alloc_bytes;
}

/* Add a row to sums, by thread, and note the threads in touched. */
static int sum_row(struct heap_v2 *v, const struct report_row *row)
{
	const struct report *r = v->r;

	for (uint32_t k = 0; k < row->sample_cnt; k++) {
		uint32_t i = r->order.data[row->sample_first + k];
		const struct profile_sample *s = &r->p->samples.data[i];
		const struct counts c = { report_sample_value(r, s, r->objects_type),
					  report_sample_value(r, s, r->value_type),
					  report_sample_value(r, s, r->alloc_objects_type),
					  report_sample_value(r, s, r->alloc_type) };
		struct counts *sum = &v->sums[v->thread_of[i]];

		if (!is_touched(sum) && is_touched(&c) && vec_push(&v->touched, v->thread_of[i]))
			return -ENOMEM;
		add(sum, &c);
	}
	return 0;
}

static void put_sampled(const struct counts *c, FILE *out)
{
	fprintf(out, "%" PRId64 ": %" PRId64 " [%" PRId64 ": %" PRId64 "]", c->objects, c->bytes,
		c->alloc_objects, c->alloc_bytes);
}

static struct counts row_counts(const struct heap_v2 *v, const struct report_row *row)
{
	return sampled(v,
		       (struct counts){ row->objects, row->value, row->alloc_objects, row->alloc });
}

/* Lower the rate until these numbers have SAMPLES_MIN of a sample. */
static void bound_rate(struct heap_v2 *v, int64_t objects, int64_t bytes)
{
	double rate_bytes;

	if (objects <= 0 || bytes <= 0)
		return;
	rate_bytes = -((double)bytes / (double)objects) / log1p(-SAMPLES_MIN / (double)objects);
	if (rate_bytes < (double)v->rate_bytes)
		v->rate_bytes = rate_bytes > 1 ? (uint64_t)rate_bytes : 1;
}

static int choose_rate(struct heap_v2 *v)
{
	const struct report_row *row;
	int err = 0;

	v->rate_bytes = v->r->rate_bytes > 1 ? v->r->rate_bytes : 1;
	vec_each(&v->r->rows, row) {
		if (err)
			break;
		bound_rate(v, row->objects, row->value);
		bound_rate(v, row->alloc_objects, row->alloc);
		err = sum_row(v, row);
		for (size_t i = 0; i < v->touched.cnt; i++) {
			struct counts *c = &v->sums[v->touched.data[i]];

			bound_rate(v, c->objects, c->bytes);
			bound_rate(v, c->alloc_objects, c->alloc_bytes);
			*c = (struct counts){ 0 };
		}
		v->touched.cnt = 0;
	}
	return err;
}

/* Called twice for each row: for the totals, which come first, and to write it. */
static int do_row(struct heap_v2 *v, const struct report_row *row, bool writes)
{
	const struct counts all = row_counts(v, row);
	FILE *out = v->text.out;
	int err = sum_row(v, row);

	if (writes && !err) {
		fputc('@', out);
		put_stack(&v->text, row);
		fputs("  t*: ", out);
		put_sampled(&all, out);
		fputc('\n', out);
	}
	for (size_t i = 0; i < v->touched.cnt; i++) {
		uint32_t thread = v->touched.data[i];
		const struct counts c = sampled(v, v->sums[thread]);

		if (!writes)
			add(&v->totals[thread], &c);
		else if (v->threads.cnt > 1 && is_touched(&c)) {
			fprintf(out, "  t%" PRIu32 ": ", thread);
			put_sampled(&c, out);
			fputc('\n', out);
		}
		v->sums[thread] = (struct counts){ 0 };
	}
	v->touched.cnt = 0;
	if (!writes)
		add(&v->total, &all);
	return err;
}

static void put_head(const struct heap_v2 *v)
{
	FILE *out = v->text.out;

	fprintf(out, "heap_v2/%" PRIu64 "\n  t*: ", v->rate_bytes);
	put_sampled(&v->total, out);
	fputc('\n', out);
	for (size_t i = 0; i < v->threads.cnt && v->threads.cnt > 1; i++) {
		if (!is_touched(&v->totals[i]))
			continue;
		fprintf(out, "  t%zu: ", i);
		put_sampled(&v->totals[i], out);
		if (v->threads.data[i])
			fputc(' ', out);
		put_text(profile_text(v->r->p, v->threads.data[i]), out);
		fputc('\n', out);
	}
}

static int write_v2(const struct report *r, FILE *out)
{
	struct heap_v2 v = { .r = r };
	const struct report_row *row;
	int err = open_text(r, out, &v.text);

	if (!err)
		err = open_threads(&v);
	if (!err)
		err = choose_rate(&v);
	for (size_t i = 0; i < r->rows.cnt && !err; i++)
		err = do_row(&v, &r->rows.data[i], false);
	if (!err)
		err = put_symbols(&v.text);
	if (!err)
		put_head(&v);
	vec_each(&r->rows, row)
		if (!err)
			err = do_row(&v, row, true);
	if (!err)
		put_mappings(&v.text);
	release_text(&v.text);
	vec_release(&v.threads);
	vec_release(&v.touched);
	free(v.thread_of);
	free(v.sums);
	free(v.totals);
	return err;
}

int report_write_heap(const struct report *r, FILE *out)
{
	return r->opts->format == REPORT_HEAP_V2 ? write_v2(r, out) : write_text(r, out);
}
