/* SPDX-License-Identifier: MIT */
/*
 * whom.h - finds the processes to record: turns what the command line says into pids.
 *
 * Processes are named by pid, or by rules, which are those of `serve`: of each kind that is given one has to match.
 * Rules are looked up once. Rules never select heaptap itself.
 */
#ifndef HT_RECORD_WHOM_H
#define HT_RECORD_WHOM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/vec.h"

struct err;

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
/* Are all words pids? */
bool whom_are_pids(char *const operands[]);
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
 * have been meant: heaptap's command, with the pids of w. false: they are a command.
 */
bool whom_is_mistaken(const char *command, const struct whom *w, char *const operands[],
		      struct err *why);

#endif
