/* SPDX-License-Identifier: MIT */
/*
 * loaders.h - of programs that are held at an exec (guardian/exec_hold.h): their loaders, probed where they tell
 * debuggers that libraries have come.
 */
#ifndef HT_TRACK_LOADERS_H
#define HT_TRACK_LOADERS_H

#include <stdbool.h>
#include <sys/types.h>

struct engine;
struct guardian;
struct loaders;
struct track_file;
struct track_files;

/* only_pid: nobody else's loader is probed; 0: everybody's. -ENOMEM. */
int loaders_new(struct engine *e, struct guardian *g, pid_t only_pid, struct loaders **ret);
/* Takes the probes out. NULL is fine. */
void loaders_free(struct loaders *l);

/*
 * A process has executed a program and has not begun: its loader is probed from now on, if it has one that
 * tells debuggers. -ENOENT: it has not, or is static.
 */
int loaders_add(struct loaders *l, const struct track_files *files, pid_t pid);
/* Of a file that is forgotten. */
void loaders_forget_file(struct loaders *l, const struct track_file *file);

#endif
