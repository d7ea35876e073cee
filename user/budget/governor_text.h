/* SPDX-License-Identifier: MIT */
/*
 * governor_text.h - what the governor did, in words: for the log, and as comments of a profile.
 */
#ifndef HT_BUDGET_GOVERNOR_TEXT_H
#define HT_BUDGET_GOVERNOR_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "budget/governor_record.h"

struct profile;

/* Is something given up? */
bool governor_step_is_down(const struct governor_step *step);
void governor_history_add(struct governor_history *h, const struct governor_step *step);

#define GOVERNOR_TEXT_CAP 512
/* "after 2.1 s: stopped watching frees (...): in-use is unknown". has_advice: and by what it is known.
 * Returns buf. */
char *governor_step_words(const struct governor_step *step, bool has_advice, char *buf,
			  size_t buf_bytes);

/* What a process cost, and the steps. pid 0: all that the profile
 * is of. */
int governor_comment_unit(struct profile *p, pid_t pid, const struct governor_record *r);

#endif
