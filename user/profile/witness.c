/* SPDX-License-Identifier: MIT */
/* witness.c - see witness.h. */
#include "profile/witness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/printable.h"
#include "base/units.h"
#include "profile/profile.h"

/* Programs warm up: less than this is not worth a word. */
#define GROWTH_BYTES_MIN (32 << 20)
#define GROWTH_SHARE_MIN 0.25
#define EXPLAINED_SHARE 0.5

double witness_growth(const struct profile *p)
{
	const struct recording *r = &p->recording;

	if (!r->is_known || !r->rss_end_bytes || (!r->rss_begin_bytes && !r->is_from_start))
		return NAN;
	return (double)r->rss_end_bytes - (double)r->rss_begin_bytes -
	       (double)r->rss_file_growth_bytes;
}

static double held_of(const struct profile *p)
{
	int type = profile_find_type(p, "inuse_space");
	const struct profile_sample *s;
	double sum = 0;

	vec_each(&p->samples, s)
		if (type >= 0)
			sum += (double)p->values.data[s->value_first + (size_t)type];
	return sum;
}

/* What begins to live at a moment adds to it, what ended before it subtracts. */
double witness_most(const struct profile *p, int64_t *ret_ns)
{
	double *change = calloc(p->moments_ns.cnt + 1, sizeof(*change)), sum = 0, most = 0;
	const struct history_life *life;

	if (!change)
		return 0;
	vec_each(&p->lives, life) {
		if (life->first > life->last || life->last >= p->moments_ns.cnt)
			continue;
		change[life->first] += life->bytes;
		change[life->last + 1] -= life->bytes;
	}
	for (size_t i = 0; i < p->moments_ns.cnt; i++) {
		sum += change[i];
		if (sum <= most)
			continue;
		most = sum;
		if (ret_ns) /* a file may say anything */
			*ret_ns = (int64_t)((uint64_t)p->recording.begin_ns +
					    (uint64_t)p->moments_ns.data[i]);
	}
	free(change);
	return most;
}

/* The path that such a note begins with. */
static void find_unseen(const struct profile *p, struct witness *w)
{
	static const char prefix[] = "not seen: ";
	const int64_t *id;

	vec_each(&p->comments, id) {
		const char *text = profile_text(p, *id), *path = text + strlen(prefix);
		bool is_quoted;

		if (w->unseen[0] || strncmp(text, prefix, strlen(prefix)) != 0)
			continue;
		is_quoted = *path == '\'';
		path += is_quoted;
		if (*path == '/')
			snprintf(w->unseen, sizeof(w->unseen), "%.*s",
				 (int)strcspn(path, is_quoted ? "'" : " "), path);
	}
	make_printable(w->unseen);
}

void witness_judge(double begin_bytes, double growth_bytes, double held_bytes, struct witness *ret)
{
	*ret = (struct witness){ .growth_bytes = growth_bytes, .held_bytes = held_bytes };
	ret->is_unexplained = growth_bytes >= GROWTH_BYTES_MIN &&
			      growth_bytes >= GROWTH_SHARE_MIN * begin_bytes &&
			      held_bytes < EXPLAINED_SHARE * growth_bytes;
}

void witness_find(const struct profile *p, struct witness *ret)
{
	const struct recording *r = &p->recording;
	bool is_known = r->is_known && r->inuse == RECORDING_INUSE_ALL;

	witness_judge((double)r->rss_begin_bytes, is_known ? witness_growth(p) : NAN, held_of(p),
		      ret);
	if (!ret->is_unexplained)
		return;
	ret->most_bytes = witness_most(p, &ret->most_ns);
	ret->was_freed = ret->most_bytes >= EXPLAINED_SHARE * ret->growth_bytes;
	find_unseen(p, ret);
}

char *witness_words(const struct witness *w, char buf[WITNESS_WORDS])
{
	char growth[UNITS_BUF], held[UNITS_BUF], most[UNITS_BUF], when[UNITS_BUF] = "",
								  unseen[176] = "";
	time_t s = w->most_ns / 1000000000;
	struct tm tm;

	format_bytes(w->growth_bytes, growth, sizeof(growth));
	format_bytes(w->held_bytes, held, sizeof(held));
	format_bytes(w->most_bytes, most, sizeof(most));
	if (!gmtime_r(&s, &tm) || !strftime(when, sizeof(when), "%H:%M:%S", &tm))
		when[0] = '\0';
	if (w->unseen[0])
		snprintf(unseen, sizeof(unseen), " (%s)", w->unseen);
	if (w->was_freed)
		snprintf(buf, WITNESS_WORDS,
			 "The process grew by %s, and %s is held. %s were in use at %s: its "
			 "allocator keeps blocks that were freed.",
			 growth, held, most, when);
	else
		snprintf(buf, WITNESS_WORDS,
			 "The process grew by %s, of which %.0f %% is explained: %s is held. The "
			 "rest can be memory that it mapped directly, blocks of an allocator that "
			 "is not seen%s, or freed blocks that its allocator keeps.",
			 growth, 100 * w->held_bytes / w->growth_bytes, held, unseen);
	return buf;
}
