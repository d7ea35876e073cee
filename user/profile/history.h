/* SPDX-License-Identifier: MIT */
/*
 * history.h - what was in use at several moments of a recording, by stack and context.
 *
 * A sample carries the time of its allocation, so one that is live at a moment was live at all moments
 * since that time. What a key held is kept as lives: so many samples were live from moment `first`
 * to moment `last` and at no other. Sums at any moment, what two moments have in common, and so the
 * variance of any difference (see growth.h) follow from that, without a list of samples.
 *
 * There are at most HISTORY_MOMENTS_CAP moments: when there is no room, every second one goes and from
 * then on they are twice as far apart. Keys and lives are bounded too; keys that found no room are
 * counted.
 */
#ifndef HT_PROFILE_HISTORY_H
#define HT_PROFILE_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HISTORY_MOMENTS_CAP 64
#define HISTORY_MOMENTS_PUT_CAP 256 /* of what is known from elsewhere */
#define HISTORY_ROWS_CAP 65536
#define HISTORY_LIVES_CAP (1 << 18)

struct history;

struct history_key {
	uint64_t stack_id;
	uint64_t image; /* tgid << 32 | generation */
	uint64_t context_id;
};

struct history_life {
	uint32_t first, last; /* moments */
	uint64_t samples;
	double bytes, variance; /* as in struct estimate */
};

/* interval_ns: between moments, to begin with. */
int history_new(uint64_t interval_ns, struct history **ret);
void history_free(struct history *h);

/* When the next moment is due, by the clock of history_begin(). 0: at once. */
uint64_t history_due_ns(const struct history *h);
/* A moment: all that is live now is added, then it is ended. time_ns: before the first was read, by the
 * clock of the samples; later than that of the moment before. */
void history_begin(struct history *h, uint64_t time_ns);
/* Samples that were allocated after the moment began are left out. 0 or -ENOMEM. */
int history_add(struct history *h, const struct history_key *key, uint64_t alloc_ns,
		uint64_t size_bytes, double p);
/* took_ns: of CPU time, by reading. The next moment is later when that is dear. 0 or -ENOMEM. */
int history_end(struct history *h, uint64_t took_ns);

size_t history_moment_cnt(const struct history *h);
uint64_t history_moment_ns(const struct history *h, size_t i);
/* Samples whose keys found no room, each time they were read. */
uint64_t history_lost_cnt(const struct history *h);
/* There are no more moments: what is live lasts until the last one. 0 or -ENOMEM. */
int history_finish(struct history *h);
/* After that, the lives of a key; NULL: it has none. */
const struct history_life *history_lives(const struct history *h, const struct history_key *key,
					 size_t *ret_cnt);

/* What is known from elsewhere, as a history that is finished: all moments first, then lives. 0, -ENOMEM; -ENOSPC: there are
 * too many moments. */
int history_put_moment(struct history *h, uint64_t time_ns);
int history_put_life(struct history *h, const struct history_key *key,
		     const struct history_life *life);

#endif
