/* SPDX-License-Identifier: MIT */
/*
 * import_jeheap.c - a heap dump of jemalloc:
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
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/import_lines.h"
#include "profile/profile.h"

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
		return import_fail(j->im, "something follows the numbers of a thread");
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

int import_jeheap(struct importer *im, struct import_line *head)
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
