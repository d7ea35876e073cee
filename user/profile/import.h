/* SPDX-License-Identifier: MIT */
/*
 * import.h - heap profiles in the text forms of other allocators.
 *
 * jemalloc's dumps ("heap_v2/N"), gperftools' heap profiles ("heap profile: ... @ heapprofile", heap_v2, growth), and
 * what jeprof --raw and `heaptap report --format heap` make of them: the same with a "--- symbol" section in front.
 *
 * The profile has what the file has: return addresses - 1 at run time, in the mappings of the process, without names
 * except those of a symbol section (profile_symbolize() finds others). Sampled values are weighted while they are read.
 */
#ifndef HT_PROFILE_IMPORT_H
#define HT_PROFILE_IMPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "profile/pprof.h"

struct err;
struct profile;

/* Does data begin like one of these? Nothing else is looked at. */
bool import_is_text(const void *data, size_t bytes);
/* -EBADMSG with *why and its line: not sound, or cut off. -ENOMEM. Never half a profile. */
int import_text(const void *data, size_t bytes, struct profile **ret, struct err *why);

#endif
