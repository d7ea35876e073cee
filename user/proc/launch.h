/* SPDX-License-Identifier: MIT */
/*
 * launch.h - start a program so that it can be recorded from its first instruction.
 *
 * launch_prepare() makes the process; it waits, with its final pid, before execve, so that probes
 * can be attached to it. launch_go() lets it run. The program gets our stdio, environment and
 * directory, default signal dispositions and an empty signal mask. If we end before launch_go(),
 * by whatever cause, the process ends too and the program never runs.
 */
#ifndef HT_PROC_LAUNCH_H
#define HT_PROC_LAUNCH_H

#include <stddef.h>
#include <sys/types.h>

struct launch;

/*
 * argv[0] is looked up in PATH as a shell does, and checked. -ENOENT, -EACCES, -EISDIR, ...: see
 * find_program_explain(). What only execve can tell comes from launch_go().
 */
int launch_prepare(char *const argv[], struct launch **ret);
/*
 * What can be told of a program before it is executed: 0, -ENOENT or -EACCES (its interpreter or
 * loader is missing or may not be executed), -ENOTSUP (a 32-bit program), -ELOOP.
 */
int launch_check(const char *path);
/* 0: the program runs. A negative errno: execve failed, the process is gone. */
int launch_go(struct launch *l);
pid_t launch_pid(const struct launch *l);
/* The file that is executed: argv[0] as it was found. */
const char *launch_path(const struct launch *l);
/* A pidfd: readable when the program has ended. */
int launch_wait_fd(const struct launch *l);
/* 0: ended, *ret_status as of waitpid(2). -EAGAIN: still running. */
int launch_reap(struct launch *l, int *ret_status);
/* Before launch_go(): the process is ended. After it: the program is left alone. */
void launch_free(struct launch *l);

typedef void (*launch_file_fn)(void *ctx, const char *path);
/*
 * The files that the program maps at its start: its executable (for a script, its interpreter's),
 * the dynamic loader, and every library as the loader itself would find it (LD_PRELOAD,
 * LD_LIBRARY_PATH and all), each once. Nothing of the program is run. Returns how many, or a
 * negative errno when not even the executable is known. What could not be found out (foreign
 * loader, timeout, no ELF file) is missing; a mapping event tells it later.
 */
int launch_libraries(char *const argv[], launch_file_fn fn, void *ctx);
/* The same from the text that a loader in list mode prints (pure). */
int launch_parse_list(const char *text, launch_file_fn fn, void *ctx);

#endif
