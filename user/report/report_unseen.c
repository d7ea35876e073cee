/* SPDX-License-Identifier: MIT */
/*
 * report_unseen.c - see report_unseen.h.
 *
 * That a runtime has a heap of its own says nothing of how much is in it: nearly all that a program in Python holds may be
 * malloc's. The resident set tells. It keeps blocks that were freed, so it is compared with the most that was in use at
 * any moment.
 */
#include "report/report_unseen.h"

#include <string.h>

#include "profile/profile.h"
#include "profile/witness.h"
#include "report/report_rows.h"

#define GROWTH_BYTES_MIN (256 << 10)
#define GROWTH_SHARE_MIN 0.01
#define SEEN_SHARE 0.5
/* Code and data of files are resident, too, and come in late. */
#define LEAST_GROWTH_BYTES_MIN (4 << 20)

const char *report_next_unseen(const struct profile *p, size_t *at)
{
	static const char prefix[] = "not seen: ";

	while (*at < p->comments.cnt) {
		const char *text = profile_text(p, p->comments.data[(*at)++]);

		if (!strncmp(text, prefix, sizeof(prefix) - 1))
			return text + sizeof(prefix) - 1;
	}
	return NULL;
}

bool report_is_mostly_unseen(const struct report *r)
{
	const struct recording *rec = &r->p->recording;
	double growth = witness_growth(r->p);

	return rec->is_known && r->is_inuse && rec->rss_end_bytes &&
	       (rec->rss_begin_bytes || rec->is_from_start) && growth >= GROWTH_BYTES_MIN &&
	       growth >= GROWTH_SHARE_MIN * (double)rec->rss_begin_bytes &&
	       (double)r->total.value < SEEN_SHARE * growth;
}

/* The most that was in use at a moment; without moments, what is now. */
static double most_bytes(const struct report *r)
{
	double now = (double)r->whole.value, most = witness_most(r->p, NULL);

	return most > now ? most : now;
}

bool report_is_least(const struct report *r)
{
	const struct recording *rec = &r->p->recording;
	double growth = witness_growth(r->p);
	size_t at = 0;

	if (!r->is_inuse || r->is_unknown || !rec->is_known || !report_next_unseen(r->p, &at))
		return false;
	if (r->is_lossy)
		return true;
	return rec->rss_begin_bytes && growth >= LEAST_GROWTH_BYTES_MIN &&
	       most_bytes(r) < SEEN_SHARE * growth;
}
