/* SPDX-License-Identifier: MIT */
/*
 * stack_profile.h - what the stacks of a process held at moments that are over, as profiles with names: of two moments,
 * of the last one with what was before it, and the past of a profile of now. Slow, as profile_file.h: for a child.
 */
#ifndef HT_SERVE_STACK_PROFILE_H
#define HT_SERVE_STACK_PROFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct history;
struct profile;
struct profile_source;

/* Two moments of stack_past_moments(), by their time; and what they are called. */
struct stack_moments {
	uint64_t before_ns, after_ns;
	char before[32], after[32];
};

/*
 * To be compared: the error bars are of what is not the same in both. -ENOENT: nothing is kept of the process, or not of
 * these moments any more. -ETIME: as profile_build().
 */
int stack_profile_pair(const struct profile_source *src, pid_t pid, const struct stack_moments *at,
		       struct profile *ret[2]);
/* What is kept, with all moments. -ENOENT: nothing is. */
int stack_profile_growth(const struct profile_source *src, pid_t pid, struct profile **ret);

#define STACK_PROFILE_HOUR_NS (3600 * 1000000000ULL)
/* What an image held in the last hour, and not before since_ns. NULL: nothing is kept. 0 or -ENOMEM. */
int stack_profile_history(const struct profile_source *src, uint64_t image, uint64_t since_ns,
			  struct history **ret, bool *ret_is_partial);

#endif
