/* SPDX-License-Identifier: MIT */
/*
 * loop.h - the daemon's event loop: signals, ticks, the kernel's events, HTTP, the children that
 * make profiles, and what is pushed. It only waits and hands out turns; each part knows what to
 * do in its own.
 *
 * BPF goes on recording whatever the loop does. What may hold it up for some time: the first look
 * at a large executable (its unwind table is made), taking probes out, and reading the live map
 * for a snapshot.
 */
#ifndef HT_SERVE_LOOP_H
#define HT_SERVE_LOOP_H

#include <stdbool.h>

struct engine;
struct governor;
struct guardian;
struct http_server;
struct saver;
struct loop;
struct profiles;
struct pushes;
struct ticks;
struct slow_files;
struct tracker;

/* What has its turn. */
struct loop_parts {
	struct guardian *guardian;
	struct engine *engine;
	struct tracker *tracker;
	struct governor *governor;
	struct http_server *http;
	struct profiles *profiles;
	struct pushes *pushes;
	struct ticks *rounds;
	struct saver *saver; /* NULL: nothing is saved */
	struct slow_files *slow;
};

/*
 * From here on signals wait for the loop: first of all, so that none of them ends the process while
 * there are probes, or before there is somebody who reloads. can_reload: SIGHUP asks for a reload; else it ends.
 */
int loop_open(bool can_reload, struct loop **ret);
/* Watches what the parts wait for. parts is copied. */
int loop_start(struct loop *l, const struct loop_parts *parts);
/*
 * Until SIGTERM or SIGINT: 0, after last profiles are kept and pushed, for some seconds; a second
 * signal ends that. Or until SIGHUP: 0 and true, to be called again. Says on stderr why it ends.
 * -EPIPE, after the same: the guardian was killed, so that no probe is left. Who has started us starts us anew.
 */
int loop_run(struct loop *l, bool *ret_wants_reload);
/* The descriptors of pushes are about to change... */
void loop_unwatch_pushes(struct loop *l);
/* ... and have changed. */
int loop_watch_pushes(struct loop *l);
/* Does not look at the parts, which may be gone. Signals are as they were before loop_open(). */
void loop_close(struct loop *l);

#endif
