/* SPDX-License-Identifier: MIT */
/* index_page.c - see index_page.h. */
#include "http/index_page.h"

#include <math.h>

#include "base/units.h"
#include "http/line_svg.h"
#include "http/page_parts.h"
#include "metrics/inuse_past.h"
#include "metrics/view.h"

#define KEPT_SHOWN_MAX 500
#define LINE_WIDTH 120
#define LINE_HEIGHT 24

/* The line covers the last hour; a new process has none yet. */
static void put_line(const struct serve_view *v, pid_t pid, FILE *out)
{
	float values[INUSE_PAST_HOUR_CNT];
	size_t cnt = v->past ? inuse_past_hour(v->past, pid, values) : 0;

	if (cnt)
		line_svg_write(values, cnt, INUSE_PAST_HOUR_CNT, LINE_WIDTH, LINE_HEIGHT,
			       "in use, the last hour", out);
}

static void put_process(const struct serve_view *v, const struct serve_process *p, FILE *out)
{
	char inuse[UNITS_BUF], objects[UNITS_BUF], alloc[UNITS_BUF], rss[UNITS_BUF];

	fprintf(out, "<tr><td>%d<td><a href=\"pid/%d/\">", p->pid, p->pid);
	page_put_text(p->comm[0] ? p->comm : "(no name)", out);
	fprintf(out, "</a><td>%s<td>%s<td>%s<td>%s", page_bytes(p->inuse_bytes, inuse),
		isnan(p->inuse_objects) ? "" :
					  format_count(p->inuse_objects, objects, sizeof(objects)),
		format_bytes(p->alloc_bytes, alloc, sizeof(alloc)),
		format_bytes(p->rss_bytes, rss, sizeof(rss)));
	fputs("<td>", out);
	put_line(v, p->pid, out);
	fputs("<td>", out);
	page_put_overhead(p, out);
	page_put_growth_words(p, "<br>", out);
	fprintf(out,
		"<td><a href=\"pid/%d/viewer\">pictures</a> <a href=\"pid/%d/debug/pprof/heap\">heap</a> "
		"<a href=\"pid/%d/debug/pprof/allocs?seconds=10\">allocated in 10 s</a><td>",
		p->pid, p->pid, p->pid);
	page_put_text(p->exe, out);
	fputc('\n', out);
}

static void put_file(const struct serve_file *f, FILE *out)
{
	fprintf(out, "<tr><td>%s<td>%.0f<td>%.2f &micro;s<td>", f->sharing, f->process_cnt,
		f->hit_seconds * 1e6);
	page_put_text(f->path, out);
	fputc('\n', out);
}

static void put_keep(const struct serve_keep *keep, FILE *out)
{
	if (isnan(keep->file_cnt))
		return;
	fputs("<h2>Saved profiles</h2>\n", out);
	if (!keep->kept_cnt) {
		fputs("<p>None yet.</p>\n", out);
		return;
	}
	fputs("<table><tr>" PAGE_KEPT_TITLES, out);
	for (size_t i = 0; i < keep->kept_cnt && i < KEPT_SHOWN_MAX; i++)
		page_put_kept(&keep->kept[i], "pid/", out);
	fputs("</table>\n", out);
	if (keep->kept_cnt > KEPT_SHOWN_MAX)
		fprintf(out, "<p>And %zu older ones.</p>\n", keep->kept_cnt - KEPT_SHOWN_MAX);
}

void index_page_write(const struct serve_view *v, bool is_live, FILE *out)
{
	char rate[UNITS_BUF], title[64];

	snprintf(title, sizeof(title), "heaptap %s", v->version);
	page_begin(title, is_live, out);
	if (v->rate_bytes <= 1)
		fputs("<p>Every allocation is recorded.\n", out);
	else
		fprintf(out,
			"<p>One sample per %s allocated, on the average: values are estimates.\n",
			format_bytes(v->rate_bytes, rate, sizeof(rate)));
	fputs("What was allocated before a process was followed is not included.</p>\n"
	      "<p><a href=\"viewer\">pictures of all</a> "
	      "<a href=\"debug/pprof/heap\">heap of all</a> "
	      "<a href=\"debug/pprof/allocs\">allocs of all</a> "
	      "<a href=\"metrics\">metrics</a></p>\n",
	      out);
	if (v->is_paused > 0)
		fputs("<p>Nothing is recorded: SIGUSR1 took all probes out, SIGUSR2 puts them in again.</p>\n",
		      out);
	if (v->refused_cnt)
		fprintf(out,
			"<p>%.0f selected process%s cannot be followed; the log says why.</p>\n",
			v->refused_cnt, v->refused_cnt == 1 ? "" : "es");
	fputs("<table class=\"processes\"><tr><th>pid<th>name<th>in use<th>objects<th>allocated<th>resident"
	      "<th>in use, last hour<th>probes<th>profiles<th>executable\n",
	      out);
	for (size_t i = 0; i < v->process_cnt; i++)
		put_process(v, &v->processes[i], out);
	fputs("</table>\n", out);
	if (!v->process_cnt)
		fputs("<p>No process is followed now.</p>\n", out);
	fputs("<h2>Probes</h2>\n<table><tr><th>attached<th>processes<th>a hit costs about<th>file\n",
	      out);
	for (size_t i = 0; i < v->file_cnt; i++)
		put_file(&v->files[i], out);
	fputs("</table>\n<p>own: links of each process; event: one event that the processes share; "
	      "all: one link for every process of the machine.</p>\n",
	      out);
	put_keep(&v->keep, out);
	page_put_losses(v, out);
	page_end(out);
}
