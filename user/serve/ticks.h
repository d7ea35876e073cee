/* SPDX-License-Identifier: MIT */
/*
 * ticks.h - the daemon's periodic work: finds processes to follow, reads what processes count themselves, and
 * reclaims what ended ones left.
 *
 * /proc is scanned each second, and sooner after a followed process has forked; in a storm of forks only a small
 * part of the time is spent on scans. In between, the kernel's mapping events tell which process has loaded a
 * library; without them only the scans find that. Ended processes are cleaned up in small pieces, so that a tick
 * stays short.
 */
#ifndef HT_SERVE_TICKS_H
#define HT_SERVE_TICKS_H

struct engine;
struct follow;
struct ht_event;
struct http_server;
struct saver;
struct live_view;
struct name_cache;
struct profiles;
struct pushes;
struct ticks;
struct track_files;
struct tracker;

/* The parts that get a turn in a tick. */
struct ticks_parts {
	struct engine *engine;
	struct track_files *files;
	struct tracker *tracker;
	struct follow *follow;
	struct http_server *http;
	struct live_view *live_view;
	struct name_cache *names;
	struct profiles *profiles;
	struct pushes *pushes;
	struct saver *saver; /* NULL: nothing is saved */
};

/* parts is copied. -ENOMEM. Missing mapping events are logged on stderr and are no error. */
int ticks_open(const struct ticks_parts *parts, struct ticks **ret);
/* Does not use the parts, which may be gone. */
void ticks_close(struct ticks *r);

/* Readable when there are mapping events: then call ticks_drain(). -1: there are none. */
int ticks_fd(const struct ticks *r);
void ticks_drain(struct ticks *r);

/* Pass an event of the engine on to the parts; it may bring the next scan forward. */
void ticks_on_event(struct ticks *r, const struct ht_event *event);
/* Scan now: follow the selected processes and let the others go. */
int ticks_scan(struct ticks *r);
/* Call a few times a second. */
void ticks_tick(struct ticks *r);

#endif
