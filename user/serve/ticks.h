/* SPDX-License-Identifier: MIT */
/*
 * ticks.h - what the daemon looks after now and then: who has to be followed, what processes
 * count themselves, and what ended ones left.
 *
 * /proc is scanned each second, and sooner after a followed process has forked; in a storm of
 * forks no more than a small part of the time is spent looking. The kernel's mapping events tell
 * meanwhile who has loaded a library; without them it is found by the scans alone. Ended
 * processes are cleaned up in small pieces, so that a tick stays short.
 */
#ifndef HT_SERVE_TICKS_H
#define HT_SERVE_TICKS_H

struct engine;
struct follow;
struct ht_event;
struct http_server;
struct saver;
struct live_view;
struct profiles;
struct pushes;
struct ticks;
struct track_files;
struct tracker;

/* Whose turn comes in a tick. */
struct ticks_parts {
	struct engine *engine;
	struct track_files *files;
	struct tracker *tracker;
	struct follow *follow;
	struct http_server *http;
	struct live_view *live_view;
	struct profiles *profiles;
	struct pushes *pushes;
	struct saver *saver; /* NULL: nothing is saved */
};

/* parts is copied. -ENOMEM; that there are no mapping events is said on stderr, and no error. */
int ticks_open(const struct ticks_parts *parts, struct ticks **ret);
/* Does not look at the parts, which may be gone. */
void ticks_close(struct ticks *r);

/* Readable when there are mapping events: then call ticks_drain(). -1: there are none. */
int ticks_fd(const struct ticks *r);
void ticks_drain(struct ticks *r);

/* Of the engine: tells who has to know, and may bring the next scan forward. */
void ticks_on_event(struct ticks *r, const struct ht_event *event);
/* Now: follows who is selected and lets go who is not. */
int ticks_scan(struct ticks *r);
/* A few times a second. */
void ticks_tick(struct ticks *r);

#endif
