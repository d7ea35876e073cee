/* SPDX-License-Identifier: MIT */
/* stack_past_priv.h - the parts of stack_past.c. Not for others. */
#ifndef HT_METRICS_STACK_PAST_PRIV_H
#define HT_METRICS_STACK_PAST_PRIV_H

#include "base/hmap.h"
#include "base/vec.h"
#include "metrics/stack_past.h"

#define PAST_OPEN UINT8_MAX /* as `last`: still live */

struct past_sums {
	uint64_t samples;
	double bytes, variance, objects;
};

/* This many samples were live from moment `first` to moment `last`, and at no other. */
struct past_life {
	uint8_t first, last;
	uint32_t samples;
	double bytes;
	float variance, objects;
};
_Static_assert(sizeof(struct past_life) == STACK_PAST_ENTRY_BYTES, "the bound holds");
_Static_assert(STACK_PAST_IMAGES_CAP <= UINT16_MAX, "each image has a number");
_Static_assert(STACK_PAST_MOMENTS_CAP < PAST_OPEN, "each moment has a number");

struct past_row {
	uint64_t stack_id;
	uint32_t context_id;
	float rank_bytes; /* what its stack holds, or held; decreases slowly */
	uint32_t life_cnt;
	uint8_t known; /* the moment since when it is kept; before, it was in the rest */
	bool is_flat; /* its ended lives are single moments: good for comparing, not for judging */
};
_Static_assert(sizeof(struct past_row) == STACK_PAST_ENTRY_BYTES, "the bound holds");

/* Rows are sorted by stack and context, the rest last; lives are in the same order of rows, then by first and last. */
struct past_image {
	uint64_t image, since_ns;
	struct past_row *rows;
	struct past_life *lives;
	uint32_t row_cnt, life_cnt;
	uint8_t first; /* the moment since when it is known */
	bool is_named, has_rest;
};

struct past_cell_key {
	uint64_t stack_id;
	uint32_t context_id;
	uint16_t image; /* index */
	uint8_t first;
};

/* What is live at the moment being read, and since which moment. */
struct past_cell {
	struct past_cell_key key;
	struct past_sums sums;
};

struct stack_past {
	uint64_t interval_ns, due_ns, seed;
	struct stack_past_moment moments[STACK_PAST_MOMENTS_CAP];
	size_t moment_cnt;
	VEC(struct past_image) images;
	struct hmap image_index; /* image -> index in images */
	size_t entry_cnt; /* in all images */
	/* While a moment is read: */
	VEC(struct past_cell) cells;
	uint32_t *slots; /* index of a cell + 1; 0: empty. At most half of them are used */
	unsigned slot_bits; /* there are 2^slot_bits slots; 0: none */
	size_t expected_cnt; /* cells of the previous moment */
	size_t new_cnt; /* cells of stacks that are not kept */
	size_t last_image; /* the image added to last, often the next one, too */
};

/* NULL: nothing is known of it. */
struct past_image *past_find(const struct stack_past *p, uint64_t image);

/*
 * Add a moment that has been read: cells are those of the image, sorted by stack, context and first; now is that
 * moment, the last one. At most cap entries are kept. 0 or -ENOMEM.
 */
int past_image_update(struct past_image *im, const struct past_cell *cells, size_t cell_cnt,
		      uint8_t now, size_t cap);
/* Sort lives, which are nearly sorted, by first and last, and merge equal ones. Return how many are left. */
size_t past_tidy(struct past_life *lives, size_t cnt);
/* Adapt lives to removed moments: one that begins at i begins at begin_at[i] from then on, one that ends at i ends
 * at end_at[i]; -1: before all. */
void past_image_remap(struct past_image *im, const uint8_t *begin_at, const int16_t *end_at);
void past_image_release(struct past_image *im);
/* NULL: it is not kept. */
const struct past_row *past_image_row(const struct past_image *im, uint64_t stack_id,
				      uint32_t context_id);

static inline size_t past_image_entries(const struct past_image *im)
{
	return (size_t)im->row_cnt + im->life_cnt;
}

#endif
