/* SPDX-License-Identifier: MIT */
/*
 * pprof.h - profile <-> gzip-compressed profile.proto.
 */
#ifndef HT_PROFILE_PPROF_H
#define HT_PROFILE_PPROF_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct profile;

/* Writes to fd from its current position. */
int pprof_write(const struct profile *p, int fd);
/* What pprof_write() would write, before compression: backends bound that. -ENOMEM. */
int pprof_bytes(const struct profile *p, uint64_t *ret);
/* Also the text forms of import.h. -EBADMSG with *why filled, its offset or line too: not a profile, or cut off. */
int pprof_read(int fd, struct profile **ret, struct err *why);
int pprof_read_mem(const void *data, size_t bytes, struct profile **ret, struct err *why);

#endif
