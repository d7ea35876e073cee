/* SPDX-License-Identifier: MIT */
/* page.c - see pages.h: the frame of a page, then what browsers without scripts show of the index and of a process. */
#include "http/pages.h"

#include "base/clock.h"
#include "base/printable.h"
#include "base/units.h"
#include "http/endpoints.h"
#include "http/past.h"
#include "http/view.h"
#include "track/budget.h"

struct page_head {
	const char *title;
	const char *base; /* of links to the index: "" or "../../" */
	bool is_live; /* false: it begins paused */
};

#define KEPT_TITLES "<th>PID<th>name<th>in use<th>size<th>taken (UTC)<th>profile<th>why\n"

/* Foreign bytes as text. */
static void put_text(const char *text, FILE *out)
{
	markup_put(text, strlen(text), out);
}

/* The beginning of a page, with links to the other pages. */
static void begin_page(const struct page_head *head, FILE *out)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
	      out);
	if (head->is_live)
		fprintf(out, "<noscript><meta http-equiv=\"refresh\" content=\"%d\"></noscript>\n",
			PAGE_LIVE_S);
	fputs("<title>", out);
	put_text(head->title, out);
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

/* The JSON, the scripts and the end. script: "index.js". */
static void end_page(const struct page_head *head, const char *script, const char *json, FILE *out)
{
	fputs("<script type=\"application/json\" id=\"data\">\n", out);
	markup_put_json(json, out);
	fprintf(out,
		"</script>\n<script src=\"%spage.js\"></script>\n<script src=\"%s%s\"></script>\n"
		"</body></html>\n",
		head->base, head->base, script);
}

/* Begin the part for browsers without scripts, with its heading. */
static void begin_plain(const struct page_head *head, FILE *out)
{
	fputs("<noscript>\n<h1>", out);
	put_text(head->title, out);
	fputs("</h1>\n", out);
	if (head->is_live)
		fprintf(out, "<p>Auto-refresh %d s: <a href=\"?live=0\">pause</a></p>\n",
			PAGE_LIVE_S);
	else
		fputs("<p>Paused: <a href=\"?live=1\">resume</a></p>\n", out);
}

static void end_plain(FILE *out)
{
	fputs("</noscript>\n", out);
}

static const char *known_bytes(double bytes, char buf[UNITS_BUF])
{
	return isnan(bytes) ? "unknown" : format_bytes(bytes, buf, UNITS_BUF);
}

/* What in use cannot explain, as a sentence after `before`; nothing if there is none. */
static void put_growth_words(const struct serve_process *p, const char *before, FILE *out)
{
	if (!p->growth_words || !*p->growth_words)
		return;
	fputs(before, out);
	put_text(p->growth_words, out);
}

/* The probes' share of its CPU time, and what is given up for it. */
static void put_overhead(const struct serve_process *p, FILE *out)
{
	char cost[UNITS_BUF];

	if (!isnan(p->overhead))
		fprintf(out, "%s %%", format_percent(p->overhead, cost, sizeof(cost)));
	if (p->overhead_step >= BUDGET_COARSE)
		fprintf(out, " %s", budget_step_name((enum budget_step)p->overhead_step));
	if (!*p->inuse_words)
		return;
	fputs(p->is_inuse_unknown ? "<br>heap in use is unknown: " : "<br>in use: ", out);
	put_text(p->inuse_words, out);
}

/* A row of a saved profile; base: of links to /pid/, such as "pid/" or "../". */
static void put_kept(const struct serve_kept *k, const char *base, FILE *out)
{
	char inuse[UNITS_BUF], bytes[UNITS_BUF], taken[ENDPOINT_TIME_BUF];

	fprintf(out, "<tr><td>%d<td>", k->pid);
	put_text(k->comm, out);
	endpoint_time_text(k->epoch_ms / 1000, taken);
	fprintf(out, "<td>%s<td>%s<td>%.10s %.8s<td>", known_bytes(k->inuse_bytes, inuse),
		format_bytes(k->bytes, bytes, sizeof(bytes)), taken,
		strlen(taken) > 11 ? taken + 11 : "");
	fprintf(out,
		"<a href=\"%s%d/debug/pprof/heap?at=%s\">pprof</a> "
		"<a href=\"%s%d/viewer?at=%s\">flame graph</a> "
		"<a href=\"%s%d/diff?at=%s\">changes since</a><td>",
		base, k->pid, k->at, base, k->pid, k->at, base, k->pid, k->at);
	put_text(k->why, out);
	fputc('\n', out);
}

static void put_losses(const struct serve_view *v, FILE *out)
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

/* The index: the tracked processes, what they hold, and links to their profiles. */

#define KEPT_SHOWN_MAX 50

static void put_process_row(const struct serve_process *p, FILE *out)
{
	char inuse[UNITS_BUF], objects[UNITS_BUF], alloc[UNITS_BUF], rss[UNITS_BUF];

	fprintf(out, "<tr><td>%d<td><a href=\"pid/%d/\">", p->pid, p->pid);
	put_text(p->comm[0] ? p->comm : "(no name)", out);
	fprintf(out, "</a><td>%s<td>%s<td>%s<td>%s<td>", known_bytes(p->inuse_bytes, inuse),
		isnan(p->inuse_objects) ? "" :
					  format_count(p->inuse_objects, objects, sizeof(objects)),
		format_bytes(p->alloc_bytes, alloc, sizeof(alloc)),
		format_bytes(p->rss_bytes, rss, sizeof(rss)));
	put_overhead(p, out);
	put_growth_words(p, "<br>", out);
	fputc('\n', out);
}

static void put_file(const struct serve_file *f, FILE *out)
{
	fprintf(out, "<tr><td>%s<td>%.0f<td>%.2f &micro;s<td>", f->sharing, f->process_cnt,
		f->hit_seconds * 1e6);
	put_text(f->path, out);
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
	fputs("<table class=\"plain\"><tr>" KEPT_TITLES, out);
	for (size_t i = 0; i < keep->kept_cnt && i < KEPT_SHOWN_MAX; i++)
		put_kept(&keep->kept[i], "pid/", out);
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

static void put_index(const struct serve_view *v, const struct page_head *head, FILE *out)
{
	begin_plain(head, out);
	put_rate(v, out);
	fputs("<table class=\"plain\"><tr><th>PID<th>name<th>in use<th>blocks<th>allocated<th>resident"
	      "<th>probe cost\n",
	      out);
	for (size_t i = 0; i < v->process_cnt; i++)
		put_process_row(&v->processes[i], out);
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
	put_losses(v, out);
	end_plain(out);
}

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
	for (size_t i = 0; i < ARRAY_CNT(least_s); i++) {
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

static void put_moments(const struct serve_view *v, const struct serve_process *p, bool is_live,
			FILE *out)
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

	put_growth_words(p, "<p>", out);
	fprintf(out, "<p>In use: <b>%s</b>", known_bytes(p->inuse_bytes, text));
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
	put_overhead(p, out);
	fputs("</p>\n<p>", out);
	put_text(p->exe, out);
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

	fprintf(out, "<tr><td>%s<td>%s<td>%s<td>", known_bytes(s->inuse_bytes, inuse),
		isnan(s->inuse_error_bytes) ?
			"" :
			format_bytes(1.96 * s->inuse_error_bytes, error, sizeof(error)),
		format_bytes(s->alloc_bytes, alloc, sizeof(alloc)));
	put_text(s->thread, out);
	fputs("<td>", out);
	put_text(s->scope, out);
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
		put_text(i->why, out);
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

static void put_kept_of(const struct serve_keep *keep, pid_t pid, FILE *out)
{
	size_t cnt = 0;

	for (size_t i = 0; i < keep->kept_cnt; i++) {
		if (keep->kept[i].pid != pid)
			continue;
		if (!cnt++)
			fputs("<h2>Saved profiles</h2>\n<table class=\"plain\"><tr>" KEPT_TITLES,
			      out);
		put_kept(&keep->kept[i], "../", out);
	}
	if (cnt)
		fputs("</table>\n", out);
}

static void put_process(const struct serve_view *v, const struct serve_process *p,
			const struct page_head *head, FILE *out)
{
	begin_plain(head, out);
	put_now(p, out);
	put_growth(v, p, out);
	put_rows(v, p, out);
	put_moments(v, p, head->is_live, out);
	put_scopes(p, out);
	put_kept_of(&v->keep, p->pid, out);
	put_losses(v, out);
	end_plain(out);
}

int page_write(const struct serve_view *v, const struct serve_process *p, bool is_live, FILE *out)
{
	char title[128] = "heaptap";
	const struct page_head head = { .title = title,
					.base = p ? "../../" : "",
					.is_live = is_live };
	char *json = NULL;
	size_t bytes;
	FILE *f = open_memstream(&json, &bytes);

	if (!f)
		return -ENOMEM;
	page_json(v, p, f);
	if (fclose(f)) {
		free(json);
		return -ENOMEM;
	}
	if (p)
		snprintf(title, sizeof(title), "%.80s (PID %d)", p->comm, p->pid);
	begin_page(&head, out);
	if (p) {
		put_process(v, p, &head, out);
		fputs("<section id=\"stacks\">\n" PROCESS_PAGE_STACKS "</section>\n", out);
	} else {
		put_index(v, &head, out);
	}
	end_page(&head, p ? "process.js" : "index.js", json, out);
	free(json);
	return 0;
}
