/* SPDX-License-Identifier: MIT */
/* find_program.h - which file a command name means, and which interpreter a script names in its first line. */
#ifndef HT_PROC_FIND_PROGRAM_H
#define HT_PROC_FIND_PROGRAM_H

struct err;

/*
 * Find the path that execvp would run: cmd itself when it has a slash, else the first executable file of that
 * name in PATH. -ENOENT; -EACCES: such a file exists but may not be executed; -EISDIR. *ret is malloc'ed.
 */
int find_program(const char *cmd, char **ret);

#define SCRIPT_LINE_BYTES 256

/* "#!interp arg", parsed in place as the kernel does. */
struct script_line {
	char text[SCRIPT_LINE_BYTES];
	const char *interp;
	const char *arg; /* the rest of the line, NULL when empty */
};
/* -ENOEXEC: not a script. */
int script_line_read(const char *path, struct script_line *ret);

/* Write a sentence for the user: why cmd could not be started, and what to do. Returns its text. */
const char *find_program_explain(const char *cmd, int err, struct err *why);

#endif
