/* SPDX-License-Identifier: MIT */
/*
 * stack_past.h - what the stacks of each process held in the last hour and in the last day: whether they grow, and what
 * changed from one moment to another. Pure; bounded, see stack_past.c.
 *
 * An image is {tgid, generation} of one process between two execs, as in struct history_key: who has a pid after
 * another one has a past of its own.
 */
#ifndef HT_METRICS_STACK_PAST_H
#define HT_METRICS_STACK_PAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/estimate.h"
#include "profile/history.h"

#define STACK_PAST_NS (24 * 3600 * 1000000000ULL) /* what is older is forgotten */
#define STACK_PAST_MOMENTS_CAP 240
/* At the most so many entries in all; as much again, or twice, is needed while a moment is read. */
#define STACK_PAST_ENTRIES_CAP (1 << 18)
#define STACK_PAST_ENTRY_BYTES 24
#define STACK_PAST_IMAGES_CAP 512
/* The stack of what is in none of those that are kept. */
#define STACK_PAST_REST UINT64_MAX

struct stack_past;

struct stack_past_moment {
	uint64_t time_ns; /* on the clock of the samples, which never goes back */
	int64_t epoch_ns; /* what the clock of people said then */
};

/* interval_ns: between moments, when nothing makes them dear. */
int stack_past_new(uint64_t interval_ns, struct stack_past **ret);
void stack_past_free(struct stack_past *p);

/* When the next moment is due; 0: at once. */
uint64_t stack_past_due_ns(const struct stack_past *p);
/* A moment: images are named, then all samples that are live are added, then it is ended. time_ns: before the first was
 * read; later than that of the moment before. */
void stack_past_begin(struct stack_past *p, const struct stack_past_moment *now);
/* An image whose in-use is known, and since when: with another since_ns its past begins anew. 0, -ENOMEM; -ENOSPC: there
 * are too many. */
int stack_past_name_image(struct stack_past *p, uint64_t image, uint64_t since_ns);
/* Samples of images that were not named are left out, and those that were allocated after it began. 0 or -ENOMEM. */
int stack_past_add(struct stack_past *p, const struct history_key *key, uint64_t alloc_ns,
		   uint64_t size_bytes, double probability);
/* Images that were not named are forgotten. took_ns: of CPU time, by reading. 0; -ENOMEM: all is forgotten. */
int stack_past_end(struct stack_past *p, uint64_t took_ns);
/* Nothing is known of the time before. */
void stack_past_forget(struct stack_past *p);

/* Moments at which something is known of that image, the oldest first. Returns their number. */
size_t stack_past_moments(const struct stack_past *p, uint64_t image,
			  const struct stack_past_moment **ret);
/* Is there no room for one more image? */
bool stack_past_is_full(const struct stack_past *p);
/*
 * The moments from from_ns on as a finished history, with those stacks of which all of that is known. To be freed by
 * the caller; ret_is_partial: there are others. -ENOENT: there are no moments.
 */
int stack_past_history(const struct stack_past *p, uint64_t image, uint64_t from_ns,
		       struct history **ret, bool *ret_is_partial);
/*
 * What each stack held at two moments (indexes of those of stack_past_moments()). The variances are only of what is
 * in one of both: the rest is the same in the difference. With one moment twice they are of all that it held.
 * rate_bytes and the variance of objects are left 0.
 */
typedef int (*stack_past_pair_fn)(void *ctx, const struct history_key *key,
				  const struct estimate at[2]);
int stack_past_compare(const struct stack_past *p, uint64_t image, size_t before, size_t after,
		       stack_past_pair_fn fn, void *ctx);
/* Bytes of memory. */
size_t stack_past_bytes(const struct stack_past *p);

#endif
