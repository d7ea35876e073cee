/* SPDX-License-Identifier: MIT */
/*
 * pprof.h - profile <-> gzip-compressed profile.proto.
 */
#ifndef HT_PROFILE_PPROF_H
#define HT_PROFILE_PPROF_H

#include <stddef.h>
#include <stdint.h>

struct profile;

struct format_error {
	uint64_t offset; /* in the (decompressed) input */
	uint64_t line; /* from 1, where the input is one of import.h's texts; else 0 */
	char text[256]; /* what is wrong, for the user */
};

/* Writes to fd from its current position. */
int pprof_write(const struct profile *p, int fd);
/* What pprof_write() would write, before compression: backends bound that. -ENOMEM. */
int pprof_bytes(const struct profile *p, uint64_t *ret);
/* Also the text forms of import.h. -EBADMSG with *err filled: not a profile, or cut off. */
int pprof_read(int fd, struct profile **ret, struct format_error *err);
int pprof_read_mem(const void *data, size_t bytes, struct profile **ret, struct format_error *err);

/*
 * The rules of a valid profile: ids, strings, references, UTF-8, mappings with lines,
 * one value per label key. 0, or -EBADMSG with the first broken rule in err.
 */
int pprof_check(const void *data, size_t bytes, struct format_error *err);

#endif
