/* SPDX-License-Identifier: MIT */
/* daemon_priv.h - the parts of daemon.c: the recording side, the event loop, the HTTP side. */
#ifndef HT_SERVE_DAEMON_PRIV_H
#define HT_SERVE_DAEMON_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "serve/daemon.h"

struct daemon_loop;
struct engine;
struct follow;
struct governor;
struct guardian;
struct ht_event;
struct http_server;
struct live_view;
struct result_source;
struct profiles;
struct pushes;
struct requests;
struct saver;
struct session;
struct slow_files;
struct texts;
struct ticks;
struct tracker;

/* capture.c: the daemon's session (session.h): which processes may be tapped, which share probes. */

struct capture;

/* Check what the kernel can do. The capture owns *ret_session. */
int capture_new(const struct daemon_options *opts, struct capture **ret,
		struct session **ret_session);
/* Start the session; its events go to on_event with ctx. After a failure call capture_free() all the same. */
int capture_start(struct capture *c, const struct daemon_options *opts, struct guardian *guardian,
		  void (*on_event)(void *ctx, const struct ht_event *event), void *ctx);
/* Free the session, too. NULL is fine. */
void capture_free(struct capture *c);

/*
 * daemon_loop.c: the daemon's event loop: signals, ticks, the kernel's events, HTTP, the children that make
 * profiles, and pushes. The loop only waits and hands out turns; each part knows what to do in its own.
 *
 * BPF goes on recording, whatever the loop does. The loop may be held up for some time by: the first read of a
 * large executable (its unwind table is made), taking probes out, and reading the live map for a snapshot.
 */

/* The parts that get turns. */
struct daemon_loop_parts {
	struct guardian *guardian;
	struct engine *engine;
	struct tracker *tracker;
	struct governor *governor;
	struct http_server *http;
	struct profiles *profiles;
	struct pushes *pushes;
	struct ticks *ticks;
	struct saver *saver; /* NULL: nothing is saved */
	struct slow_files *slow;
};

/*
 * Let the loop handle signals from here on. Call it first, so that no signal ends the process while probes are in,
 * or before a reload can be handled. can_reload: SIGHUP asks for a reload; else it ends heaptap.
 */
int daemon_loop_open(bool can_reload, struct daemon_loop **ret);
/* Watch the descriptors that the parts wait for. parts is copied. */
int daemon_loop_start(struct daemon_loop *l, const struct daemon_loop_parts *parts);
/*
 * Run until SIGTERM or SIGINT: 0, after saving and pushing last profiles for some seconds, which a second signal
 * cuts short. After SIGHUP: 0 and true; call it again. Log why it ends. -EPIPE, after the same: the guardian was
 * killed, so no probe is left, and heaptap's starter starts it anew.
 */
int daemon_loop_run(struct daemon_loop *l, bool *ret_wants_reload);
/* Call before the descriptors of pushes change... */
void daemon_loop_unwatch_pushes(struct daemon_loop *l);
/* ... and after they have changed. */
int daemon_loop_watch_pushes(struct daemon_loop *l);
/* Does not use the parts, which may be gone. Restores the signals as before daemon_loop_open(). */
void daemon_loop_close(struct daemon_loop *l);

/*
 * requests.c: the daemon's HTTP side: finds out what a request asks for and which part answers it.
 *
 * Pages and metrics are written here, from a view that live_view.h shares among requests. Profiles and names of
 * addresses take longer: profiles.h holds the exchange and answers later. Saved profiles are sent unchanged. A
 * request for something that does not exist is told what there is instead.
 *
 * The server runs in the event loop, which calls http_run() and the like on requests_server().
 */

/* The parts that know the answers. */
struct requests_parts {
	struct tracker *tracker;
	const struct result_source *source;
	struct follow *follow;
	struct live_view *live_view;
	struct profiles *profiles;
	struct pushes *pushes;
	struct saver *saver; /* NULL: nothing is saved */
};

/*
 * Call before anything is attached: the port may be in use, which is logged on stderr, as are faults of the token.
 * listen is as in http/http.h; token_file may be NULL: none.
 */
int requests_open(const char *listen, const char *token_file, struct requests **ret);
/* Call before the server runs for the first time. parts is copied. What it points to must stay as long as the
 * server runs, and profiles until requests_close(). */
void requests_start(struct requests *as, const struct requests_parts *parts);
/* Answers waiting requests that the server ends. */
void requests_close(struct requests *as);

/* Set another token; NULL: none. On failure, which is logged, the old token stays in force. */
int requests_set_token(struct requests *as, const char *token_file);

/* Owned by the requests. */
struct http_server *requests_server(const struct requests *as);

#endif
