/* SPDX-License-Identifier: MIT */
/*
 * launch.h - start a program so that it can be recorded from its first instruction.
 *
 * launch_prepare() creates the process. It has its final pid and waits before execve, so that probes can be
 * attached. launch_go() lets it run. The program gets our stdio, environment and directory, default signal
 * dispositions and an empty signal mask. If we end before launch_go(), for any reason, the process ends too and
 * the program never runs.
 */
#ifndef HT_PROC_LAUNCH_H
#define HT_PROC_LAUNCH_H

#include "base/std.h"

struct err;

/* Read-only for others. */
struct launch {
	pid_t pid;
	char *path; /* the file that is executed: argv[0] as it was found */
	int wait_fd; /* a pidfd: readable when the program has ended */
	/* For launch.c. */
	int go_fd, failed_fd;
	bool is_running, is_reaped;
	int status;
};

/*
 * Look argv[0] up in PATH as a shell does, and check it. -ENOENT, -EACCES, -EISDIR, ...: see
 * find_program_explain(). Errors that only execve can detect come from launch_go().
 */
int launch_prepare(char *const argv[], struct launch **ret);
/* 0: the program runs. A negative errno: execve failed, the process is gone. */
int launch_go(struct launch *l);
/* 0: the program has ended, *ret_status as of waitpid(2). -EAGAIN: still running. */
int launch_reap(struct launch *l, int *ret_status);
/* Before launch_go(): end the process. After it: leave the program alone. */
void launch_free(struct launch *l);

typedef void (*launch_file_fn)(void *ctx, const char *path);
/*
 * Report each file that the program maps at its start, once: its executable (for a script, its interpreter's),
 * the dynamic loader, and every library as the loader itself would find it (LD_PRELOAD, LD_LIBRARY_PATH and
 * all). Nothing of the program is run. Returns their number, or a negative errno when not even the executable
 * is known. Files that could not be found out (foreign loader, timeout, no ELF file) are missing; a mapping
 * event reports them later.
 */
int launch_libraries(char *const argv[], launch_file_fn fn, void *ctx);
/* The same from the text that a loader prints in list mode (pure). */
int launch_parse_list(const char *text, launch_file_fn fn, void *ctx);

/* Which file a command name means, and which interpreter a script names in its first line. */

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
