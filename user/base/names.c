/* SPDX-License-Identifier: MIT */
/* names.c - see names.h. Of the table of edit distances three rows are kept. */
#include "base/names.h"

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

/* Only the last star is ever tried again, so the time is at most the product of the lengths. */
bool glob_match(const char *pattern, size_t pattern_len, const char *text, size_t text_len)
{
	size_t p = 0, t = 0, after_star = 0, taken = 0;
	bool has_star = false;

	while (t < text_len) {
		if (p < pattern_len && pattern[p] == '*') {
			has_star = true;
			after_star = ++p;
			taken = t;
		} else if (p < pattern_len && pattern[p] == text[t]) {
			p++;
			t++;
		} else if (has_star) { /* the star takes one more */
			p = after_star;
			t = ++taken;
		} else {
			return false;
		}
	}
	while (p < pattern_len && pattern[p] == '*')
		p++;
	return p == pattern_len;
}

bool begins_with_one_of(const char *text, const char *const *list, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		if (begins(text, list[i]))
			return true;
	return false;
}

bool equals_one_of(const char *text, const char *const *list, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		if (!strcmp(text, list[i]))
			return true;
	return false;
}

bool has_ending(const char *path, const char *ending)
{
	size_t len = strlen(path), n = strlen(ending);

	return len >= n && !strcmp(path + len - n, ending);
}

int ending_meaning(const char *path, const struct ending *endings, size_t cnt, int none)
{
	for (size_t i = 0; i < cnt; i++)
		if (has_ending(path, endings[i].text))
			return endings[i].meaning;
	return none;
}

bool has_unwritten_ending(const char *path)
{
	size_t len = strlen(path);

	return (len >= 4 && !strcasecmp(path + len - 4, ".svg")) ||
	       has_ending(path, ".speedscope.json");
}
