/* SPDX-License-Identifier: MIT */
/* page_json.c - see pages.h. */
#include "http/pages.h"

#include "base/clock.h"
#include "base/json.h"
#include "http/past.h"
#include "http/view.h"
#include "track/budget.h"

#define POINT_TOP 100 /* the value of the largest point of a small line */
#define MS_PER_NS (1 / 1e6)

static void put_known(struct json *j, const char *key, int decimals, double value)
{
	if (isfinite(value))
		json_number(j, key, decimals, value);
}

static void put_words(struct json *j, const char *key, const char *text)
{
	if (text && *text)
		json_text(j, key, text);
}

/* The wall clock's time of a moment of CLOCK_MONOTONIC, if the clock was not set since. */
static double epoch_ms_of(uint64_t time_ns)
{
	double ago_ns = (double)now_ns() - (double)time_ns;

	return ((double)clock_ns(CLOCK_REALTIME) - ago_ns) * MS_PER_NS;
}

static void put_growth(struct json *j, const struct inuse_growth *g)
{
	const char *trend = inuse_trend_text(g->trend);

	if (!trend)
		return;
	json_begin(j, "growth", '{');
	json_text(j, "trend", trend);
	json_number(j, "bytes_per_min", 0, g->bytes_per_min);
	json_number(j, "minutes", 1, g->minutes);
	json_end(j, '}');
}

/* The largest value; NAN: none is known. */
static double top_of(const float *values, size_t cnt)
{
	double most = NAN;

	for (size_t i = 0; i < cnt; i++)
		most = fmax(most, (double)values[i]);
	return most;
}

/* A line of at most PAGE_JSON_POINTS points, each the largest of its neighbours: 0 to POINT_TOP, null: not known. It
 * begins with the first value that is known. */
static void put_small_line(struct json *j, const float *values, size_t cnt)
{
	double top = top_of(values, cnt);
	size_t points;

	if (!isfinite(top))
		return;
	for (; cnt && isnan(*values); values++)
		cnt--;
	points = cnt < PAGE_JSON_POINTS ? cnt : PAGE_JSON_POINTS;
	json_begin(j, "past", '{');
	json_uint(j, "seconds", (cnt - 1) * INUSE_PAST_STEP_S);
	json_number(j, "top_bytes", 0, top);
	json_begin(j, "points", '[');
	for (size_t i = 0; i < points; i++) {
		size_t first = i * cnt / points, end = (i + 1) * cnt / points;

		json_number(j, NULL, 0,
			    top > 0 ? POINT_TOP * top_of(values + first, end - first) / top :
				      top_of(values + first, end - first));
	}
	json_end(j, ']');
	json_end(j, '}');
}

/* The rate is that of the server, unless something is given up. */
static void put_cost(struct json *j, const struct serve_view *v, const struct serve_process *p)
{
	put_known(j, "overhead", 6, p->overhead);
	if (p->overhead_step >= BUDGET_COARSE)
		json_text(j, "step", budget_step_name((enum budget_step)p->overhead_step));
	if (p->overhead_rate_bytes != v->rate_bytes)
		put_known(j, "rate_bytes", 0, p->overhead_rate_bytes);
	if (p->is_tapped)
		json_bool(j, "is_tapped", true);
}

/* What index and page of a process both say. */
static void put_facts(struct json *j, const struct serve_view *v, const struct serve_process *p)
{
	json_format(j, "pid", "%d", p->pid);
	json_text(j, "name", p->comm);
	put_words(j, "exe", p->exe);
	put_words(j, "container", p->container);
	put_words(j, "cgroup", p->cgroup);
	put_known(j, "inuse_bytes", 0, p->inuse_bytes);
	put_known(j, "inuse_error_bytes", 0, p->inuse_error_bytes);
	put_known(j, "rss_bytes", 0, p->rss_bytes);
	put_known(j, "limit_bytes", 0, p->cgroup_limit_bytes);
	put_known(j, "limit_used_bytes", 0, p->cgroup_usage_bytes);
	put_cost(j, v, p);
	if (p->is_inuse_unknown)
		json_bool(j, "is_inuse_unknown", true);
	put_words(j, "inuse_note", p->inuse_words);
	put_words(j, "growth_note", p->growth_words);
}

static size_t hour_of(const struct serve_view *v, pid_t pid, float ret[static INUSE_PAST_HOUR_CNT])
{
	return v->past ? inuse_past_hour(v->past, pid, INUSE_PAST_INUSE, ret) : 0;
}

static void put_process(struct json *j, const struct serve_view *v, const struct serve_process *p)
{
	float hour[INUSE_PAST_HOUR_CNT];
	size_t cnt = hour_of(v, p->pid, hour);
	struct inuse_growth g;

	json_line(j);
	json_begin(j, NULL, '{');
	put_facts(j, v, p);
	inuse_growth(hour, cnt, INUSE_PAST_STEP_S, p->inuse_error_bytes, &g);
	put_growth(j, &g);
	put_small_line(j, hour, cnt);
	json_end(j, '}');
}

static void put_saved_one(struct json *j, const struct serve_kept *k)
{
	json_begin(j, NULL, '{');
	json_format(j, "pid", "%d", k->pid);
	json_text(j, "name", k->comm);
	json_text(j, "at", k->at);
	json_text(j, "why", k->why);
	json_format(j, "time_ms", "%lld", (long long)k->epoch_ms);
	json_number(j, "bytes", 0, k->bytes);
	put_known(j, "inuse_bytes", 0, k->inuse_bytes);
	json_end(j, '}');
}

/* one: only those of it, or of processes of its name; NULL: all. Nothing if none are ever saved. */
static void put_saved(struct json *j, const struct serve_keep *keep,
		      const struct serve_process *one)
{
	size_t cnt = 0, omitted = 0;

	if (isnan(keep->file_cnt))
		return;
	json_line(j);
	json_begin(j, "saved", '[');
	for (size_t i = 0; i < keep->kept_cnt; i++) {
		const struct serve_kept *k = &keep->kept[i];

		if (one && k->pid != one->pid && strcmp(k->comm, one->comm) != 0)
			continue;
		if (cnt++ < PAGE_JSON_SAVED_MAX)
			put_saved_one(j, k);
		else
			omitted++;
	}
	json_end(j, ']');
	json_uint(j, "saved_omitted_cnt", omitted);
}

static void put_losses(struct json *j, const struct serve_view *v)
{
	json_line(j);
	json_begin(j, "losses", '[');
	for (size_t i = 0; i < v->loss_cnt; i++) {
		if (!v->losses[i].value)
			continue;
		json_begin(j, NULL, '{');
		json_uint(j, "value", v->losses[i].value);
		json_text(j, "what", v->losses[i].meaning);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_head(struct json *j, const struct serve_view *v)
{
	json_text(j, "version", v->version);
	json_format(j, "time_ms", "%.0f", (double)clock_ns(CLOCK_REALTIME) * MS_PER_NS);
	put_known(j, "rate_bytes", 0, v->rate_bytes);
	json_bool(j, "is_paused", v->is_paused > 0);
}

static void put_index(struct json *j, const struct serve_view *v)
{
	put_known(j, "refused_cnt", 0, v->refused_cnt);
	put_known(j, "host_overhead", 6, v->host_overhead);
	json_begin(j, "processes", '[');
	for (size_t i = 0; i < v->process_cnt; i++)
		put_process(j, v, &v->processes[i]);
	json_end(j, ']');
	json_line(j);
	json_begin(j, "files", '[');
	for (size_t i = 0; i < v->file_cnt; i++) {
		json_begin(j, NULL, '{');
		json_text(j, "path", v->files[i].path);
		json_text(j, "sharing", v->files[i].sharing);
		json_number(j, "process_cnt", 0, v->files[i].process_cnt);
		json_number(j, "hit_us", 2, v->files[i].hit_seconds * 1e6);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_values(struct json *j, const char *key, const float *values, size_t cnt)
{
	json_begin(j, key, '[');
	for (size_t i = 0; i < cnt; i++)
		json_number(j, NULL, 0, (double)values[i]);
	json_end(j, ']');
}

/* The same number of points of both lines: they are of the same moments. */
static void put_past(struct json *j, const struct serve_view *v, const struct serve_process *p)
{
	float hour[INUSE_PAST_HOUR_CNT], day[INUSE_PAST_DAY_CNT];
	size_t cnt = hour_of(v, p->pid, hour);

	if (!cnt) {
		json_bool(j, "is_past_full", v->past && inuse_past_is_full(v->past));
		return;
	}
	json_line(j);
	json_format(j, "past_until_ms", "%.0f", epoch_ms_of(inuse_past_time_ns(v->past)));
	json_begin(j, "hour", '{');
	json_format(j, "step_s", "%d", INUSE_PAST_STEP_S);
	put_values(j, "inuse", hour, cnt);
	cnt = inuse_past_hour(v->past, p->pid, INUSE_PAST_RESIDENT, hour);
	put_values(j, "resident", hour, cnt);
	json_end(j, '}');
	json_line(j);
	json_begin(j, "day", '{');
	json_format(j, "step_s", "%d", INUSE_PAST_STEP_S * INUSE_PAST_DAY_STEPS);
	cnt = inuse_past_day(v->past, p->pid, INUSE_PAST_INUSE, day);
	put_values(j, "inuse", day, cnt);
	cnt = inuse_past_day(v->past, p->pid, INUSE_PAST_RESIDENT, day);
	put_values(j, "resident", day, cnt);
	json_end(j, '}');
}

/* Each row that has appeared, by its name, at these times. */
static void put_row_points(struct json *j, const char *key, const struct rows_past_image *i,
			   const struct rows_past_point *points, size_t cnt)
{
	json_line(j);
	json_begin(j, key, '{');
	json_begin(j, "times_ms", '[');
	for (size_t k = 0; k < cnt; k++)
		json_format(j, NULL, "%.0f", epoch_ms_of(points[k].time_ns));
	json_end(j, ']');
	json_begin(j, "bytes", '{');
	for (int kind = 0; kind < ROW_CNT; kind++) {
		if (!(i->seen >> kind & 1))
			continue;
		json_begin(j, row_name((enum row_kind)kind), '[');
		for (size_t k = 0; k < cnt; k++)
			json_number(j, NULL, 0, (double)points[k].rows[kind]);
		json_end(j, ']');
	}
	json_end(j, '}');
	json_end(j, '}');
}

/* The newest reading, with the words of heaptap explain. */
static void put_row_list(struct json *j, const struct rows_past_image *i)
{
	json_format(j, "time_ms", "%.0f", epoch_ms_of(i->last_ns));
	json_number(j, "took_ms", 1, (double)i->last.took_ns * MS_PER_NS);
	json_number(j, "rss_bytes", 0, (double)i->last.rss_bytes);
	put_words(j, "heap_why_not", i->last.is_proved ? NULL : i->last.why);
	json_begin(j, "list", '[');
	for (int kind = 0; kind < ROW_CNT; kind++) {
		if (!(i->seen >> kind & 1))
			continue;
		json_begin(j, NULL, '{');
		json_text(j, "row", row_name((enum row_kind)kind));
		json_text(j, "what", row_label((enum row_kind)kind));
		json_format(j, "bytes", "%lld", (long long)rows_past_bytes(i, (enum row_kind)kind));
		json_end(j, '}');
	}
	json_end(j, ']');
}

/* What is resident, by row. Nothing if it is never read. */
static void put_rows(struct json *j, const struct serve_view *v, const struct serve_process *p)
{
	const struct rows_past_image *i = v->rows ? rows_past_find(v->rows, p->image) : NULL;

	if (!v->rows)
		return;
	json_line(j);
	json_begin(j, "rows", '{');
	if (!i)
		json_text(j, "note",
			  rows_past_is_full(v->rows) ?
				  "Too many processes: the memory of this one is not read." :
				  "Not read yet.");
	else if (rows_past_is_known(i))
		put_row_list(j, i);
	else
		put_words(j, "why_not", i->why);
	if (i && i->seen) {
		put_row_points(j, "hour", i, i->hour, i->hour_cnt);
		put_row_points(j, "day", i, i->day, i->day_cnt);
	}
	json_end(j, '}');
}

/* The moments that can be compared, in seconds since the epoch, as the page /pid/N/diff takes them. */
static void put_moments(struct json *j, const struct serve_view *v, const struct serve_process *p)
{
	const struct stack_past_moment *m;
	size_t cnt = v->stacks ? stack_past_moments(v->stacks, p->image, &m) : 0;

	json_line(j);
	json_begin(j, "moments", '[');
	for (size_t i = 0; i < cnt; i++)
		json_format(j, NULL, "%lld", (long long)(m[i].epoch_ns / (int64_t)NS_PER_S));
	json_end(j, ']');
	json_text(j, "moments_note",
		  cnt > 1    ? NULL :
		  !v->stacks ? "With --past-interval 0 no moments are stored." :
		  !cnt && p->is_inuse_unknown ?
			       "No moments are stored while heap in use is unknown." :
		  !cnt && stack_past_is_full(v->stacks) ?
			       "Too many processes: no moments of this one are stored." :
			       "No two moments yet.");
}

/* With which it can be compared. */
static void put_others(struct json *j, const struct serve_view *v, const struct serve_process *p)
{
	json_line(j);
	json_begin(j, "others", '[');
	for (size_t i = 0; i < v->process_cnt && i < PAGE_JSON_OTHERS_MAX; i++) {
		if (v->processes[i].pid == p->pid)
			continue;
		json_begin(j, NULL, '{');
		json_format(j, "pid", "%d", v->processes[i].pid);
		json_text(j, "name", v->processes[i].comm);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_scopes(struct json *j, const struct serve_process *p)
{
	json_line(j);
	json_begin(j, "scopes", '[');
	for (size_t i = 0; i < p->scope_cnt; i++) {
		const struct serve_scope *s = &p->scopes[i];

		json_begin(j, NULL, '{');
		json_text(j, "scope", s->scope);
		json_text(j, "thread", s->thread);
		put_known(j, "inuse_bytes", 0, s->inuse_bytes);
		put_known(j, "inuse_error_bytes", 0, s->inuse_error_bytes);
		put_known(j, "alloc_bytes", 0, s->alloc_bytes);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_page(struct json *j, const struct serve_view *v, const struct serve_process *p)
{
	float hour[INUSE_PAST_HOUR_CNT];
	size_t cnt = hour_of(v, p->pid, hour);
	struct inuse_growth g;

	json_begin(j, "process", '{');
	put_facts(j, v, p);
	put_known(j, "inuse_objects", 0, p->inuse_objects);
	put_known(j, "alloc_bytes", 0, p->alloc_bytes);
	if (p->exec_ns)
		json_format(j, "exec_ms", "%.0f", epoch_ms_of(p->exec_ns));
	inuse_growth(hour, cnt, INUSE_PAST_STEP_S, p->inuse_error_bytes, &g);
	put_growth(j, &g);
	json_end(j, '}');
	put_past(j, v, p);
	put_rows(j, v, p);
	put_moments(j, v, p);
	put_others(j, v, p);
	put_scopes(j, p);
}

void page_json(const struct serve_view *v, const struct serve_process *p, FILE *out)
{
	struct json j = { .out = out };

	json_begin(&j, NULL, '{');
	put_head(&j, v);
	if (p)
		put_page(&j, v, p);
	else
		put_index(&j, v);
	put_saved(&j, &v->keep, p);
	put_losses(&j, v);
	json_end(&j, '}');
	fputc('\n', out);
}
