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

struct capture;
struct engine;
struct engine_ops;
struct follow;
struct governor;
struct guardian;
struct http_server;
struct live_view;
struct loop;
struct profile_source;
struct profiles;
struct pushes;
struct requests;
struct saver;
struct slow_files;
struct texts;
struct ticks;
struct track_files;
struct tracker;

/*
 * capture.c: the daemon's side that records: the engine, the files and processes that have
 * probes, and the governor that keeps their cost within the budget.
 *
 * It is made in two steps, so that what can be refused is refused in a good order: first whether
 * this kernel can do it at all, then, when nothing else is in the way, maps and programs are
 * loaded. No process is attached to before the tracker is told to. What goes wrong is said on
 * stderr, but -ENOMEM.
 */

struct capture_options {
	struct guardian *guardian; /* which attaches; it outlives the capture */
	enum attach_mode mode; /* that is wished for: capture_mode() is the one that was chosen */
	enum plan_way way;
	enum probes_source source;
	const struct texts *tap,
		*tap_exe; /* as in struct daemon_options; not needed after capture_new() */
	bool is_all; /* every process that maps a file may pay for its probes */
	uint64_t rate_bytes;
	uint64_t live_cap, stack_cap;
	struct recording_limit max_overhead; /* of each process */
	double max_overhead_host; /* of the time of all CPUs */
};

/* Looks at the kernel: -ENOTSUP and the like. ops, which are copied, are called with ctx from
 * engine_events_drain(). */
int capture_new(const struct capture_options *opts, const struct engine_ops *ops, void *ctx,
		struct capture **ret);
/* Loads BPF and measures what a probe costs. After a failure capture_free() is still due. */
int capture_start(struct capture *c);
/* Takes every probe out, and forgets governor and tracker; the rest stays for those that read. */
void capture_stop(struct capture *c);
/* After capture_stop(), or instead of it. */
void capture_free(struct capture *c);

enum attach_mode capture_mode(const struct capture *c);
/* From capture_start() on, owned by the capture. */
struct engine *capture_engine(const struct capture *c);
struct track_files *capture_files(const struct capture *c);
/* These until capture_stop(). */
struct tracker *capture_tracker(const struct capture *c);
struct governor *capture_governor(const struct capture *c);

/*
 * loop.c: the daemon's event loop: signals, ticks, the kernel's events, HTTP, the children that
 * make profiles, and what is pushed. It only waits and hands out turns; each part knows what to
 * do in its own.
 *
 * BPF goes on recording whatever the loop does. What may hold it up for some time: the first look
 * at a large executable (its unwind table is made), taking probes out, and reading the live map
 * for a snapshot.
 */

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

/* Owned by the answers. */
struct http_server *requests_server(const struct requests *as);

#endif
