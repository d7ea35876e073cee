/* SPDX-License-Identifier: MIT */
/* page_parts.c - see pages.h. */
#include "http/pages.h"

#include "base/printable.h"
#include "http/endpoints.h"
#include "http/view.h"
#include "track/budget.h"

void page_put_text(const char *text, FILE *out)
{
	markup_put(text, strlen(text), out);
}

void page_begin(const struct page_head *head, FILE *out)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
	      out);
	if (head->is_live)
		fprintf(out, "<noscript><meta http-equiv=\"refresh\" content=\"%d\"></noscript>\n",
			PAGE_LIVE_S);
	fputs("<title>", out);
	page_put_text(head->title, out);
	fprintf(out,
		"</title>\n<link rel=\"stylesheet\" href=\"%spage.css\"></head>\n<body data-live=\"%d\""
		">\n<header><a class=\"brand\" href=\"%s\">heaptap</a><nav id=\"links\">",
		head->base, head->is_live ? PAGE_LIVE_S : 0, *head->base ? head->base : "./");
	if (!*head->base)
		fputs("<a href=\"viewer\">Flame graph of all</a><a href=\"debug/pprof/heap\">pprof</a>"
		      "<a href=\"metrics\">Metrics</a>",
		      out);
	else
		fputs("<a href=\"../../\">All processes</a><a href=\"viewer\">Flame graph</a><a href=\"viewer?seconds=10\">Allocated in 10 s</a>"
		      "<a href=\"viewer?pinned=1#m=pinned_space\">Pinned memory</a>"
		      "<a href=\"debug/pprof/heap\">pprof</a><a href=\"debug/pprof/heap?debug=1\">Text</a>",
		      out);
	fputs("</nav><span id=\"state\"></span></header>\n<main id=\"app\"></main>\n", out);
}

void page_end(const struct page_head *head, const char *script, const char *json, FILE *out)
{
	fputs("<script type=\"application/json\" id=\"data\">\n", out);
	markup_put_json(json, out);
	fprintf(out,
		"</script>\n<script src=\"%spage.js\"></script>\n<script src=\"%s%s\"></script>\n"
		"</body></html>\n",
		head->base, head->base, script);
}

void page_begin_plain(const struct page_head *head, FILE *out)
{
	fputs("<noscript>\n<h1>", out);
	page_put_text(head->title, out);
	fputs("</h1>\n", out);
	if (head->is_live)
		fprintf(out, "<p>Auto-refresh %d s: <a href=\"?live=0\">pause</a></p>\n",
			PAGE_LIVE_S);
	else
		fputs("<p>Paused: <a href=\"?live=1\">resume</a></p>\n", out);
}

void page_end_plain(FILE *out)
{
	fputs("</noscript>\n", out);
}

const char *page_bytes(double bytes, char buf[UNITS_BUF])
{
	return isnan(bytes) ? "unknown" : format_bytes(bytes, buf, UNITS_BUF);
}

void page_put_growth_words(const struct serve_process *p, const char *before, FILE *out)
{
	if (!p->growth_words || !*p->growth_words)
		return;
	fputs(before, out);
	page_put_text(p->growth_words, out);
}

void page_put_overhead(const struct serve_process *p, FILE *out)
{
	char cost[UNITS_BUF];

	if (!isnan(p->overhead))
		fprintf(out, "%s %%", format_percent(p->overhead, cost, sizeof(cost)));
	if (p->overhead_step >= BUDGET_COARSE)
		fprintf(out, " %s", budget_step_name((enum budget_step)p->overhead_step));
	if (!*p->inuse_words)
		return;
	fputs(p->is_inuse_unknown ? "<br>heap in use is unknown: " : "<br>in use: ", out);
	page_put_text(p->inuse_words, out);
}

void page_put_kept(const struct serve_kept *k, const char *base, FILE *out)
{
	char inuse[UNITS_BUF], bytes[UNITS_BUF], taken[ENDPOINT_TIME_BUF];

	fprintf(out, "<tr><td>%d<td>", k->pid);
	page_put_text(k->comm, out);
	endpoint_time_text(k->epoch_ms / 1000, taken);
	fprintf(out, "<td>%s<td>%s<td>%.10s %.8s<td>", page_bytes(k->inuse_bytes, inuse),
		format_bytes(k->bytes, bytes, sizeof(bytes)), taken,
		strlen(taken) > 11 ? taken + 11 : "");
	fprintf(out,
		"<a href=\"%s%d/debug/pprof/heap?at=%s\">pprof</a> "
		"<a href=\"%s%d/viewer?at=%s\">flame graph</a> "
		"<a href=\"%s%d/diff?at=%s\">changes since</a><td>",
		base, k->pid, k->at, base, k->pid, k->at, base, k->pid, k->at);
	page_put_text(k->why, out);
	fputc('\n', out);
}

void page_put_losses(const struct serve_view *v, FILE *out)
{
	bool has_some = false;

	fputs("<h2>Losses</h2>\n<ul>\n", out);
	for (size_t i = 0; i < v->loss_cnt; i++) {
		if (!v->losses[i].value)
			continue;
		has_some = true;
		fprintf(out, "<li>%llu %s\n", (unsigned long long)v->losses[i].value,
			v->losses[i].meaning);
	}
	fprintf(out, "</ul>\n%s", has_some ? "" : "<p>None.</p>\n");
}
