/* SPDX-License-Identifier: MIT */
/*
 * report_html_moments.c - the time line of the picture: a drawing of what was in use over the recording, which needs no
 * script, and the numbers from which a script shows the flame graph of any of its moments.
 *
 * The moments are those of report --at (profile/history.h). The page has all of them, or every second, fourth, ..., so
 * that it has LIVES_CAP lives at most, and the last is always among them. Widths are percent, or stretched, and heights
 * are pixels, so that one drawing fits any screen.
 *
 *	moments		{ begin_ns, end_ns, points, lives }
 *	points		[ns, bytes, words, at], by time; at: the number of the moment, or the key of the measure that shows it
 *	lives		{ sample, first, last, bytes, variance, count }: what samples held from one moment to another; arrays of
 *			one length; sample as the difference to the last
 */

#include "base/json.h"
#include "base/units.h"
#include "report/report_html_priv.h"

#define LIVES_CAP 40000
#define TOP 22 /* pixels above the plot, for the peak's words */
#define HEIGHT 84 /* of the plot */
#define WIDTH 1000 /* of the plot, before it is stretched */
#define STEPS_MAX 3 /* of bytes */
#define TICKS_MAX 5
#define RSS_TIMES \
	4 /* resident memory that is larger than so many times what is in use would flatten the line */
#define NOT_KEPT SIZE_MAX
#define SECOND_NS 1000000000LL

/* The moments of the page at which it lived, by their numbers there. false: at none. */
static bool kept_life(const struct report_time_line *l, const struct history_life *life,
		      size_t *ret_first, size_t *ret_last)
{
	if (life->last < l->first)
		return false;
	*ret_first = life->first < l->first ? 0 : (life->first - l->first + l->step - 1) / l->step;
	*ret_last = (life->last - l->first) / l->step;
	return *ret_first <= *ret_last;
}

static size_t kept_cnt(const struct report_time_line *l)
{
	const struct profile *p = l->r->p;
	size_t cnt = 0, ignored;
	const uint32_t *i;

	vec_each(&l->r->chosen, i) {
		const struct profile_sample *s = &p->samples.data[*i];

		for (uint32_t k = 0; k < s->life_cnt; k++)
			cnt += kept_life(l, &p->lives.data[s->life_first + k], &ignored, &ignored);
	}
	return cnt;
}

/* Leave out every second moment until there is room for their lives. */
static void choose_moments(struct report_time_line *l)
{
	size_t cnt = l->r->p->moments_ns.cnt;

	do {
		l->step = l->step ? 2 * l->step : 1;
		l->first = (cnt - 1) % l->step;
	} while (l->step < cnt && kept_cnt(l) > LIVES_CAP);
	if (kept_cnt(l) > LIVES_CAP)
		l->first = cnt; /* none */
}

static int compare_points(const void *a, const void *b)
{
	const struct report_time_point *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	return (x->measure != NULL) - (y->measure != NULL);
}

static void add_moments(struct report_time_line *l)
{
	const struct profile *p = l->r->p;
	struct report_time_point *points = l->points;
	const uint32_t *i;

	/* changes first, then their sums */
	vec_each(&l->r->chosen, i) {
		const struct profile_sample *s = &p->samples.data[*i];

		for (uint32_t k = 0; k < s->life_cnt; k++) {
			const struct history_life *life = &p->lives.data[s->life_first + k];

			points[life->first].bytes += life->bytes;
			points[life->first].variance += life->variance;
			points[life->last + 1].bytes -= life->bytes;
			points[life->last + 1].variance -= life->variance;
		}
	}
	for (size_t m = 0; m < p->moments_ns.cnt; m++) {
		bool is_kept = m >= l->first && (m - l->first) % l->step == 0;

		points[m].ns = p->moments_ns.data[m];
		points[m].moment = is_kept ? (m - l->first) / l->step : NOT_KEPT;
		points[m].bytes += m ? points[m - 1].bytes : 0;
		points[m].variance += m ? points[m - 1].variance : 0;
	}
	l->point_cnt = p->moments_ns.cnt;
}

static void add_ends(struct report_time_line *l)
{
	const struct profile *p = l->r->p;
	int type = profile_find_type(p, "peak_space");
	const uint32_t *i;

	l->end = (struct report_time_point){ .ns = p->recording.duration_ns,
					     .moment = NOT_KEPT,
					     .measure = "inuse_space" };
	l->peak = (struct report_time_point){ .ns = p->recording.peak_ns,
					      .moment = NOT_KEPT,
					      .measure = "peak_space" };
	vec_each(&l->r->chosen, i) {
		const struct profile_sample *s = &p->samples.data[*i];
		struct estimate end = report_end_of(l->r, *i);

		l->end.bytes += end.bytes;
		l->end.variance += end.bytes_variance;
		l->peak.variance += s->peak_bytes_variance;
		if (type >= 0 && l->peak.ns)
			l->peak.bytes += (double)p->values.data[s->value_first + (size_t)type];
	}
	l->points[l->point_cnt++] = l->end;
	if (l->peak.bytes > 0)
		l->points[l->point_cnt++] = l->peak;
	qsort(l->points, l->point_cnt, sizeof(*l->points), compare_points);
	l->begin_ns = l->points[0].ns;
	l->end_ns = l->points[l->point_cnt - 1].ns;
}

static double error_of(const struct report_time_point *p)
{
	return p->variance > 0 ? 1.96 * sqrt(p->variance) : 0;
}

/* A third or less of what is to be drawn, in round numbers of bytes, KiB, MiB, .... */
static double bytes_step(double most)
{
	static const int round[] = { 1, 2, 5, 10, 20, 50, 100, 200, 500 };

	for (double unit = 1;; unit *= 1024)
		for (size_t i = 0; i < sizeof(round) / sizeof(*round); i++)
			if (STEPS_MAX * unit * round[i] >= most)
				return unit * round[i];
}

static void find_top(struct report_time_line *l)
{
	const struct recording *rec = &l->r->p->recording;
	double most = 1, rss = fmax((double)rec->rss_begin_bytes, (double)rec->rss_end_bytes), step;

	for (size_t i = 0; i < l->point_cnt; i++)
		most = fmax(most, l->points[i].bytes + error_of(&l->points[i]));
	if (rss <= RSS_TIMES * most)
		most = fmax(most, rss);
	step = bytes_step(most);
	l->top_bytes = step * ceil(most / step);
}

static bool has_line(const struct report *r)
{
	const struct profile *p = r->p;

	return r->is_inuse && !r->is_unknown && p->recording.is_known &&
	       p->recording.duration_ns > 0 && !p->is_history_partial && p->moments_ns.cnt &&
	       p->moments_ns.cnt <= HISTORY_MOMENTS_PUT_CAP;
}

int report_time_line_find(const struct report *r, struct report_time_line *ret)
{
	*ret = (struct report_time_line){ .r = r };
	if (!has_line(r))
		return 0;
	ret->points = calloc(r->p->moments_ns.cnt + 2, sizeof(*ret->points));
	if (!ret->points)
		return -ENOMEM;
	choose_moments(ret);
	add_moments(ret);
	add_ends(ret);
	find_top(ret);
	return 0;
}

static double part_at(const struct report_time_line *l, int64_t ns)
{
	return l->end_ns > l->begin_ns ?
		       (double)(ns - l->begin_ns) / (double)(l->end_ns - l->begin_ns) :
		       0;
}

/* In pixels from the upper edge of the plot. */
static double height_at(const struct report_time_line *l, double bytes)
{
	return HEIGHT - HEIGHT * fmin(fmax(bytes / l->top_bytes, 0), 1);
}

/* Points of a path, `sign` errors above the line; from the last on if is_back. */
static void put_points(const struct report_time_line *l, int sign, bool is_back, FILE *out)
{
	for (size_t i = 0; i < l->point_cnt; i++) {
		const struct report_time_point *p = &l->points[is_back ? l->point_cnt - 1 - i : i];

		fprintf(out, "%s%.1f %.1f", i ? "L" : "", WIDTH * part_at(l, p->ns),
			height_at(l, p->bytes + sign * error_of(p)));
	}
}

static void put_lines(const struct report_time_line *l, FILE *out)
{
	fprintf(out,
		"<svg y=\"%d\" width=\"100%%\" height=\"%d\" viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\">"
		"<path class=\"area\" d=\"M0 %dL",
		TOP, HEIGHT, WIDTH, HEIGHT, HEIGHT);
	put_points(l, 0, false, out);
	fprintf(out, "L%d %dZ\"/><path class=\"band\" d=\"M", WIDTH, HEIGHT);
	put_points(l, 1, false, out);
	fputc('L', out);
	put_points(l, -1, true, out);
	fputs("Z\"/><path d=\"M", out);
	put_points(l, 0, false, out);
	fputs("\"/></svg>\n", out);
}

static void put_bytes_axis(const struct report_time_line *l, FILE *out)
{
	double step = bytes_step(l->top_bytes);
	char text[UNITS_BUF];

	for (int i = 0; i <= STEPS_MAX && i * step <= l->top_bytes; i++) {
		double y = TOP + height_at(l, i * step);

		fprintf(out, "<line x1=\"0\" x2=\"100%%\" y1=\"%.1f\" y2=\"%.1f\"/>", y, y);
		if (i)
			fprintf(out, "<text x=\"4\" y=\"%.1f\">%s</text>", y + 12,
				format_bytes(i * step, text, sizeof(text)));
	}
	fputc('\n', out);
}

static int64_t time_step(int64_t span_ns)
{
	static const int of_ten[] = { 1, 2, 5 };
	static const int of_s[] = { 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600 };
	int64_t least = span_ns / TICKS_MAX, step;

	for (int64_t unit = 1000; unit <= SECOND_NS; unit *= 10)
		for (int i = 0; i < 3; i++)
			if (unit * of_ten[i] > least)
				return unit * of_ten[i];
	for (size_t i = 0; i < sizeof(of_s) / sizeof(*of_s); i++)
		if (SECOND_NS * of_s[i] > least)
			return SECOND_NS * of_s[i];
	for (step = SECOND_NS * 7200; step <= least; step *= 2)
		;
	return step;
}

static void put_tick(const struct report_time_line *l, int64_t ns, FILE *out)
{
	double at = 100 * part_at(l, ns);
	char text[UNITS_BUF];

	fprintf(out,
		"<line x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"%d\" y2=\"%d\"/>"
		"<text x=\"%.2f%%\" y=\"%d\" text-anchor=\"%s\">%s</text>",
		at, at, TOP + HEIGHT, TOP + HEIGHT + 4, at, TOP + HEIGHT + 16,
		at < 4	? "start" :
		at > 96 ? "end" :
			  "middle",
		ns ? format_duration((uint64_t)ns, text, sizeof(text)) : "0");
}

static void put_time_axis(const struct report_time_line *l, FILE *out)
{
	int64_t step = time_step(l->end_ns - l->begin_ns), ns = l->begin_ns - l->begin_ns % step;

	if (ns == l->begin_ns)
		put_tick(l, ns, out);
	for (; l->end_ns - ns >= step; ns += step)
		put_tick(l, ns + step, out);
	fputc('\n', out);
}

static void put_resident(const struct report_time_line *l, FILE *out)
{
	const struct recording *rec = &l->r->p->recording;
	const uint64_t bytes[] = { rec->rss_begin_bytes, rec->rss_end_bytes };
	char text[UNITS_BUF];

	for (int i = 0; i < 2; i++) {
		double at = 100 * part_at(l, i ? l->end.ns : l->begin_ns);
		double y = TOP + height_at(l, (double)bytes[i]);

		if (!bytes[i] || (double)bytes[i] > l->top_bytes)
			continue;
		fprintf(out,
			"<circle class=\"rss\" cx=\"%.2f%%\" cy=\"%.1f\" r=\"4\"/><text x=\"%.2f%%\" dx=\"%d\" "
			"y=\"%.1f\" text-anchor=\"%s\">resident %s</text>\n",
			at, y, at, i ? -8 : 8, y + 4, i ? "end" : "start",
			format_bytes((double)bytes[i], text, sizeof(text)));
	}
}

static const char *peak_words(const struct report_time_line *l, char *buf, size_t bytes)
{
	char value[UNITS_BUF], when[UNITS_BUF];

	snprintf(buf, bytes, "peak %s at %s", format_bytes(l->peak.bytes, value, sizeof(value)),
		 format_duration((uint64_t)l->peak.ns, when, sizeof(when)));
	return buf;
}

static void put_peak(const struct report_time_line *l, FILE *out)
{
	double at = 100 * part_at(l, l->peak.ns), y = TOP + height_at(l, l->peak.bytes);
	char text[3 * UNITS_BUF];

	if (l->peak.bytes <= 0)
		return;
	fprintf(out,
		"<line class=\"peak\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"16\" y2=\"%d\"/>"
		"<circle class=\"peak\" cx=\"%.2f%%\" cy=\"%.1f\" r=\"4\"/>"
		"<text class=\"peak\" x=\"%.2f%%\" y=\"12\" text-anchor=\"%s\">%s</text>\n",
		at, at, TOP + HEIGHT, at, y, at,
		at < 30 ? "start" :
		at > 70 ? "end" :
			  "middle",
		peak_words(l, text, sizeof(text)));
}

static void put_words(const struct report_time_line *l, FILE *out)
{
	char text[3 * UNITS_BUF];

	fputs("Heap in use over time: ", out);
	if (l->peak.bytes > 0)
		fprintf(out, "%s, ", peak_words(l, text, sizeof(text)));
	fprintf(out, "%s at the end.", format_bytes(l->end.bytes, text, sizeof(text)));
}

void report_time_line_put(const struct report_time_line *l, FILE *out)
{
	if (!l->points)
		return;
	fprintf(out, "<figure>\n<svg id=\"time\" role=\"img\" height=\"%d\" aria-label=\"",
		TOP + HEIGHT + 20);
	put_words(l, out);
	fputs("\">\n", out);
	put_lines(l, out);
	put_bytes_axis(l, out);
	put_time_axis(l, out);
	put_resident(l, out);
	put_peak(l, out);
	fputs("</svg>\n<figcaption id=\"time-said\">", out);
	put_words(l, out);
	fputs(" heaptap report --at TIME shows another moment.</figcaption>\n</figure>\n", out);
}

static void put_json_points(const struct report_time_line *l, struct json *j)
{
	char text[UNITS_BUF];

	json_begin(j, "points", '[');
	for (size_t i = 0; i < l->point_cnt; i++) {
		const struct report_time_point *p = &l->points[i];

		if (!p->measure && p->moment == NOT_KEPT)
			continue;
		json_begin(j, NULL, '[');
		json_format(j, NULL, "%lld", (long long)p->ns);
		json_number(j, NULL, 0, p->bytes);
		json_text(j, NULL, format_duration((uint64_t)p->ns, text, sizeof(text)));
		if (p->measure)
			json_text(j, NULL, p->measure);
		else
			json_format(j, NULL, "%zu", p->moment);
		json_end(j, ']');
	}
	json_end(j, ']');
}

/* One number of each life. */
enum field { SAMPLE, FIRST, LAST, BYTES, VARIANCE, COUNT };

static void put_field(const struct report_time_line *l, const char *key, enum field field,
		      struct json *j)
{
	const struct profile *p = l->r->p;
	size_t first, last, before = 0;

	json_begin(j, key, '[');
	for (size_t i = 0; i < l->r->chosen.cnt; i++) {
		const struct profile_sample *s = &p->samples.data[l->r->chosen.data[i]];

		for (uint32_t k = 0; k < s->life_cnt; k++) {
			const struct history_life *life = &p->lives.data[s->life_first + k];

			if (!kept_life(l, life, &first, &last))
				continue;
			json_format(j, NULL, "%.*g", field == VARIANCE ? 6 : 15,
				    field == SAMPLE   ? (double)(i - before) :
				    field == FIRST    ? (double)first :
				    field == LAST     ? (double)last :
				    field == BYTES    ? life->bytes :
				    field == VARIANCE ? life->variance :
							(double)life->samples);
			before = i;
		}
	}
	json_end(j, ']');
}

void report_time_line_put_json(const struct report_time_line *l, struct json *j)
{
	if (!l->points)
		return;
	json_begin(j, "moments", '{');
	json_format(j, "begin_ns", "%lld", (long long)l->begin_ns);
	json_format(j, "end_ns", "%lld", (long long)l->end_ns);
	put_json_points(l, j);
	json_begin(j, "lives", '{');
	put_field(l, "sample", SAMPLE, j);
	put_field(l, "first", FIRST, j);
	put_field(l, "last", LAST, j);
	put_field(l, "bytes", BYTES, j);
	put_field(l, "variance", VARIANCE, j);
	put_field(l, "count", COUNT, j);
	json_end(j, '}');
	json_end(j, '}');
}
