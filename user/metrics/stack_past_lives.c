/* SPDX-License-Identifier: MIT */
/* stack_past_lives.c - sorts lives, and reduces their moments. Internal to stack_past.c. */
#include <string.h>

#include "metrics/stack_past_priv.h"

static bool is_before(const struct past_life *a, const struct past_life *b)
{
	return a->first != b->first ? a->first < b->first : a->last < b->last;
}

size_t past_tidy(struct past_life *lives, size_t cnt)
{
	size_t kept = 0;

	for (size_t i = 0; i < cnt; i++) {
		const struct past_life life = lives[i];
		size_t at = kept;

		while (at && is_before(&life, &lives[at - 1]))
			at--;
		if (at && !is_before(&lives[at - 1], &life)) {
			lives[at - 1].samples += life.samples;
			lives[at - 1].bytes += life.bytes;
			lives[at - 1].variance += life.variance;
			lives[at - 1].objects += life.objects;
			continue;
		}
		memmove(&lives[at + 1], &lives[at], (kept - at) * sizeof(*lives));
		lives[at] = life;
		kept++;
	}
	return kept;
}

void past_image_remap(struct past_image *im, const uint8_t *begin_at, const int16_t *end_at)
{
	struct past_life *from = im->lives, *to = im->lives;

	im->first = begin_at[im->first];
	for (uint32_t i = 0; i < im->row_cnt; i++) {
		struct past_row *row = &im->rows[i];
		size_t kept = 0;

		row->known = begin_at[row->known];
		for (uint32_t k = 0; k < row->life_cnt; k++) {
			struct past_life life = *from++;
			int last = life.last == PAST_OPEN ? PAST_OPEN : end_at[life.last];

			life.first = begin_at[life.first];
			if (life.first > last)
				continue;
			life.last = (uint8_t)last;
			to[kept++] = life;
		}
		row->life_cnt = (uint32_t)past_tidy(to, kept);
		to += row->life_cnt;
	}
	im->life_cnt = (uint32_t)(to - im->lives);
}
