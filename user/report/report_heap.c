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
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "report/report_heap_priv.h"
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

void report_heap_put_text(const char *text, FILE *out)
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

int report_heap_put_symbols(struct heap_text *h)
{
	const struct profile *p = h->r->p;
	const struct report_row *row;
	int err = 0;

	fputs("--- symbol\n", h->out);
	if (p->mappings.cnt) {
		fputs("binary=", h->out);
		report_heap_put_text(profile_text(p, p->mappings.data[0].filename_str), h->out);
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

void report_heap_put_stack(const struct heap_text *h, const struct report_row *row)
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
		report_heap_put_text(profile_text(h->r->p, m->filename_str), h->out);
		fputc('\n', h->out);
	}
}

void report_heap_put_mappings(const struct heap_text *h)
{
	const struct profile *p = h->r->p;

	fputs("\nMAPPED_LIBRARIES:\n", h->out);
	for (uint64_t i = 0; i < p->mappings.cnt && i < MODULE_CAP - 1; i++) {
		fprintf(h->out, "%016llx-%016llx r-xp 00000000 00:00 0   ", (i + 1) * MODULE_BYTES,
			(i + 2) * MODULE_BYTES);
		report_heap_put_text(profile_text(p, p->mappings.data[i].filename_str), h->out);
		fputc('\n', h->out);
	}
}

int report_heap_open(const struct report *r, FILE *out, struct heap_text *h)
{
	*h = (struct heap_text){ .r = r, .out = out };
	hmap_init(&h->used, sizeof(uint64_t));
	h->address = calloc(r->p->locations.cnt + 1, sizeof(*h->address));
	return h->address ? 0 : -ENOMEM;
}

void report_heap_release(struct heap_text *h)
{
	hmap_release(&h->used);
	free(h->address);
}

int report_write_heap(const struct report *r, FILE *out)
{
	bool is_named = r->opts->heap_form == REPORT_HEAP_NAMED;
	const struct report_row *row;
	struct heap_text h;
	int err = report_heap_open(r, out, &h);

	if (!err && is_named)
		err = report_heap_put_symbols(&h);
	for (size_t i = 0; !err && !is_named && i < r->p->locations.cnt; i++)
		h.address[i] = r->p->locations.data[i].address;
	if (!err) {
		fputs("heap profile: ", out);
		put_counts(&h, &r->total);
		fputs(r->opts->heap_is_growth ? " growthz\n" : " heapprofile\n", out);
		vec_each(&r->rows, row) {
			put_counts(&h, row);
			report_heap_put_stack(&h, row);
		}
		if (is_named)
			report_heap_put_mappings(&h);
		else
			put_own_mappings(&h);
	}
	report_heap_release(&h);
	return err;
}
