/* SPDX-License-Identifier: MIT */
/*
 * cmd/record_settings.h - what commands that record share: whom to record, at what cost, how exactly.
 *
 * command is the name of the command that logs errors.
 */
#ifndef HT_CMD_RECORD_SETTINGS_H
#define HT_CMD_RECORD_SETTINGS_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "cmd/option.h"
#include "record/recorder.h"
#include "record/whom.h"

struct err;

struct record_settings {
	struct recorder_options recorder;
	struct whom whom; /* release it */
	/* Option values that the members above are made of. */
	struct texts pids;
	struct option_limit max_overhead;
	bool tap_exactly; /* --tap --rate 1 is accepted */
};

/* Check the value of --pid. */
int record_settings_check_pids(const char *text, struct err *why);
/* 0 or -EINVAL. */
int record_settings_settle(struct record_settings *s, const char *command,
			   const struct option_args *args);
bool record_settings_has_targets(const struct record_settings *s);
/* Do the operands go on with the pids of -p: "-p 12 13", as a shell makes it of -p $(pidof NAME)? */
bool record_settings_has_more_pids(const struct record_settings *s, char *const *operands);
/* More pids, or the command to start, or none; operands[-1] is the word before. 0 or -EINVAL. */
int record_settings_operands(struct record_settings *s, const char *command, char **operands);
/* ret must stay as long as the settings are used. 0, -ESRCH or -EINVAL. */
int record_settings_find(struct record_settings *s, const char *command, struct whom_found *ret);

/* tap_preview.c: what a tap would change in a process; changes nothing. 0: nothing visible from outside forbids it. Else
 * it also printed why the tap would be refused. */
int tap_preview(pid_t pid, FILE *out);

#endif
