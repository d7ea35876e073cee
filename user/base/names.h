/* SPDX-License-Identifier: MIT */
/* names.h - names as people give them: mistyped, with '*', with a beginning or an ending that says what it is. */
#ifndef HT_BASE_NAMES_H
#define HT_BASE_NAMES_H

#include "base/std.h"

/*
 * The number of single mistakes between two words: a character left out, added, changed, or swapped with its neighbour.
 * SIZE_MAX for words of more than NEAREST_WORD_CAP bytes.
 */
size_t edit_distance(const char *a, const char *b);
#define NEAREST_WORD_CAP 63

/*
 * The index of the name that word most likely stands for: the one with the fewest mistakes (the first of equals), if
 * they are at most two and fewer than half of the word's length. cnt when there is none.
 */
size_t nearest_name(const char *word, const char *const *names, size_t cnt);

/* Does the pattern match all of text? Only '*' is special: it matches any characters, or none. Neither needs a 0 at the
 * end. */
bool glob_match(const char *pattern, size_t pattern_len, const char *text, size_t text_len);

static inline bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}
bool begins_with_one_of(const char *text, const char *const *list, size_t cnt);
bool equals_one_of(const char *text, const char *const *list, size_t cnt);

struct ending {
	const char *text; /* ".html" */
	int meaning;
};

bool has_ending(const char *path, const char *ending);
/* Return the meaning of the first ending that path has; none: of none. */
int ending_meaning(const char *path, const struct ending *endings, size_t cnt, int none);
/* Is it a form that heaptap does not write, so that a file of any other under this name would mislead? */
bool has_unwritten_ending(const char *path);

#endif
