/* SPDX-License-Identifier: MIT */
/* daemon_priv.h - what daemon.c is made of: the recording side, the event loop, the HTTP side. */
#ifndef HT_SERVE_DAEMON_PRIV_H
#define HT_SERVE_DAEMON_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/attach.h"
#include "profile/recording.h"
#include "track/plan.h"
#include "track/probes.h"

struct daemon_loop;
struct engine;
struct follow;
struct governor;
struct guardian;
struct ht_event;
struct http_server;
struct live_view;
struct profile_source;
struct profiles;
struct pushes;
struct requests;
struct saver;
struct session;
struct slow_files;
struct texts;
struct ticks;
struct tracker;

/* capture.c: the daemon's session (session.h): who may be tapped, and who shares probes. */

struct capture;

struct capture_options {
	struct guardian *guardian; /* which attaches; it outlives the capture */
	enum attach_mode mode; /* that is wished for */
	enum sharing sharing;
	enum probes_source source;
	const struct texts *tap,
		*tap_exe; /* as in struct daemon_options; not needed after capture_new() */
	bool is_all; /* every process that maps a file may pay for its probes */
	uint64_t rate_bytes;
	uint64_t live_cap, stack_cap;
	struct recording_limit max_overhead; /* of each process */
	double max_overhead_host; /* of the time of all CPUs */
};

/* Looks at the kernel. *ret_session is the capture's. */
int capture_new(const struct capture_options *opts, struct capture **ret,
		struct session **ret_session);
/* Starts the session, whose events go to on_event with ctx. After a failure capture_free() is still due. */
int capture_start(struct capture *c, void (*on_event)(void *ctx, const struct ht_event *event),
		  void *ctx);
/* The session, too. NULL is fine. */
void capture_free(struct capture *c);

/*
 * daemon_loop.c: the daemon's event loop: signals, ticks, the kernel's events, HTTP, the children that
 * make profiles, and what is pushed. It only waits and hands out turns; each part knows what to
 * do in its own.
 *
 * BPF goes on recording whatever the loop does. What may hold it up for some time: the first look
 * at a large executable (its unwind table is made), taking probes out, and reading the live map
 * for a snapshot.
 */

/* What has its turn. */
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
 * From here on signals wait for the loop: first of all, so that none of them ends the process while
 * there are probes, or before there is somebody who reloads. can_reload: SIGHUP asks for a reload; else it ends.
 */
int daemon_loop_open(bool can_reload, struct daemon_loop **ret);
/* Watches what the parts wait for. parts is copied. */
int daemon_loop_start(struct daemon_loop *l, const struct daemon_loop_parts *parts);
/*
 * Until SIGTERM or SIGINT: 0, after last profiles are kept and pushed, for some seconds; a second
 * signal ends that. Or until SIGHUP: 0 and true, to be called again. Says on stderr why it ends.
 * -EPIPE, after the same: the guardian was killed, so that no probe is left. Who has started us starts us anew.
 */
int daemon_loop_run(struct daemon_loop *l, bool *ret_wants_reload);
/* The descriptors of pushes are about to change... */
void daemon_loop_unwatch_pushes(struct daemon_loop *l);
/* ... and have changed. */
int daemon_loop_watch_pushes(struct daemon_loop *l);
/* Does not look at the parts, which may be gone. Signals are as they were before daemon_loop_open(). */
void daemon_loop_close(struct daemon_loop *l);

/*
 * requests.c: the daemon's HTTP side: what is asked for, and which part of the daemon answers it.
 *
 * Pages and metrics are written here, of a view that live_view.h shares among those who ask.
 * Profiles and names of addresses take longer: profiles.h holds the exchange and answers later.
 * What was kept is handed out as it is. A request for what does not exist is told what there is
 * instead.
 *
 * The server runs in the event loop, which calls http_run() and the like on requests_server().
 */

/* Who knows what is asked for. */
struct requests_parts {
	struct tracker *tracker;
	const struct profile_source *source;
	struct follow *follow;
	struct live_view *live_view;
	struct profiles *profiles;
	struct pushes *pushes;
	struct saver *saver; /* NULL: nothing is saved */
};

/*
 * Before anything is attached: the port may be in use, which is said on stderr, as is what is
 * wrong with the token. listen is as in http/http.h, token_file may be NULL: none.
 */
int requests_open(const char *listen, const char *token_file, struct requests **ret);
/* Before the server runs for the first time. parts is copied. What it points to must stay as long
 * as the server runs, and profiles until requests_close(). */
void requests_start(struct requests *as, const struct requests_parts *parts);
/* Who waits is answered that the server ends. */
void requests_close(struct requests *as);

/* Another token, NULL: none. On failure, which is said, the old one counts. */
int requests_set_token(struct requests *as, const char *token_file);

/* Owned by the requests. */
struct http_server *requests_server(const struct requests *as);

#endif
