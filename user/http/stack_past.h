/* SPDX-License-Identifier: MIT */
/*
 * stack_past.h - what the stacks of each process held in the last hour and the last day: whether they grow, and
 * what changed between two moments. Pure; bounded, see stack_past.c.
 *
 * An image is {tgid, generation} of one process between two execs, as in struct history_key: a process that gets
 * the pid of an ended one has a past of its own.
 */
#ifndef HT_HTTP_STACK_PAST_H
#define HT_HTTP_STACK_PAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/estimate.h"
#include "profile/history.h"

#define STACK_PAST_NS (24 * 3600 * 1000000000ULL) /* older data is forgotten */
#define STACK_PAST_MOMENTS_CAP 240
/* Most entries in all: 6 MiB. While a moment is read, as much again, or twice, is needed. */
#define STACK_PAST_ENTRIES_CAP (3 << 16)
#define STACK_PAST_ENTRY_BYTES 32
#define STACK_PAST_IMAGES_CAP 512
/* The "stack" of everything that is in none of the kept stacks. */
#define STACK_PAST_REST UINT64_MAX

struct stack_past;

struct stack_past_moment {
	uint64_t time_ns; /* on the samples' clock, which never goes back */
	int64_t epoch_ns; /* the same on the wall clock */
};

/* interval_ns: between moments, unless reading them is expensive. */
int stack_past_new(uint64_t interval_ns, struct stack_past **ret);
void stack_past_free(struct stack_past *p);

/* When the next moment is due; 0: at once. */
uint64_t stack_past_due_ns(const struct stack_past *p);
/* Begin a moment: then name the images, add all samples that are live, and end it. time_ns: before the first sample
 * was read, and later than the previous moment. */
void stack_past_begin(struct stack_past *p, const struct stack_past_moment *now);
/* Name an image whose in-use is known, and since when: with another since_ns its past begins anew. 0, -ENOMEM;
 * -ENOSPC: too many images. */
int stack_past_name_image(struct stack_past *p, uint64_t image, uint64_t since_ns);
/* Add a sample. Left out are samples of images that were not named, and those allocated after the moment began. 0
 * or -ENOMEM. */
int stack_past_add(struct stack_past *p, const struct history_key *key, uint64_t alloc_ns,
		   uint64_t size_bytes, double probability);
/* End the moment; images that were not named are forgotten. took_ns: CPU time of reading. 0; -ENOMEM: all is
 * forgotten. */
int stack_past_end(struct stack_past *p, uint64_t took_ns);
/* Forget all that was before. */
void stack_past_forget(struct stack_past *p);

/* The moments at which something is known of that image, the oldest first. Return their number. */
size_t stack_past_moments(const struct stack_past *p, uint64_t image,
			  const struct stack_past_moment **ret);
/* Is there no room for one more image? */
bool stack_past_is_full(const struct stack_past *p);
/*
 * Make a finished history of the moments from from_ns on, with those stacks that are known at all of them; the
 * caller frees it. ret_is_partial: there are other stacks. -ENOENT: there are no moments.
 */
int stack_past_history(const struct stack_past *p, uint64_t image, uint64_t from_ns,
		       struct history **ret, bool *ret_is_partial);
/*
 * Report what each stack held at two moments (indexes in stack_past_moments()). The variances cover only what is in
 * one of the two: the rest is the same in the difference. With the same moment twice they cover all that it held, and
 * so do those of STACK_PAST_REST, which are too large rather than too small. rate_bytes and the variance of objects
 * are left 0.
 */
typedef int (*stack_past_pair_fn)(void *ctx, const struct history_key *key,
				  const struct estimate at[2]);
int stack_past_compare(const struct stack_past *p, uint64_t image, size_t before, size_t after,
		       stack_past_pair_fn fn, void *ctx);
/* Bytes of memory in use. */
size_t stack_past_bytes(const struct stack_past *p);

#endif
