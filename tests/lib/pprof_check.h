/* SPDX-License-Identifier: MIT */
/* pprof_check.h - the rules of the profiles that heaptap writes. */
#ifndef TEST_PPROF_CHECK_H
#define TEST_PPROF_CHECK_H

#include <stddef.h>

struct err;

/*
 * Ids, strings, references, UTF-8, mappings with lines, one value per label key. 0, or -EBADMSG with the first
 * broken rule in why.
 */
int pprof_check(const void *data, size_t bytes, struct err *why);

#endif
