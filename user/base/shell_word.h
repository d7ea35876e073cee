/* SPDX-License-Identifier: MIT */
/* shell_word.h - words of command lines that the user is to copy. */
#ifndef HT_BASE_SHELL_WORD_H
#define HT_BASE_SHELL_WORD_H

#include <stdio.h>

/* Write a word so that a shell takes it for one word: in quotes if necessary. Controls stay: see printable.h. */
void shell_word_put(const char *word, FILE *out);

#endif
