/* SPDX-License-Identifier: MIT */
/*
 * std.h - the headers of the C library that most files need, named once (as git's git-compat-util.h does).
 *
 * Every header of user/ that needs one of them includes this, so a source has them through its own header. A source names
 * what tells something about it: sockets, processes, memory, other libraries. And what the C library does not have.
 */
#ifndef HT_BASE_STD_H
#define HT_BASE_STD_H

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define ARRAY_CNT(a) (sizeof(a) / sizeof((a)[0]))

#endif
