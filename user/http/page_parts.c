/* SPDX-License-Identifier: MIT */
/* page_parts.c - see page_parts.h. */
#include "http/page_parts.h"

#include <math.h>
#include <string.h>

#include "base/markup.h"
#include "budget/budget.h"
#include "metrics/view.h"

void page_put_text(const char *text, FILE *out)
{
	markup_put(text, strlen(text), out);
}

void page_begin(const char *title, bool is_live, FILE *out)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n", out);
	if (is_live)
		fprintf(out, "<meta http-equiv=\"refresh\" content=\"%d\">\n", PAGE_LIVE_S);
	fputs("<title>", out);
	page_put_text(title, out);
	fputs("</title>\n<style>:root{color-scheme:light dark}body{font-family:sans-serif}"
	      "td,th{padding:.2em .8em;text-align:left}.numbers td:not(:last-child){text-align:right}"
	      ".processes td:nth-child(n+3):nth-child(-n+6){text-align:right}"
	      "td{overflow-wrap:anywhere}svg{color:#3584e4;vertical-align:middle}</style></head><body>\n"
	      "<h1>",
	      out);
	page_put_text(title, out);
	fputs("</h1>\n", out);
	if (is_live)
		fprintf(out,
			"<p>Fetched again every %d s: <a href=\"?live=0\">hold it still</a>.</p>\n",
			PAGE_LIVE_S);
	else
		fputs("<p>Still: <a href=\"?live=1\">follow it</a>.</p>\n", out);
}

void page_end(FILE *out)
{
	fputs("</body></html>\n", out);
}

const char *page_bytes(double bytes, char buf[UNITS_BUF])
{
	return isnan(bytes) ? "not known" : format_bytes(bytes, buf, UNITS_BUF);
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
	fputs(p->is_inuse_unknown ? "<br>in use is not known: " : "<br>in use: ", out);
	page_put_text(p->inuse_words, out);
}

void page_put_kept(const struct serve_kept *k, const char *base, FILE *out)
{
	char inuse[UNITS_BUF], bytes[UNITS_BUF];

	fprintf(out, "<tr><td>%d<td>", k->pid);
	page_put_text(k->comm, out);
	fprintf(out, "<td>%s<td>%s<td>%s<td>", page_bytes(k->inuse_bytes, inuse),
		format_bytes(k->bytes, bytes, sizeof(bytes)), k->time);
	fprintf(out,
		"<a href=\"%s%d/debug/pprof/heap?at=%s\">%s</a> "
		"<a href=\"%s%d/viewer?at=%s\">pictures</a> "
		"<a href=\"%s%d/diff?at=%s\">what changed since</a><td>",
		base, k->pid, k->at, k->at, base, k->pid, k->at, base, k->pid, k->at);
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
