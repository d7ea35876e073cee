/* SPDX-License-Identifier: MIT */
/* process_page.c - see pages.h. */
#include "http/pages.h"

#include "base/clock.h"
#include "http/endpoints.h"
#include "http/past.h"
#include "http/view.h"

/*
 * The choice of two moments, to see what changed: links, and a form if the page is still.
 *
 * Moments are shown by the wall clock's time then, and by how long ago that was, which is right even if the clock
 * was set since. A page that reloads would forget the choice, so the form is only on the still one.
 */

static int64_t seconds_of(const struct stack_past_moment *m)
{
	return m->epoch_ns / (int64_t)NS_PER_S;
}

static void put_seconds(double seconds, FILE *out)
{
	if (seconds < 120)
		fprintf(out, "%.0f s", seconds);
	else if (seconds < 7200)
		fprintf(out, "%.0f min", seconds / 60);
	else
		fprintf(out, "%.1f h", seconds / 3600);
}

static double seconds_between(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? (double)(to_ns - from_ns) / (double)NS_PER_S : 0;
}

/* Write links that compare the last moment with one about this long ago. */
static void put_links(const struct stack_past_moment *m, size_t cnt, FILE *out)
{
	static const double least_s[] = { 60, 300, 1200, 3600, 21600, 86400 };
	char from[ENDPOINT_TIME_BUF], to[ENDPOINT_TIME_BUF];
	size_t at = cnt - 1, shown = cnt - 1;

	endpoint_time_text(seconds_of(&m[cnt - 1]), to);
	fputs("<p>Changes by stack in the last ", out);
	for (size_t i = 0; i < sizeof(least_s) / sizeof(*least_s); i++) {
		while (at && seconds_between(m[at].time_ns, m[cnt - 1].time_ns) < least_s[i])
			at--;
		if (at == shown)
			break;
		fprintf(out, "%s<a href=\"diff?from=%s&amp;to=%s\">", i ? ", " : "",
			endpoint_time_text(seconds_of(&m[at]), from), to);
		put_seconds(seconds_between(m[at].time_ns, m[cnt - 1].time_ns), out);
		fputs("</a>", out);
		shown = at;
	}
}

static void put_select(const char *name, const struct stack_past_moment *m, size_t cnt,
		       size_t chosen, FILE *out)
{
	char text[ENDPOINT_TIME_BUF];
	uint64_t now = now_ns();

	fprintf(out, "<select name=\"%s\">\n", name);
	for (size_t i = cnt; i-- > 0;) {
		endpoint_time_text(seconds_of(&m[i]), text);
		fprintf(out, "<option value=\"%s\"%s>%.10s %.8s UTC, ", text,
			i == chosen ? " selected" : "", text, text + 11);
		put_seconds(seconds_between(m[i].time_ns, now), out);
		fputs(" ago\n", out);
	}
	fputs("</select>", out);
}

static void put_form(const struct stack_past_moment *m, size_t cnt, FILE *out)
{
	fputs("<form action=\"diff\" method=\"get\" id=\"moments\"><p>What changed by stack from ",
	      out);
	put_select("from", m, cnt, 0, out);
	fputs(" to ", out);
	put_select("to", m, cnt, cnt - 1, out);
	fputs(" <button>show</button></p></form>\n", out);
}

static void put_nothing(const struct serve_view *v, const struct serve_process *p, size_t cnt,
			FILE *out)
{
	fputs("<p>No changes by stack", out);
	if (!v->stacks)
		fputs(": with --past-interval 0 nothing is stored", out);
	else if (!cnt && p->is_inuse_unknown)
		fputs(": heap in use is unknown", out);
	else if (!cnt && stack_past_is_full(v->stacks))
		fprintf(out, ": moments are stored for at most %d processes",
			STACK_PAST_IMAGES_CAP);
	else
		fputs(" yet", out);
	fputs(".</p>\n", out);
}

static void moments_part_write(const struct serve_view *v, const struct serve_process *p,
			       bool is_live, FILE *out)
{
	const struct stack_past_moment *m;
	size_t cnt = v->stacks ? stack_past_moments(v->stacks, p->image, &m) : 0;

	if (cnt < 2) {
		put_nothing(v, p, cnt, out);
		return;
	}
	put_links(m, cnt, out);
	if (is_live)
		fputs("; <a href=\"?live=0#moments\">between any two moments</a>.</p>\n", out);
	else
		fputs(".</p>\n", out);
	if (!is_live)
		put_form(m, cnt, out);
}

static void put_now(const struct serve_process *p, FILE *out)
{
	char text[UNITS_BUF];

	page_put_growth_words(p, "<p>", out);
	fprintf(out, "<p>In use: <b>%s</b>", page_bytes(p->inuse_bytes, text));
	if (p->inuse_error_bytes > 0)
		fprintf(out, " +-%s (95 %%)",
			format_bytes(1.96 * p->inuse_error_bytes, text, sizeof(text)));
	if (!isnan(p->inuse_objects))
		fprintf(out, " in %s blocks", format_count(p->inuse_objects, text, sizeof(text)));
	fprintf(out, "; allocated since heaptap began to track it: %s",
		format_bytes(p->alloc_bytes, text, sizeof(text)));
	fprintf(out, "; resident %s.", format_bytes(p->rss_bytes, text, sizeof(text)));
	fputs("<br>Probe cost, share of its CPU time: ", out);
	if (isnan(p->overhead))
		fputs("not known yet. ", out);
	page_put_overhead(p, out);
	fputs("</p>\n<p>", out);
	page_put_text(p->exe, out);
	fputs("</p>\n", out);
}

static void put_growth(const struct serve_view *v, const struct serve_process *p, FILE *out)
{
	float hour[INUSE_PAST_HOUR_CNT];
	size_t cnt = v->past ? inuse_past_hour(v->past, p->pid, INUSE_PAST_INUSE, hour) : 0;
	char text[UNITS_BUF];
	struct inuse_growth g;

	if (!cnt && v->past && inuse_past_is_full(v->past)) {
		fprintf(out, "<p>Growth is unknown: it is computed for at most %d processes.</p>\n",
			INUSE_PAST_PROCESSES_CAP);
		return;
	}
	inuse_growth(hour, cnt, INUSE_PAST_STEP_S, p->inuse_error_bytes, &g);
	if (g.trend == INUSE_TREND_UNKNOWN)
		fputs("<p>Growth is not known yet.</p>\n", out);
	else
		fprintf(out, "<p>Growth: %s%s/min over %.0f minutes: %s.</p>\n",
			g.bytes_per_min > 0 ? "+" :
			g.bytes_per_min < 0 ? "-" :
					      "",
			format_bytes(fabs(g.bytes_per_min), text, sizeof(text)), g.minutes,
			inuse_trend_text(g.trend));
}

static void put_scope(const struct serve_scope *s, FILE *out)
{
	char inuse[UNITS_BUF], error[UNITS_BUF], alloc[UNITS_BUF];

	fprintf(out, "<tr><td>%s<td>%s<td>%s<td>", page_bytes(s->inuse_bytes, inuse),
		isnan(s->inuse_error_bytes) ?
			"" :
			format_bytes(1.96 * s->inuse_error_bytes, error, sizeof(error)),
		format_bytes(s->alloc_bytes, alloc, sizeof(alloc)));
	page_put_text(s->thread, out);
	fputs("<td>", out);
	page_put_text(s->scope, out);
	fputc('\n', out);
}

static void put_scopes(const struct serve_process *p, FILE *out)
{
	fputs("<h2>Scopes and threads</h2>\n<table class=\"plain\"><tr><th>in use<th>+- 95 %"
	      "<th>allocated<th>threads<th>scope\n",
	      out);
	for (size_t i = 0; i < p->scope_cnt; i++)
		put_scope(&p->scopes[i], out);
	fputs("</table>\n", out);
}

/* The newest reading of what is resident. */
static void put_rows(const struct serve_view *v, const struct serve_process *p, FILE *out)
{
	const struct rows_past_image *i = v->rows ? rows_past_find(v->rows, p->image) : NULL;
	char text[UNITS_BUF];

	if (!i)
		return;
	if (!rows_past_is_known(i)) {
		fputs("<p>Resident memory by row is unknown: ", out);
		page_put_text(i->why, out);
		fputs(".</p>\n", out);
		return;
	}
	fprintf(out,
		"<h2>Resident memory: %s, read %.0f s ago</h2>\n<table class=\"plain\"><tr><th>resident<th>what\n",
		format_bytes((double)i->last.rss_bytes, text, sizeof(text)),
		(double)(now_ns() - i->last_ns) / (double)NS_PER_S);
	for (int kind = 0; kind < ROW_CNT; kind++) {
		int64_t bytes = rows_past_bytes(i, (enum row_kind)kind);

		if (bytes)
			fprintf(out, "<tr><td>%s<td>%s\n",
				format_bytes((double)bytes, text, sizeof(text)),
				row_label((enum row_kind)kind));
	}
	fputs("</table>\n", out);
}

static void put_kept(const struct serve_keep *keep, pid_t pid, FILE *out)
{
	size_t cnt = 0;

	for (size_t i = 0; i < keep->kept_cnt; i++) {
		if (keep->kept[i].pid != pid)
			continue;
		if (!cnt++)
			fputs("<h2>Saved profiles</h2>\n<table class=\"plain\"><tr>" PAGE_KEPT_TITLES,
			      out);
		page_put_kept(&keep->kept[i], "../", out);
	}
	if (cnt)
		fputs("</table>\n", out);
}

static void put_plain(const struct serve_view *v, const struct serve_process *p,
		      const struct page_head *head, FILE *out)
{
	page_begin_plain(head, out);
	put_now(p, out);
	put_growth(v, p, out);
	put_rows(v, p, out);
	moments_part_write(v, p, head->is_live, out);
	put_scopes(p, out);
	put_kept(&v->keep, p->pid, out);
	page_put_losses(v, out);
	page_end_plain(out);
}

int process_page_write(const struct serve_view *v, const struct serve_process *p, bool is_live,
		       FILE *out)
{
	char title[128];
	const struct page_head head = { .title = title, .base = "../../", .is_live = is_live };
	char *json = NULL;
	size_t bytes;
	FILE *f = open_memstream(&json, &bytes);

	if (!f)
		return -ENOMEM;
	page_json_process(v, p, f);
	if (fclose(f)) {
		free(json);
		return -ENOMEM;
	}
	snprintf(title, sizeof(title), "%.80s (PID %d)", p->comm, p->pid);
	page_begin(&head, out);
	put_plain(v, p, &head, out);
	fputs("<section id=\"stacks\">\n" PROCESS_PAGE_STACKS "</section>\n", out);
	page_end(&head, "process.js", json, out);
	free(json);
	return 0;
}
