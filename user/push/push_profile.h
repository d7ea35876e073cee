/* SPDX-License-Identifier: MIT */
/*
 * push_profile.h - a process's profile to a push target, in the form that its backend keeps most
 * of: Parca gets a series for each scope and thread pool, Pyroscope one with labels at its rows,
 * within its limits (series.h, profile_limit.h).
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

/* What did not go as it was. */
struct push_lost {
	size_t folded_series; /* into scope="(other)" */
	size_t folded_rows, cut_stacks; /* Pyroscope */
};

/*
 * labels: of the process ("job", "node", "pid", "comm", ...). `__name__` and, for Pyroscope,
 * `service_name` (when there is none: the value of "comm") and `__delta__` are added; a name that
 * is there twice keeps its first value. -EINVAL: a name that is none ([a-zA-Z_][a-zA-Z0-9_]*);
 * what push_queue_add() and profile_limit() say.
 */
int push_profile(struct push_queue *q, const struct profile *p, const struct push_label *labels,
		 size_t label_cnt, struct push_lost *ret_lost);
/* The same, but the request is only made, for push_queue_take(). *ret is NULL when the profile is
 * empty; the caller frees it. Does not touch a queue, so that a child process can do it. */
int push_profile_encode(const struct push_target *t, const struct profile *p,
			const struct push_label *labels, size_t label_cnt,
			struct push_lost *ret_lost, uint8_t **ret, size_t *ret_bytes);
bool push_label_name_is_valid(const char *name);

#endif
