/* SPDX-License-Identifier: MIT */
/*
 * push_profile.h - pushes a process's profile to a destination in the form that loses least there: Parca gets a
 * series for each scope and thread pool, Pyroscope one series with labels at its rows, within its limits (series.h,
 * profile_copy.h).
 */
#ifndef HT_PUSH_PROFILE_H
#define HT_PUSH_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "push/push_message.h"

struct profile;
struct push_queue;
struct push_target;

#define PUSH_SERIES_MAX 64

/* What was changed to fit. */
struct push_lost {
	size_t folded_series; /* into scope="(other)" */
	size_t folded_rows, cut_stacks; /* Pyroscope */
};

/*
 * labels: of the process ("job", "node", "pid", "comm", ...). Adds `__name__` and, for Pyroscope, `service_name`
 * (if missing: the value of "comm") and `__delta__`; a name that occurs twice keeps its first value. -EINVAL: not a
 * label name ([a-zA-Z_][a-zA-Z0-9_]*); errors of push_queue_add() and profile_limit().
 */
int push_profile(struct push_queue *q, const struct profile *p, const struct push_label *labels,
		 size_t label_cnt, struct push_lost *ret_lost);
/* The same, but only make the request, for push_queue_take(). *ret is NULL when the profile is empty; the caller
 * frees it. Uses no queue, so a child process can do it. */
int push_profile_encode(const struct push_target *t, const struct profile *p,
			const struct push_label *labels, size_t label_cnt,
			struct push_lost *ret_lost, uint8_t **ret, size_t *ret_bytes);
bool push_label_name_is_valid(const char *name);

#endif
