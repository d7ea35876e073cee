/* SPDX-License-Identifier: MIT */
/*
 * history.h - memory in use at several moments of a recording, by stack and context.
 *
 * A sample carries the time of its allocation, so one that is live at a moment was live at all moments since then. The
 * history of a key is kept as lives: a number of samples that were live from moment `first` to moment `last` and at no
 * other. From them follow the sums at any moment, the overlap of two moments, and so the variance of any difference
 * (see growth.h), without a list of samples.
 *
 * There are at most HISTORY_MOMENTS_CAP moments: when there is no room, every second one is dropped and their distance
 * doubles. Keys and lives are bounded too; samples whose keys found no room are counted.
 */
#ifndef HT_PROFILE_HISTORY_H
#define HT_PROFILE_HISTORY_H

#include "base/std.h"

#define HISTORY_MOMENTS_CAP 64
#define HISTORY_MOMENTS_PUT_CAP 256 /* of a history that is put in from elsewhere */
#define HISTORY_ROWS_CAP 65536
#define HISTORY_LIVES_CAP (1 << 18)

struct history;

struct history_key {
	uint64_t stack_id;
	uint64_t image; /* tgid << 32 | generation */
	uint64_t context_id;
};

struct history_life {
	uint32_t first, last; /* indexes of moments */
	uint64_t samples;
	double bytes, variance; /* as in struct estimate */
};

/* interval_ns: distance between moments at the beginning. */
int history_new(uint64_t interval_ns, struct history **ret);
void history_free(struct history *h);

struct history_moments {
	uint64_t ns[HISTORY_MOMENTS_PUT_CAP];
	uint32_t cnt;
	uint64_t due_ns; /* when the next one is due, by the clock of history_begin(); 0: at once */
	uint64_t lost_cnt; /* samples whose key found no room, counted each time they were read */
};
const struct history_moments *history_moments(const struct history *h);
/* Begin a moment; then add all that is live, then end it. time_ns: taken before the first sample was read, by the
 * clock of the samples; later than the moment before. */
void history_begin(struct history *h, uint64_t time_ns);
/* Add a live sample. One that was allocated after the moment began is left out. 0 or -ENOMEM. */
int history_add(struct history *h, const struct history_key *key, uint64_t alloc_ns,
		uint64_t size_bytes, double p);
/* took_ns: CPU time that reading took. The more it took, the later the next moment is due. 0 or -ENOMEM. */
int history_end(struct history *h, uint64_t took_ns);

/* End the history: samples that are live now last until the last moment. 0 or -ENOMEM. */
int history_finish(struct history *h);
/* The lives of a key, after history_finish(); NULL: it has none. */
const struct history_life *history_lives(const struct history *h, const struct history_key *key,
					 size_t *ret_cnt);

/* Put in a finished history from elsewhere: all moments first, then the lives. 0, -ENOMEM;
 * -ENOSPC: too many moments. */
int history_put_moment(struct history *h, uint64_t time_ns);
int history_put_life(struct history *h, const struct history_key *key,
		     const struct history_life *life);

#endif
