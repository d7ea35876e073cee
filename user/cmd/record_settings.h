/* SPDX-License-Identifier: MIT */
/*
 * cmd/record_settings.h - what commands that record share: whom to record, at what cost, how exactly.
 *
 * command is the name of the command that logs errors.
 */
#ifndef HT_CMD_RECORD_SETTINGS_H
#define HT_CMD_RECORD_SETTINGS_H

#include "base/std.h"
#include "base/vec.h"
#include "cmd/option.h"
#include "record/recorder.h"

struct err;

/*
 * Finds the processes to record: turns what the command line says into pids.
 *
 * Processes are named by pid, or by rules, which are those of `serve`: of each kind that is given one has to match.
 * Rules are looked up once. Rules never select heaptap itself.
 */
struct whom {
	VEC(pid_t) pids; /* each once */
	struct texts comms; /* regular expressions */
	struct texts cgroups;
};

void whom_release(struct whom *w);
/* "1" or "1,2,3", also with spaces for the commas, as pidof(8) and pgrep(1) print them. -EINVAL: something else. */
int whom_add_pids(struct whom *w, const char *list);
/* Say what is wrong with such a list: -EINVAL. A name gets the option that works. */
int whom_explain_pids(const char *list, struct err *why);
bool whom_has_rules(const struct whom *w);

struct whom_found {
	VEC(pid_t) pids; /* the named ones first */
	size_t named_cnt;
};
/* -ESRCH: there are none; -EINVAL: an impossible cgroup. A sentence in why. */
int whom_find(const struct whom *w, struct whom_found *ret, struct err *why);

/* The process of a pid, or the only one of exactly this name. -ESRCH: there is none; -ENOTUNIQ: several have that name;
 * -EINVAL: the word is a number that is no pid, or several pids. A sentence in why. */
int whom_find_one(const char *word, pid_t *ret, struct err *why);

/*
 * Are the operands pids, or a name of running programs, rather than a command? Then a sentence in why says what may
 * have been meant: heaptap's command, with its options and the pids of w. false: they are a command.
 */
bool whom_is_mistaken(const char *command, const struct whom *w, const struct option_args *args,
		      char *const operands[], struct err *why);

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
int record_settings_operands(struct record_settings *s, const char *command,
			     const struct option_args *args, char **operands);
/* ret must stay as long as the settings are used. 0, -ESRCH or -EINVAL. */
int record_settings_find(struct record_settings *s, const char *command, struct whom_found *ret);

#endif
