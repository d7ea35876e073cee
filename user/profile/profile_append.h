/* SPDX-License-Identifier: MIT */
/* profile_append.h - append samples of one profile to another: for sums and differences of profiles. Pure. */
#ifndef HT_PROFILE_PROFILE_APPEND_H
#define HT_PROFILE_PROFILE_APPEND_H

#include <stddef.h>
#include <stdint.h>

struct profile;

/*
 * Append the samples with these indexes. Values: those of the types that `to` has (0 where `from` lacks the type), each
 * times sign (1 or -1). Stacks and labels are copied and, if sign is 1, the data of the error bars; no history, ages or
 * bins. Nothing is merged: readers sum up by name. 0 or -ENOMEM; then `to` must be thrown away.
 */
int profile_append(struct profile *to, const struct profile *from, const uint32_t *samples,
		   size_t cnt, int sign);

#endif
