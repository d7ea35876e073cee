/* SPDX-License-Identifier: MIT */
/* read_option.h - getopt_long() that says in one sentence what is wrong, the same in every command. */
#ifndef HT_CONFIG_READ_OPTION_H
#define HT_CONFIG_READ_OPTION_H

#include <getopt.h>
#include <stddef.h>

/* A long option whose val is this or more is for tests and comparisons: it is never suggested. */
#define READ_OPTION_HIDDEN 0x10000
#define READ_OPTION_WHY_BYTES 512

/*
 * The next option, as getopt_long() returns it; -1: no more. The letters begin with ":" or "+:".
 * '?': it is unknown, ambiguous, lacks its value or has one too many, and why says so. Prints nothing.
 */
int read_option(int argc, char **argv, const char *letters, const struct option *longs,
		char why[READ_OPTION_WHY_BYTES]);

#endif
