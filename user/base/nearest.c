/* SPDX-License-Identifier: MIT */
/* nearest.c - the table of edit distances, of which three rows are kept. */
#include "base/nearest.h"

#include <stdint.h>
#include <string.h>

#define MISTAKES_CAP 2

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t edit_distance(const char *a, const char *b)
{
	/* row[i % 3][j]: distance of the first i of a from the first j of b */
	size_t row[3][NEAREST_WORD_CAP + 1];
	size_t a_len = strlen(a), b_len = strlen(b);

	if (a_len > NEAREST_WORD_CAP || b_len > NEAREST_WORD_CAP)
		return SIZE_MAX;
	for (size_t j = 0; j <= b_len; j++)
		row[0][j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		size_t *now = row[i % 3], *last = row[(i - 1) % 3], *before = row[(i + 1) % 3];

		now[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			now[j] = min(last[j - 1] + (a[i - 1] != b[j - 1]),
				     min(last[j], now[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = min(now[j], before[j - 2] + 1);
		}
	}
	return row[a_len % 3][b_len];
}

size_t nearest_name(const char *word, const char *const *names, size_t cnt)
{
	size_t best = cnt, best_mistakes = MISTAKES_CAP + 1;

	for (size_t i = 0; i < cnt; i++) {
		size_t mistakes = edit_distance(word, names[i]);

		if (mistakes < best_mistakes && 2 * mistakes < strlen(word)) {
			best = i;
			best_mistakes = mistakes;
		}
	}
	return best;
}
