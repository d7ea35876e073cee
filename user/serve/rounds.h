/* SPDX-License-Identifier: MIT */
/*
 * rounds.h - what the daemon looks after now and then: who has to be followed, what processes
 * count themselves, and what ended ones left.
 *
 * /proc is scanned each second, and sooner after a followed process has forked; in a storm of
 * forks no more than a small part of the time is spent looking. The kernel's mapping events tell
 * meanwhile who has loaded a library; without them it is found by the scans alone. Ended
 * processes are cleaned up in small pieces, so that a tick stays short.
 */
#ifndef HT_SERVE_ROUNDS_H
#define HT_SERVE_ROUNDS_H

struct engine;
struct follow;
struct ht_event;
struct http_server;
struct keeper;
struct live_view;
struct profiles;
struct pushes;
struct rounds;
struct track_files;
struct tracker;

/* Whose turn comes in a tick. */
struct rounds_parts {
	struct engine *engine;
	struct track_files *files;
	struct tracker *tracker;
	struct follow *follow;
	struct http_server *http;
	struct live_view *live_view;
	struct profiles *profiles;
	struct pushes *pushes;
	struct keeper *keeper; /* NULL: nothing is kept */
};

/* parts is copied. -ENOMEM; that there are no mapping events is said on stderr, and no error. */
int rounds_open(const struct rounds_parts *parts, struct rounds **ret);
/* Does not look at the parts, which may be gone. */
void rounds_close(struct rounds *r);

/* Readable when there are mapping events: then call rounds_drain(). -1: there are none. */
int rounds_fd(const struct rounds *r);
void rounds_drain(struct rounds *r);

/* Of the engine: tells who has to know, and may bring the next scan forward. */
void rounds_on_event(struct rounds *r, const struct ht_event *event);
/* Now: follows who is selected and lets go who is not. */
int rounds_scan(struct rounds *r);
/* A few times a second. */
void rounds_tick(struct rounds *r);

#endif
