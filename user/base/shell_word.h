/* SPDX-License-Identifier: MIT */
/* shell_word.h - words of command lines that a reader is to copy. */
#ifndef HT_BASE_SHELL_WORD_H
#define HT_BASE_SHELL_WORD_H

#include <stdio.h>

/* As a shell takes it for one word: in quotes where that is needed. Controls stay: see printable.h. */
void shell_word_put(const char *word, FILE *out);

#endif
