/* SPDX-License-Identifier: MIT */
/* witness.c - see witness.h. */
#include "profile/witness.h"

#include "base/printable.h"
#include "base/units.h"
#include "profile/profile.h"
#include "profile/resident_words.h"

/* Programs warm up: less than this is not worth a word. */
#define GROWTH_BYTES_MIN (32 << 20)
#define GROWTH_SHARE_MIN 0.25
#define EXPLAINED_SHARE 0.5
#define EARLIER_SHARE 0.1
/* A server computes the begin anew for each profile. */
#define SAME_BEGIN_NS 1000000000

double witness_growth(const struct profile *p)
{
	struct resident_growth g;

	return resident_growth(p, &g) ? g.end_bytes - g.begin_bytes - g.file_bytes : NAN;
}

static double held_of(const struct profile *p)
{
	int type = profile_find_type(p, "inuse_space");
	const struct profile_sample *s;
	double sum = 0;

	if (p->moment.at != PROFILE_AT_END)
		return p->moment.end.bytes;
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

/* What it can be. held_bytes: before it grew. */
static void find_most(const struct profile *p, double held_bytes, struct witness *w)
{
	w->most_bytes = witness_most(p, &w->most_ns);
	w->was_freed = w->most_bytes - held_bytes >= EXPLAINED_SHARE * w->growth_bytes;
	find_unseen(p, w);
}

/* What is read of its memory says what it is. */
static void find_rows(const struct profile *p, struct witness *w)
{
	bool is_proved = p->resident.begin.is_proved && p->resident.end.is_proved;
	char words[RESIDENT_WORDS], range[RESIDENT_RANGE];
	double since = (double)p->recording.rss_end_bytes - (double)p->resident.end.rss_bytes;
	struct resident_growth g;

	if (p->resident.end.age_ns && fabs(since) > EARLIER_SHARE * w->growth_bytes)
		return; /* what came since is in no row */
	snprintf(w->rows, sizeof(w->rows), "%s", resident_growth_words(p, words));
	make_printable(w->rows);
	if (resident_growth(p, &g) && !g.is_by_row)
		snprintf(w->rows_range, sizeof(w->rows_range), ", %s",
			 resident_range_words((double)p->resident.begin.rss_bytes,
					      (double)p->resident.end.rss_bytes, range));
	if (!w->rows[0] || !is_proved)
		return;
	w->is_kept_free = (double)resident_bytes(p, RESIDENT_FREE, true) -
				  (double)resident_bytes(p, RESIDENT_FREE, false) >=
			  EXPLAINED_SHARE * w->growth_bytes;
	w->was_freed &= !w->is_kept_free; /* what is read says it better than what is concluded */
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
	struct resident_growth g = { 0 };

	(void)resident_growth(p, &g);
	witness_judge(g.begin_bytes, is_known ? witness_growth(p) : NAN, held_of(p), ret);
	if (!ret->is_unexplained)
		return;
	find_most(p, 0, ret);
	find_rows(p, ret);
}

static bool is_same_text(const struct profile *p, int64_t a, const struct profile *q, int64_t b)
{
	return !strcmp(profile_text(p, a), profile_text(q, b));
}

static bool is_later_of_one_process(const struct profile *before, const struct profile *after)
{
	const struct recording *a = &before->recording, *b = &after->recording;

	return a->is_known && b->is_known && a->pid > 0 && a->pid == b->pid &&
	       a->process_cnt <= 1 && b->process_cnt <= 1 && a->end_ns < b->end_ns &&
	       is_same_text(before, a->comm_str, after, b->comm_str) &&
	       is_same_text(before, a->exe_str, after, b->exe_str);
}

void witness_compare(const struct profile *before, const struct profile *after, struct witness *ret)
{
	const struct recording *a = &before->recording, *b = &after->recording;
	double held, more;

	*ret = (struct witness){ 0 };
	if (!is_later_of_one_process(before, after))
		return;
	witness_find(after, ret);
	if (a->rss_begin_bytes != b->rss_begin_bytes || a->is_from_start != b->is_from_start ||
	    llabs(a->begin_ns - b->begin_ns) > SAME_BEGIN_NS)
		return;
	held = held_of(before);
	more = fmax(held_of(after) - held, 0);
	if (a->inuse != RECORDING_INUSE_ALL || b->inuse != RECORDING_INUSE_ALL)
		more = NAN;
	witness_judge((double)a->rss_end_bytes, witness_growth(after) - witness_growth(before),
		      more, ret);
	if (!ret->is_unexplained)
		return;
	ret->is_change = true;
	find_most(after, held, ret);
}

char *witness_words(const struct witness *w, char buf[WITNESS_WORDS])
{
	char growth[UNITS_BUF], held[UNITS_BUF], most[UNITS_BUF], when[UNITS_BUF] = "",
								  unseen[264] = "";
	const char *more = w->is_change ? "more " : "";
	time_t s = w->most_ns / 1000000000;
	struct tm tm;

	format_bytes(w->growth_bytes, growth, sizeof(growth));
	format_bytes(w->held_bytes, held, sizeof(held));
	if (!gmtime_r(&s, &tm) || !strftime(when, sizeof(when), "%H:%M:%S", &tm))
		when[0] = '\0';
	format_bytes(w->most_bytes, most, sizeof(most));
	if (w->unseen[0] && w->rows[0])
		snprintf(unseen, sizeof(unseen),
			 " Some of it may be blocks of an allocator that is not seen (%s).",
			 w->unseen);
	else if (w->unseen[0])
		snprintf(unseen, sizeof(unseen), " (%s)", w->unseen);
	if (w->was_freed)
		snprintf(buf, WITNESS_WORDS,
			 "The process grew by %s, but only %s %sis in use. %s were in use at %s: "
			 "its allocator keeps freed blocks.",
			 growth, held, more, most, when);
	else if (w->rows[0])
		snprintf(buf, WITNESS_WORDS,
			 "The process grew by %s, of which %s is in use. By row%s: %s.%s", growth,
			 held, w->rows_range, w->rows, unseen);
	else
		snprintf(buf, WITNESS_WORDS,
			 "The process grew by %s, of which %.0f %% is explained: %s %sis in use. "
			 "The rest may be memory that it mapped directly, blocks of an allocator "
			 "that is not seen%s, or freed blocks that its allocator keeps.",
			 growth, 100 * w->held_bytes / w->growth_bytes, held, more, unseen);
	return buf;
}
