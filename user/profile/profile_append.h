/* SPDX-License-Identifier: MIT */
/* profile_append.h - samples of one profile into another: sums and differences of profiles. Pure. */
#ifndef HT_PROFILE_PROFILE_APPEND_H
#define HT_PROFILE_PROFILE_APPEND_H

#include <stddef.h>
#include <stdint.h>

struct profile;

/*
 * The samples of these indexes, with values of the types that `to` has (0 where `from` has none of that name), each times
 * sign (1 or -1), with stacks, labels and, if sign is 1, what error bars are made from. No history, no ages and no bins. Nothing
 * is merged: readers sum up by name. 0 or -ENOMEM; `to` is to be thrown away then.
 */
int profile_append(struct profile *to, const struct profile *from, const uint32_t *samples,
		   size_t cnt, int sign);

#endif
