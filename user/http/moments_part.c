/* SPDX-License-Identifier: MIT */
/*
 * moments_part.c - see process_page_priv.h.
 *
 * Moments are shown by the wall clock's time then, and by how long ago that was, which is right even if the clock
 * was set since. A page that reloads would forget the choice, so the form is only on the still one.
 */
#include "http/process_page_priv.h"

#include <stdint.h>

#include "base/clock.h"
#include "http/endpoints.h"
#include "metrics/stack_past.h"
#include "metrics/view.h"

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
		fprintf(out, ": they are stored for %d processes, and there are more",
			STACK_PAST_IMAGES_CAP);
	else
		fputs(" yet", out);
	fputs(".</p>\n", out);
}

void moments_part_write(const struct serve_view *v, const struct serve_process *p, bool is_live,
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
