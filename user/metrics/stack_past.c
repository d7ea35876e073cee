/* SPDX-License-Identifier: MIT */
/*
 * stack_past.c - see stack_past.h.
 *
 * Why lives. People compare profiles of a process at two moments, but a profile of each moment would, for 300
 * processes and a hundred moments, take a hundred times the room of a snapshot, and most of it would be the same in
 * the next one. Since a sample carries the time of its allocation, lives (history.h) describe what a stack held:
 * this many samples were live from this moment to that one. A stack that only holds is one life, whatever the
 * number of moments; one that leaks has one for each moment. Lives give what the stack held at any moment, what two
 * moments have in common, and so the variance of a difference and of growth (growth.c): errors of a sample that was
 * live at several moments cancel.
 *
 * Why one read. All samples that are live are read every ten seconds: half a microsecond each in the kernel and a
 * quarter here. If that is more than a COST_PART-th of a CPU, moments are further apart.
 *
 * Coarser with age. Moments of age a are at most a / AGE_PART apart, or as far apart as they are read. So each of
 * twelve windows of any time until now has moments, and growth of the last hour, of the last day, and of a process
 * that has just come is judged by the same rule. These are some 120 moments in a day.
 *
 * Bounded. A row, which is a stack in a context, and a life take 24 bytes each; there are at most
 * STACK_PAST_ENTRIES_CAP of both together: 6 MiB, and the sums of what is live while a moment is read. An image may
 * have its part of these entries, or half of what is free. If it wants more, the stacks that hold most are kept
 * (what they held before counts less and less), and the others are one sum, the rest. A stack that was in the rest
 * is known from the moment at which it was taken up. If the lives of a stack alone are too many, because it churns
 * so much, it is kept as sums at moments, and its growth is not shown.
 *
 * Measured (tools/soak/past): for 300 processes with 200 samples each, two thirds of which come and go, an hour
 * takes 2.4 MiB and a day no more; 3 more are needed during a read. All of it takes 0.1 % of one CPU, and with the
 * reading of 90 000 samples 0.3 %.
 *
 * A moment is identified by the clock of the samples, which never jumps. The time of the wall clock is kept beside
 * it.
 */
#include "metrics/stack_past.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "metrics/stack_past_priv.h"

#define COST_PART 200
#define AGE_PART 12
#define SLOT_BITS_LEAST 10
#define NEW_CELLS_CAP 32768 /* cells of stacks that are not kept yet, while a moment is read */

int stack_past_new(uint64_t interval_ns, struct stack_past **ret)
{
	struct stack_past *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->interval_ns = interval_ns ? interval_ns : 1;
	p->seed = 0x9e3779b97f4a7c15ULL;
	hmap_init(&p->image_index, sizeof(uint64_t));
	*ret = p;
	return 0;
}

static void release_cells(struct stack_past *p)
{
	vec_release(&p->cells);
	free(p->slots);
	p->slots = NULL;
	p->slot_bits = 0;
}

void stack_past_forget(struct stack_past *p)
{
	struct past_image *im;

	vec_each(&p->images, im)
		past_image_release(im);
	vec_release(&p->images);
	hmap_release(&p->image_index);
	hmap_init(&p->image_index, sizeof(uint64_t));
	release_cells(p);
	p->moment_cnt = p->entry_cnt = 0;
}

void stack_past_free(struct stack_past *p)
{
	if (!p)
		return;
	stack_past_forget(p);
	hmap_release(&p->image_index);
	free(p);
}

uint64_t stack_past_due_ns(const struct stack_past *p)
{
	return p->due_ns;
}

static void drop_moments(struct stack_past *p, const bool *goes)
{
	uint8_t begin_at[STACK_PAST_MOMENTS_CAP];
	int16_t end_at[STACK_PAST_MOMENTS_CAP];
	struct past_image *im;
	size_t kept = 0;

	for (size_t i = 0; i < p->moment_cnt; i++) {
		begin_at[i] = (uint8_t)kept;
		if (!goes[i])
			p->moments[kept++] = p->moments[i];
		end_at[i] = (int16_t)((int)kept - 1);
	}
	if (kept == p->moment_cnt)
		return;
	p->moment_cnt = kept;
	p->entry_cnt = 0;
	vec_each(&p->images, im) {
		past_image_remap(im, begin_at, end_at);
		p->entry_cnt += past_image_entries(im);
	}
}

/* Remove moments older than a day, and those that their neighbours make up for; the newest one stays. */
static void thin(struct stack_past *p, uint64_t now_ns)
{
	bool goes[STACK_PAST_MOMENTS_CAP] = { false };
	uint64_t before_ns = 0;
	size_t left = p->moment_cnt;

	for (size_t i = 0; i + 1 < p->moment_cnt; i++) {
		uint64_t at_ns = p->moments[i].time_ns, age_ns = now_ns - at_ns;

		goes[i] = age_ns > STACK_PAST_NS ||
			  (before_ns && p->moments[i + 1].time_ns - before_ns <= age_ns / AGE_PART);
		if (!goes[i])
			before_ns = at_ns;
		left -= goes[i];
	}
	/* Happens only if the interval of moments is set very short. */
	for (size_t i = 0; left >= STACK_PAST_MOMENTS_CAP; i++) {
		left -= !goes[i];
		goes[i] = true;
	}
	drop_moments(p, goes);
}

void stack_past_begin(struct stack_past *p, const struct stack_past_moment *now)
{
	struct past_image *im;

	thin(p, now->time_ns);
	p->moments[p->moment_cnt++] = *now;
	vec_each(&p->images, im)
		im->is_named = false;
	p->last_image = p->new_cnt = 0;
	/* growing it later would need the room twice; without room now, that is tried */
	(void)vec_reserve(&p->cells, p->expected_cnt + p->expected_cnt / 8 + 1);
}

bool stack_past_is_full(const struct stack_past *p)
{
	return p->images.cnt >= STACK_PAST_IMAGES_CAP;
}

struct past_image *past_find(const struct stack_past *p, uint64_t image)
{
	const uint64_t *known = hmap_get(&p->image_index, &image);

	return known ? &p->images.data[*known] : NULL;
}

int stack_past_name_image(struct stack_past *p, uint64_t image, uint64_t since_ns)
{
	struct past_image *im = past_find(p, image);
	struct past_image fresh = { .image = image,
				    .since_ns = since_ns,
				    .first = (uint8_t)(p->moment_cnt - 1),
				    .is_named = true };

	if (im && im->since_ns == since_ns) {
		im->is_named = true;
		return 0;
	}
	if (im) {
		p->entry_cnt -= past_image_entries(im);
		past_image_release(im);
		*im = fresh;
		return 0;
	}
	if (stack_past_is_full(p))
		return -ENOSPC;
	if (vec_push(&p->images, fresh))
		return -ENOMEM;
	return hmap_put(&p->image_index, &image, p->images.cnt - 1);
}

/* Return the first moment that is neither before the allocation nor before the image was known. */
static size_t first_moment(const struct stack_past *p, const struct past_image *im,
			   uint64_t alloc_ns)
{
	size_t low = im->first, high = p->moment_cnt;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (p->moments[mid].time_ns < alloc_ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool is_same(const struct past_cell_key *a, const struct past_cell_key *b)
{
	return a->stack_id == b->stack_id && a->context_id == b->context_id &&
	       a->image == b->image && a->first == b->first;
}

/* Stack ids are hashes already; the other parts are small numbers. */
static uint32_t *find_slot(const struct stack_past *p, const struct past_cell_key *key)
{
	const uint64_t k = 0x9e3779b97f4a7c15ULL;
	uint64_t h =
		(((uint64_t)key->context_id << 24 ^ (uint64_t)key->image << 8 ^ key->first) * k ^
		 key->stack_id) *
		k;
	size_t mask = ((size_t)1 << p->slot_bits) - 1, i = h >> (64 - p->slot_bits);

	while (p->slots[i] && !is_same(&p->cells.data[p->slots[i] - 1].key, key))
		i = (i + 1) & mask;
	return &p->slots[i];
}

/* Make room for one more cell. -ENOMEM. */
static int make_slots(struct stack_past *p)
{
	unsigned bits = p->slot_bits ? p->slot_bits + 1 : SLOT_BITS_LEAST;
	uint32_t *slots;

	if (p->slot_bits && p->cells.cnt < (size_t)1 << (p->slot_bits - 1))
		return 0;
	slots = calloc((size_t)1 << bits, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(p->slots);
	p->slots = slots;
	p->slot_bits = bits;
	for (size_t i = 0; i < p->cells.cnt; i++)
		*find_slot(p, &p->cells.data[i].key) = (uint32_t)i + 1;
	return 0;
}

/* Return the index of the cell; -ENOMEM. Without room the sample goes to the rest: its stack was there before, or
 * is new. */
static int64_t get_cell(struct stack_past *p, const struct past_image *im,
			struct past_cell_key *key)
{
	uint32_t *slot;
	bool is_new;

	if (make_slots(p))
		return -ENOMEM;
	slot = find_slot(p, key);
	is_new = !*slot && !past_image_row(im, key->stack_id, key->context_id);
	if (is_new && p->new_cnt++ >= NEW_CELLS_CAP) {
		key->stack_id = STACK_PAST_REST;
		key->context_id = 0;
		slot = find_slot(p, key);
	}
	if (!*slot) {
		if (vec_push(&p->cells, (struct past_cell){ .key = *key }))
			return -ENOMEM;
		*slot = (uint32_t)p->cells.cnt;
	}
	return *slot - 1;
}

int stack_past_add(struct stack_past *p, const struct history_key *key, uint64_t alloc_ns,
		   uint64_t size_bytes, double probability)
{
	double n = (double)size_bytes;
	struct past_cell_key cell = { .stack_id = key->stack_id,
				      .context_id = (uint32_t)key->context_id };
	const struct past_image *im = NULL;
	struct past_sums *sums;
	size_t first;
	int64_t at;

	if (p->last_image < p->images.cnt)
		im = &p->images.data[p->last_image];
	if (!im || im->image != key->image)
		im = past_find(p, key->image);
	if (!im || !im->is_named)
		return 0;
	p->last_image = (size_t)(im - p->images.data);
	cell.image = (uint16_t)p->last_image;
	first = first_moment(p, im, alloc_ns);
	if (first >= p->moment_cnt)
		return 0;
	cell.first = (uint8_t)first;
	at = get_cell(p, im, &cell);
	if (at < 0)
		return (int)at;
	sums = &p->cells.data[at].sums;
	sums->samples++;
	sums->bytes += n / probability;
	sums->variance += n * n * (1 - probability) / (probability * probability);
	sums->objects += 1 / probability;
	return 0;
}

static int compare_cells(const void *a, const void *b)
{
	const struct past_cell_key *x = &((const struct past_cell *)a)->key;
	const struct past_cell_key *y = &((const struct past_cell *)b)->key;

	if (x->stack_id != y->stack_id)
		return x->stack_id < y->stack_id ? -1 : 1;
	if (x->context_id != y->context_id)
		return x->context_id < y->context_id ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

static size_t most_of(size_t a, size_t b)
{
	return a > b ? a : b;
}

/* The cells of an image, sorted. */
struct image_cells {
	struct past_cell *data;
	size_t cnt, cap; /* like VEC() */
};

/* An image may use its part of the room, or half of what is free when the others are counted with at least their
 * parts. */
static int update_image(struct stack_past *p, struct past_image *im,
			const struct image_cells *cells, size_t part, size_t *taken)
{
	size_t room = part;
	int err;

	p->entry_cnt -= past_image_entries(im);
	*taken -= most_of(past_image_entries(im), part);
	if (*taken < STACK_PAST_ENTRIES_CAP)
		room = most_of(part, (STACK_PAST_ENTRIES_CAP - *taken) / 2);
	err = past_image_update(im, cells->data, cells->cnt, (uint8_t)(p->moment_cnt - 1), room);
	p->entry_cnt += past_image_entries(im);
	*taken += most_of(past_image_entries(im), part);
	return err;
}

/* Return indexes of cells, grouped by image; those of image i end at ret_end[i]. Sorting the cells would need as
 * much room again. */
static uint32_t *order_cells(const struct stack_past *p, uint32_t ret_end[STACK_PAST_IMAGES_CAP])
{
	uint32_t *order = calloc(p->cells.cnt + 1, sizeof(*order)), end = 0;
	const struct past_cell *c;

	if (!order)
		return NULL;
	memset(ret_end, 0, STACK_PAST_IMAGES_CAP * sizeof(*ret_end));
	vec_each(&p->cells, c)
		ret_end[c->key.image]++;
	for (size_t i = 0; i < p->images.cnt; i++) {
		end += ret_end[i];
		ret_end[i] = end - ret_end[i];
	}
	for (size_t i = 0; i < p->cells.cnt; i++)
		order[ret_end[p->cells.data[i].key.image]++] = (uint32_t)i;
	return order;
}

static int update_images(struct stack_past *p)
{
	size_t part = STACK_PAST_ENTRIES_CAP / most_of(p->images.cnt, 1), taken = 0;
	uint32_t end[STACK_PAST_IMAGES_CAP], *order = order_cells(p, end), at = 0;
	struct image_cells cells = { 0 };
	struct past_image *im;
	int err = order ? 0 : -ENOMEM;

	vec_each(&p->images, im)
		taken += most_of(past_image_entries(im), part);
	for (size_t i = 0; i < p->images.cnt && !err; i++) {
		cells.cnt = 0;
		for (; at < end[i] && !err; at++)
			err = vec_push(&cells, p->cells.data[order[at]]);
		if (cells.cnt)
			qsort(cells.data, cells.cnt, sizeof(*cells.data), compare_cells);
		if (!err)
			err = update_image(p, &p->images.data[i], &cells, part, &taken);
	}
	vec_release(&cells);
	free(order);
	return err;
}

static int drop_unnamed(struct stack_past *p)
{
	size_t kept = 0;
	int err = 0;

	for (size_t i = 0; i < p->images.cnt; i++) {
		struct past_image *im = &p->images.data[i];

		if (im->is_named) {
			p->images.data[kept++] = *im;
			continue;
		}
		p->entry_cnt -= past_image_entries(im);
		past_image_release(im);
	}
	if (kept == p->images.cnt)
		return 0;
	p->images.cnt = kept;
	hmap_release(&p->image_index);
	hmap_init(&p->image_index, sizeof(uint64_t));
	for (size_t i = 0; i < kept && !err; i++)
		err = hmap_put(&p->image_index, &p->images.data[i].image, i);
	return err;
}

/* A random number: at fixed intervals, a program that works in steps would be seen in another phase each time,
 * which would pass for growth. */
static uint64_t draw(struct stack_past *p)
{
	p->seed ^= p->seed << 13;
	p->seed ^= p->seed >> 7;
	p->seed ^= p->seed << 17;
	return p->seed >> 16;
}

int stack_past_end(struct stack_past *p, uint64_t took_ns)
{
	uint64_t interval_ns = p->interval_ns;
	int err;

	if (took_ns * COST_PART > interval_ns)
		interval_ns = took_ns * COST_PART;
	p->due_ns = p->moments[p->moment_cnt - 1].time_ns + interval_ns - interval_ns / 4 +
		    draw(p) % (interval_ns / 2 + 1);
	p->expected_cnt = p->cells.cnt;
	err = update_images(p);
	if (!err)
		err = drop_unnamed(p);
	release_cells(p);
	if (err)
		stack_past_forget(p);
	return err;
}
