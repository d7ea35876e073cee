/* SPDX-License-Identifier: MIT */
/* process_page.c - see process_page.h. */
#include "http/process_page.h"

#include <math.h>
#include <string.h>

#include "http/line_svg.h"
#include "http/process_page_priv.h"
#include "http/page_parts.h"
#include "metrics/inuse_past.h"
#include "metrics/view.h"

#define LINE_WIDTH 720
#define LINE_HEIGHT 90

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
	fprintf(out, "; allocated %s since it is followed",
		format_bytes(p->alloc_bytes, text, sizeof(text)));
	fprintf(out, "; resident %s.", format_bytes(p->rss_bytes, text, sizeof(text)));
	fputs("<br>Probes take of its CPU time: ", out);
	if (isnan(p->overhead))
		fputs("not known yet. ", out);
	page_put_overhead(p, out);
	fputs("</p>\n<p>", out);
	page_put_text(p->exe, out);
	fputs("</p>\n", out);
}

/* Write the growth between the first and the last known value. It may be chance within the error bars of two
 * moments, each taken to be as wide as now. */
static void put_growth(const float *values, size_t cnt, double error_bytes, FILE *out)
{
	size_t first = 0, last = cnt;
	char text[UNITS_BUF];
	double minutes, change;

	while (first < cnt && isnan(values[first]))
		first++;
	while (last > first && isnan(values[last - 1]))
		last--;
	if (last < first + 2) {
		fputs("<p>Whether it grows is not known yet.</p>\n", out);
		return;
	}
	minutes = (double)(last - 1 - first) * INUSE_PAST_STEP_S / 60;
	change = (double)values[last - 1] - (double)values[first];
	fprintf(out, "<p>Growth: %s%s a minute, over %.1f minutes%s.</p>\n",
		change > 0 ? "+" :
		change < 0 ? "-" :
			     "",
		format_bytes(fabs(change) / minutes, text, sizeof(text)), minutes,
		change != 0 && !(fabs(change) > 1.96 * M_SQRT2 * error_bytes) ?
			"; it may be chance" :
			"");
}

static void put_line(const char *title, const float *values, size_t cnt, size_t slot_cnt, FILE *out)
{
	float most = line_svg_top(values, cnt);
	char text[UNITS_BUF];

	if (isnan(most))
		return;
	fprintf(out, "<p>%s, up to %s<br>", title, format_bytes((double)most, text, sizeof(text)));
	line_svg_write(values, cnt, slot_cnt, LINE_WIDTH, LINE_HEIGHT, title, out);
	fputs("</p>\n", out);
}

static void put_past(const struct serve_view *v, const struct serve_process *p, FILE *out)
{
	float hour[INUSE_PAST_HOUR_CNT], day[INUSE_PAST_DAY_CNT];
	size_t hour_cnt = v->past ? inuse_past_hour(v->past, p->pid, hour) : 0;
	size_t day_cnt = v->past ? inuse_past_day(v->past, p->pid, day) : 0;

	if (!hour_cnt && v->past && inuse_past_is_full(v->past))
		fprintf(out,
			"<p>Whether it grows is not known: what processes held is kept of %d of them, and "
			"there are more.</p>\n",
			INUSE_PAST_PROCESSES_CAP);
	else
		put_growth(hour, hour_cnt, p->inuse_error_bytes, out);
	put_line("In use, the last hour", hour, hour_cnt, INUSE_PAST_HOUR_CNT, out);
	put_line("In use, the last day", day, day_cnt, INUSE_PAST_DAY_CNT, out);
}

static void put_links(FILE *out)
{
	fputs("<p>Pictures: <a href=\"viewer\">what is in use</a> (flame graph, under scopes or "
	      "threads, functions), <a href=\"viewer?seconds=10\">what is allocated in 10 s</a>, "
	      "<a href=\"viewer?seconds=60\">in a minute</a>.<br>Files for pprof and heaptap report: "
	      "<a href=\"debug/pprof/heap\">heap</a>, "
	      "<a href=\"debug/pprof/allocs?seconds=10\">allocated in 10 s</a>; as text: "
	      "<a href=\"debug/pprof/heap?debug=1\">heap</a>. "
	      "<a href=\"../../\">All processes</a>.</p>\n",
	      out);
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
	fputs("<h2>Scopes and threads</h2>\n<table class=\"numbers\"><tr><th>in use<th>+- 95 %"
	      "<th>allocated<th>threads<th>scope\n",
	      out);
	for (size_t i = 0; i < p->scope_cnt; i++)
		put_scope(&p->scopes[i], out);
	fputs("</table>\n", out);
}

static void put_kept(const struct serve_keep *keep, pid_t pid, FILE *out)
{
	size_t cnt = 0;

	for (size_t i = 0; i < keep->kept_cnt; i++) {
		if (keep->kept[i].pid != pid)
			continue;
		if (!cnt++)
			fputs("<h2>Saved profiles</h2>\n<table><tr>" PAGE_KEPT_TITLES, out);
		page_put_kept(&keep->kept[i], "../", out);
	}
	if (cnt)
		fputs("</table>\n", out);
}

void process_page_write(const struct serve_view *v, const struct serve_process *p, bool is_live,
			FILE *out)
{
	char title[128];

	snprintf(title, sizeof(title), "%.80s (PID %d)", p->comm, p->pid);
	page_begin(title, is_live, out);
	put_links(out);
	put_now(p, out);
	put_past(v, p, out);
	moments_part_write(v, p, is_live, out);
	fputs(PROCESS_PAGE_STACKS, out);
	put_scopes(p, out);
	put_kept(&v->keep, p->pid, out);
	page_put_losses(v, out);
	page_end(out);
}
