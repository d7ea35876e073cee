/* SPDX-License-Identifier: MIT */
/* index_page.c - see pages.h. */
#include "http/pages.h"

#include "base/units.h"
#include "http/view.h"

#define KEPT_SHOWN_MAX 50

static void put_process(const struct serve_process *p, FILE *out)
{
	char inuse[UNITS_BUF], objects[UNITS_BUF], alloc[UNITS_BUF], rss[UNITS_BUF];

	fprintf(out, "<tr><td>%d<td><a href=\"pid/%d/\">", p->pid, p->pid);
	page_put_text(p->comm[0] ? p->comm : "(no name)", out);
	fprintf(out, "</a><td>%s<td>%s<td>%s<td>%s<td>", page_bytes(p->inuse_bytes, inuse),
		isnan(p->inuse_objects) ? "" :
					  format_count(p->inuse_objects, objects, sizeof(objects)),
		format_bytes(p->alloc_bytes, alloc, sizeof(alloc)),
		format_bytes(p->rss_bytes, rss, sizeof(rss)));
	page_put_overhead(p, out);
	page_put_growth_words(p, "<br>", out);
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
	fputs("<table class=\"plain\"><tr>" PAGE_KEPT_TITLES, out);
	for (size_t i = 0; i < keep->kept_cnt && i < KEPT_SHOWN_MAX; i++)
		page_put_kept(&keep->kept[i], "pid/", out);
	fputs("</table>\n", out);
	if (keep->kept_cnt > KEPT_SHOWN_MAX)
		fprintf(out, "<p>And %zu older ones.</p>\n", keep->kept_cnt - KEPT_SHOWN_MAX);
}

static void put_rate(const struct serve_view *v, FILE *out)
{
	char rate[UNITS_BUF];

	if (v->rate_bytes <= 1)
		fputs("<p>Every allocation is recorded.\n", out);
	else
		fprintf(out, "<p>One sample per %s allocated, on average: values are estimates.\n",
			format_bytes(v->rate_bytes, rate, sizeof(rate)));
	fputs("Allocations from before a process was tracked are not included.</p>\n", out);
	if (v->is_paused > 0)
		fputs("<p>Recording is paused: SIGUSR1 removed all probes, SIGUSR2 attaches them "
		      "again.</p>\n",
		      out);
	if (v->refused_cnt)
		fprintf(out,
			"<p>%.0f selected process%s cannot be tracked; the log says why.</p>\n",
			v->refused_cnt, v->refused_cnt == 1 ? "" : "es");
}

static void put_plain(const struct serve_view *v, const struct page_head *head, FILE *out)
{
	page_begin_plain(head, out);
	put_rate(v, out);
	fputs("<table class=\"plain\"><tr><th>PID<th>name<th>in use<th>blocks<th>allocated<th>resident"
	      "<th>probe cost\n",
	      out);
	for (size_t i = 0; i < v->process_cnt; i++)
		put_process(&v->processes[i], out);
	fputs("</table>\n", out);
	if (!v->process_cnt)
		fputs("<p>No process is tracked now.</p>\n", out);
	fputs("<h2>Probes</h2>\n<table class=\"plain\"><tr><th>attached<th>processes<th>cost of a hit<th>file\n",
	      out);
	for (size_t i = 0; i < v->file_cnt; i++)
		put_file(&v->files[i], out);
	fputs("</table>\n<p>own: each process has its own links; event: processes share one event; "
	      "all: one link for all processes of the machine.</p>\n",
	      out);
	put_keep(&v->keep, out);
	page_put_losses(v, out);
	page_end_plain(out);
}

int index_page_write(const struct serve_view *v, bool is_live, FILE *out)
{
	const struct page_head head = { .title = "heaptap", .base = "", .is_live = is_live };
	char *json = NULL;
	size_t bytes;
	FILE *f = open_memstream(&json, &bytes);

	if (!f)
		return -ENOMEM;
	page_json_index(v, f);
	if (fclose(f)) {
		free(json);
		return -ENOMEM;
	}
	page_begin(&head, out);
	put_plain(v, &head, out);
	page_end(&head, "index.js", json, out);
	free(json);
	return 0;
}
