/* SPDX-License-Identifier: MIT */
/*
 * pprof.h - profile <-> gzip-compressed profile.proto.
 */
#ifndef HT_PROFILE_PPROF_H
#define HT_PROFILE_PPROF_H

#include "base/std.h"

struct err;
struct profile;

/* Write to fd from its current position. */
int pprof_write(const struct profile *p, int fd);
/* Size of what pprof_write() would write, before compression: backends limit that size. -ENOMEM. */
int pprof_bytes(const struct profile *p, uint64_t *ret);
/* Also reads other allocators' text forms. -EBADMSG with *why filled, also its offset or line:
 * not a profile, or cut off. */
int pprof_read(int fd, struct profile **ret, struct err *why);
int pprof_read_mem(const void *data, size_t bytes, struct profile **ret, struct err *why);

/*
 * import.c: heap profiles in the text forms of other allocators.
 *
 * jemalloc's dumps ("heap_v2/N"), gperftools' heap profiles ("heap profile: ... @ heapprofile", heap_v2, growth), and
 * what jeprof --raw and `heaptap report --format heap` make of them: the same with a "--- symbol" section in front.
 *
 * The profile has what the file has: return addresses - 1 at run time, in the mappings of the process, without names
 * except those of a symbol section (profile_symbolize() finds others). Sampled values are weighted while they are read.
 */

/* Does data begin like one of these? Nothing else is looked at. */
bool import_is_text(const void *data, size_t bytes);
/* -EBADMSG with *why and its line: not sound, or cut off. -ENOMEM. Never half a profile. */
int import_text(const void *data, size_t bytes, struct profile **ret, struct err *why);

#endif
