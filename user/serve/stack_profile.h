/* SPDX-License-Identifier: MIT */
/*
 * stack_profile.h - what the stacks of a process held at past moments, as profiles with names: two moments; the
 * last one with its past; and the past for a profile of now. Slow, like profile_file.h: run it in a child.
 */
#ifndef HT_SERVE_STACK_PROFILE_H
#define HT_SERVE_STACK_PROFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct history;
struct profile;
struct profile_source;

/* Two moments of stack_past_moments(), by their time, and their names. */
struct stack_moments {
	uint64_t before_ns, after_ns;
	char before[32], after[32];
};

/*
 * Make the profiles of two moments, to be compared: their error bars cover only what differs between them. -ENOENT:
 * nothing is kept of the process, or not of these moments any more. -ETIME: as profile_build().
 */
int stack_profile_pair(const struct profile_source *src, pid_t pid, const struct stack_moments *at,
		       struct profile *ret[2]);
/* Make the profile of one moment, to be compared with one that is saved. -ENOENT, -ETIME: as above. */
int stack_profile_at(const struct profile_source *src, pid_t pid, uint64_t time_ns,
		     struct profile **ret);
/* Make a profile of what is kept, with all moments. -ENOENT: nothing is kept. */
int stack_profile_growth(const struct profile_source *src, pid_t pid, struct profile **ret);

#define STACK_PROFILE_HOUR_NS (3600 * 1000000000ULL)
/* What an image held in the last hour, but not before since_ns. NULL: nothing is kept. 0 or -ENOMEM. */
int stack_profile_history(const struct profile_source *src, uint64_t image, uint64_t since_ns,
			  struct history **ret, bool *ret_is_partial);

#endif
