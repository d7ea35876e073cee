/* SPDX-License-Identifier: MIT */
/* nearest.h - the name that a mistyped word may have meant. */
#ifndef HT_BASE_NEAREST_H
#define HT_BASE_NEAREST_H

#include <stddef.h>

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

#endif
