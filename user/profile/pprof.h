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

/* Write to fd from its current position. */
int pprof_write(const struct profile *p, int fd);
/* Size of what pprof_write() would write, before compression: backends limit that size. -ENOMEM. */
int pprof_bytes(const struct profile *p, uint64_t *ret);
/* Also reads the text forms of import.h. -EBADMSG with *why filled, also its offset or line:
 * not a profile, or cut off. */
int pprof_read(int fd, struct profile **ret, struct err *why);
int pprof_read_mem(const void *data, size_t bytes, struct profile **ret, struct err *why);

#endif
