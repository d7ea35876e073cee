/* SPDX-License-Identifier: MIT */
/*
 * report_end.c - what follows the rows of a report for people: the meaning of marks, the losses,
 * where the profile is and what to ask next, and its notes if wanted; and whether memory matters that cannot be in it.
 *
 * That a runtime has a heap of its own says nothing of how much is in it: nearly all that a program in Python holds may
 * be malloc's. The resident set tells. It keeps blocks that were freed, so it is compared with the most that was in use
 * at any moment.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/units.h"
#include "profile/witness.h"
#include "report/report_losses.h"
#include "report/report_rows.h"
#include "report/report_text.h"

#define GROWTH_BYTES_MIN (256 << 10)
#define GROWTH_SHARE_MIN 0.01
#define SEEN_SHARE 0.5
/* Code and data of files are resident, too, and come in late. */
#define LEAST_GROWTH_BYTES_MIN (4 << 20)

static void put_losses(const struct report *r, FILE *out)
{
	char more[64] = "; see --notes", words[REPORT_FIT_BUF], text[REPORT_FIT_BUF];
	struct report_loss worst;
	size_t cnt = report_find_losses(r->p, &worst), columns = report_columns(r);

	if (!cnt)
		return;
	if (cnt > 1)
		snprintf(more, sizeof(more), "; %zu more with --notes", cnt - 1);
	snprintf(words, sizeof(words), "%llu %.*s", worst.cnt, (int)strlen(worst.meaning) - 1,
		 worst.meaning);
	report_fit_name(words, columns - 6 - strlen(more), text);
	fprintf(out, "lost: %s%s\n", text, more);
}

void report_put_legend(const struct report *r, const struct report_marks *marks, FILE *out)
{
	if (marks->has_weak)
		report_put_wrapped("? fewer than 4 samples: order of magnitude only", 2,
				   report_columns(r), out);
	if (marks->has_minimum)
		report_put_wrapped("> several peaks are one row: together at least that much", 2,
				   report_columns(r), out);
}

static bool has_label(const struct profile *p, const char *key)
{
	const struct profile_sample *s;

	vec_each(&p->samples, s)
		if (profile_sample_label(p, s, key))
			return true;
	return false;
}

static const char *next_option(const struct report *r)
{
	if (r->opts->by == REPORT_BY_SCOPE)
		return "--by stack";
	if (r->opts->by != REPORT_BY_STACK)
		return "--by stack -v";
	if (r->opts->shows_stacks)
		return "--by function";
	return has_label(r->p, "scope")	 ? "--by scope" :
	       has_label(r->p, "thread") ? "--by thread" :
					   "--by function";
}

/* Quote a path for a shell, so that it is not taken for an option; "": out of memory. */
static void format_path(const char *path, char buf[REPORT_FIT_BUF])
{
	char *text = NULL;
	size_t bytes;
	FILE *f = open_memstream(&text, &bytes);

	buf[0] = '\0';
	if (!f)
		return;
	if (path[0] == '-')
		fputs("./", f);
	shell_word_put(path, f);
	if (!fclose(f))
		report_fit_name(text, REPORT_FIT_BUF / 2, buf);
	free(text);
}

/* A name longer than the page stays whole, so that it can be copied. */
static void put_file(const struct report *r, FILE *out)
{
	struct report_line l = { .out = out, .columns = report_columns(r), .indent = 2 };
	char path[REPORT_FIT_BUF];
	const struct recording *rec = &r->p->recording;

	if (!r->opts->path)
		return;
	format_path(r->opts->path, path);
	if (!path[0])
		return;
	if (r->opts->is_new)
		report_line_add(&l, "", "saved %s", path);
	report_line_add(&l, "; ", "%sheaptap report %s %s", r->opts->is_new ? "" : "next: ", path,
			next_option(r));
	if (r->opts->is_new && rec->is_known && !rec->is_lossy && !report_has_losses(r->p) &&
	    !report_is_least(r))
		report_line_add(&l, "; ", "no losses");
	report_line_end(&l);
}

void report_put_end(const struct report *r, FILE *out)
{
	put_losses(r, out);
	put_file(r, out);
}

/* "ledger: name 0 (meaning)": a loss that did not happen. */
static bool is_empty_ledger_line(const char *text)
{
	char name[64];
	unsigned long long value;

	return sscanf(text, REPORT_LEDGER "%63s %llu", name, &value) == 2 && !value;
}

void report_put_notes(const struct report *r, FILE *out)
{
	bool is_first = true;
	const int64_t *id;

	vec_each(&r->p->comments, id) {
		const char *text = profile_text(r->p, *id);

		if (is_empty_ledger_line(text))
			continue;
		if (is_first)
			fputs("\nNotes\n", out);
		is_first = false;
		fputs("  ", out);
		report_put_wrapped(text, 4, report_columns(r) - 2, out);
	}
	if (is_first)
		fputs("\nThe profile has no notes.\n", out);
}

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
	       (double)report_end_total(r)->value < SEEN_SHARE * growth;
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
