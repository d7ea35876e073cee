/* SPDX-License-Identifier: MIT */
/*
 * report_screen.c - rows of one line each: by stack with the place that they are charged to and its callers; scopes
 * indented below their parents; tasks with their scope, of which a long one keeps its end; else with their names.
 *
 * All but trees fit a screen: rows that hold nothing any more are summed up in one line, and so are rows without room. A number
 * of lines is left between head and end. Each row gets one line; then the largest rows that do not
 * fit in one line get a second, as long as lines are left.
 */

#include "base/names.h"
#include "base/units.h"
#include "profile/scope_tree.h"
#include "report/report_places.h"
#include "report/report_rows.h"
#include "report/report_text.h"

#define NAME_COLUMNS_MIN 20
#define CALLER_COLUMNS_MIN 12
#define OWN_COLUMNS_MIN 26
#define SECOND_INDENT 6
#define RANK_COLUMNS 4
#define TREE_INDENT 2
#define TENANT_KEYS_MAX 2

struct screen {
	const struct report *r;
	const struct report_row *rows; /* largest first */
	size_t cnt;
	size_t held_cnt; /* number of rows that are listed one by one, or would be */
	size_t shown_cnt;
	size_t spare_lines; /* for rows that need a second line */
	const struct report_row *unmatched; /* or NULL */
	struct report_row empty, other; /* sums of rows that are not shown */
	bool has_empty_line;
	const char *library,
		*program; /* whose functions the rows are, and who calls it; NULL: no advice */
	struct report_table table;
	size_t rank_columns; /* of the rank, in front of the numbers */
	size_t used; /* columns in front of the name */
	FILE *out;
};

/* By lifetime or size. */
static bool is_by_bin(const struct report *r)
{
	return report_is_by_class(r->opts) && r->opts->by != REPORT_BY_AGE;
}

static bool is_by_name(const struct report *r)
{
	return r->opts->by != REPORT_BY_STACK;
}

/* By function: a system function that has no values of its own. */
static bool is_noise(const struct report *r, const struct report_row *row)
{
	return r->opts->by == REPORT_BY_FUNCTION && !row->value && !row->alloc && !row->objects &&
	       report_is_system_function(strset_get(r->names, row->name));
}

/* A report by allocations shows all rows, whatever is left of them. If nothing at all is left,
 * allocations are all that there is to say. */
static bool is_empty(const struct report *r, const struct report_row *row)
{
	return r->is_inuse && r->total.value && !row->value && !row->cumulative &&
	       (r->opts->sort == REPORT_SORT_INUSE || r->opts->sort == REPORT_SORT_OBJECTS);
}

static void choose_cells(struct screen *s)
{
	const struct report *r = s->r;
	const bool is_function = r->opts->by == REPORT_BY_FUNCTION;
	bool is_about_alloc = r->opts->sort == REPORT_SORT_ALLOC || !r->total.value;
	bool wants_alloc =
		is_about_alloc || (is_by_name(r) && report_columns(r) >= (is_function ? 90 : 72));
	bool *wants = s->table.wants;

	s->rank_columns = is_by_name(r) ? 0 : RANK_COLUMNS;
	wants[REPORT_CELL_VALUE] = wants[REPORT_CELL_MARK] = wants[REPORT_CELL_INTERVAL] = true;
	wants[REPORT_CELL_BLOCKS] = r->objects_type >= 0;
	wants[REPORT_CELL_OF_BLOCKS] = is_by_bin(r) && r->objects_type >= 0;
	wants[REPORT_CELL_CUMULATIVE] = is_function;
	wants[REPORT_CELL_ALLOC] = r->alloc_type >= 0 && wants_alloc;
}

/* Make cells as wide as their content. */
static void measure(struct screen *s)
{
	for (size_t i = 0; i < s->shown_cnt; i++)
		report_table_widen(&s->table, &s->rows[i]);
	if (s->unmatched)
		report_table_widen(&s->table, s->unmatched);
	s->used = s->rank_columns + report_table_columns(&s->table);
}

static void put_titles(const struct screen *s)
{
	static const char *const what[] = {
		[REPORT_BY_STACK] = "WHERE",	 [REPORT_BY_FUNCTION] = "FUNCTION",
		[REPORT_BY_MODULE] = "MODULE",	 [REPORT_BY_THREAD] = "THREAD",
		[REPORT_BY_LABEL] = "LABEL",	 [REPORT_BY_AGE] = "AGE",
		[REPORT_BY_LIFETIME] = "LIVED",	 [REPORT_BY_SIZE] = "SIZE",
		[REPORT_BY_SCOPE] = "SCOPE",	 [REPORT_BY_INSTANCE] = "SCOPE",
		[REPORT_BY_PROCESS] = "PROCESS",
	};
	const char *key = s->r->opts->by == REPORT_BY_LABEL ? s->r->opts->label_key : "";

	fprintf(s->out, "%*s", (int)s->rank_columns, "");
	report_table_put_titles(&s->table, s->out);
	fprintf(s->out, "%s%s", what[s->r->opts->by], key[0] ? " " : "");
	report_put_name(s->out, key, NAME_COLUMNS_MIN);
	fputc('\n', s->out);
}

static void put_numbers(const struct screen *s, size_t rank, const struct report_row *row)
{
	if (s->rank_columns && rank)
		fprintf(s->out, "%2zu  ", rank);
	else
		fprintf(s->out, "%*s", (int)s->rank_columns, "");
	report_table_put_row(&s->table, row, s->out);
}

/* " < f file.c:1 < main file.c:2": as many callers as fit, the first in any case. */
static void put_callers(const struct screen *s, const struct report_named_place *n, size_t columns)
{
	char text[REPORT_FIT_BUF];

	report_paint(s->r, REPORT_DIM, s->out);
	for (size_t i = 0; i < n->caller_cnt; i++) {
		size_t width =
			3 + report_width(n->caller[i].name) + report_width(n->caller[i].place);

		if (i && width > columns)
			break;
		report_fit_named(&n->caller[i], columns > 3 ? columns - 3 : 1, text);
		fprintf(s->out, "%s< %s", i ? " " : "", text);
		columns -= width < columns ? width : columns;
	}
	report_paint(s->r, REPORT_PLAIN, s->out);
}

static size_t hint_width(const struct report_named_place *n)
{
	return n->hint ? strlen(n->hint) + 3 : 0;
}

static size_t put_own(const struct screen *s, const struct report_named_place *n, size_t hint,
		      size_t columns)
{
	char text[REPORT_FIT_BUF];

	if (hint + CALLER_COLUMNS_MIN > columns)
		hint = 0;
	report_fit_named(&n->own, columns - hint, text);
	fputs(text, s->out);
	if (hint)
		fprintf(s->out, " (%s)", n->hint);
	return report_width(text) + hint;
}

/* The name goes behind the numbers, or below them on a narrow page. Return its room. */
static size_t begin_name(const struct screen *s)
{
	size_t columns = report_columns(s->r);

	if (columns >= s->used + NAME_COLUMNS_MIN)
		return columns - s->used;
	fprintf(s->out, "\n%*s", SECOND_INDENT, "");
	return columns - SECOND_INDENT;
}

/* Write the callers below the name, and the hint if it had no room. */
static void put_second_line(struct screen *s, const struct report_named_place *n, bool has_hint)
{
	size_t columns = report_columns(s->r) - SECOND_INDENT + 1;

	fprintf(s->out, "\n%*s", SECOND_INDENT, "");
	if (has_hint && columns > hint_width(n) + CALLER_COLUMNS_MIN) {
		fprintf(s->out, "(%s)%s", n->hint, n->caller_cnt ? " " : "");
		columns -= hint_width(n);
	}
	put_callers(s, n, columns);
	s->spare_lines--;
}

/* If name and caller share one line, shorten both, unless that leaves too little of the name. */
static size_t room_for_own(size_t room, size_t own, size_t hint, size_t caller)
{
	size_t least = room / 3 > CALLER_COLUMNS_MIN + 3 ? room / 3 : CALLER_COLUMNS_MIN + 3;
	size_t given = caller < least ? caller : least;

	if (own + hint + caller > room && room >= given + hint + OWN_COLUMNS_MIN)
		room -= given;
	return own + hint < room ? own + hint : room;
}

static void put_place(struct screen *s, const struct report_row *row)
{
	struct report_named_place n;
	size_t room = begin_name(s), own, hint, caller = 0;

	report_name_place(s->r, row, &n);
	hint = hint_width(&n);
	own = report_width(n.own.name) + report_width(n.own.place);
	if (n.caller_cnt)
		caller = 3 + report_width(n.caller[0].name) + report_width(n.caller[0].place);
	if (own + hint + caller > room && s->spare_lines && (n.caller_cnt || hint)) {
		bool is_below = hint && own + hint > room;

		put_own(s, &n, is_below ? 0 : hint, room);
		put_second_line(s, &n, is_below);
	} else {
		own = put_own(s, &n, hint, room_for_own(room, own, hint, caller));
		if (n.caller_cnt && room > own + CALLER_COLUMNS_MIN) {
			fputc(' ', s->out);
			put_callers(s, &n, room - own);
		}
	}
	fputc('\n', s->out);
}

static const char *report_row_title(const struct report *r, const struct report_row *row, char *buf)
{
	const char *what = r->opts->by == REPORT_BY_SCOPE    ? "scope" :
			   r->opts->by == REPORT_BY_INSTANCE ? "task" :
							       "row";

	if (!row->row_cnt)
		return strset_get(r->names, row->name);
	snprintf(buf, REPORT_INTERVAL_BUF, "(other: %zu %s%s)", row->row_cnt, what,
		 row->row_cnt == 1 ? "" : "s");
	return buf;
}

static void put_named(const struct screen *s, const struct report_row *row)
{
	const char *pid = row->task.pid ? strset_get(s->r->names, row->task.pid) : "";
	size_t room = begin_name(s), taken = TREE_INDENT * row->scope.depth;
	char title[REPORT_INTERVAL_BUF];

	if (row->task.is_task) {
		taken = pid[0] ? (size_t)fprintf(s->out, "[%.10s] ", pid) : 0;
		report_put_tail(s->out, strset_get(s->r->names, row->scope.path), room - taken);
	} else {
		fprintf(s->out, "%*s", (int)taken, "");
		report_put_name(s->out, report_row_title(s->r, row, title),
				room > taken + NAME_COLUMNS_MIN ? room - taken : NAME_COLUMNS_MIN);
	}
	fputc('\n', s->out);
}

static void put_row(struct screen *s, size_t rank, const struct report_row *row,
		    struct report_marks *marks)
{
	marks->has_weak |= report_is_weak(s->r, row);
	marks->has_minimum |= row->peak.is_minimum;
	put_numbers(s, rank, row);
	if (is_by_name(s->r))
		put_named(s, row);
	else
		put_place(s, row);
}

static const char *word_of(const struct report *r, size_t cnt)
{
	static const char *const words[][2] = {
		[REPORT_BY_STACK] = { "stack", "stacks" },
		[REPORT_BY_FUNCTION] = { "function", "functions" },
		[REPORT_BY_MODULE] = { "module", "modules" },
		[REPORT_BY_THREAD] = { "thread", "threads" },
		[REPORT_BY_LABEL] = { "value", "values" },
		[REPORT_BY_AGE] = { "age", "ages" },
		[REPORT_BY_LIFETIME] = { "lifetime", "lifetimes" },
		[REPORT_BY_SIZE] = { "size", "sizes" },
		[REPORT_BY_PROCESS] = { "process", "processes" },
	};

	return words[r->opts->by][cnt != 1];
}

static void put_sums(const struct screen *s)
{
	const struct report *r = s->r;
	char value[UNITS_BUF], interval[REPORT_INTERVAL_BUF];

	if (s->other.row_cnt) {
		report_format_unit_interval(r, &s->other, interval);
		fprintf(s->out, "%*sother %s: %zu, %s%s%s\n", (int)s->rank_columns, "",
			word_of(r, 2), s->other.row_cnt,
			report_format_value(r, report_value(&s->other), value),
			interval[0] ? " " : "", interval);
	}
	if (s->has_empty_line) {
		fprintf(s->out, "%*sfreed again: %zu %s", (int)s->rank_columns, "",
			s->empty.row_cnt, word_of(r, s->empty.row_cnt));
		if (r->alloc_type >= 0)
			fprintf(s->out, ", %s",
				format_bytes(report_alloc(&s->empty), value, sizeof(value)));
		fputc('\n', s->out);
	}
}

/* Decide how many rows are shown, and how many lines are left. */
static void share_lines(struct screen *s, size_t line_cap)
{
	size_t cap = s->r->opts->row_cap,
	       fixed = 1 + s->has_empty_line + !!s->unmatched + !!s->library, room;

	s->shown_cnt = cap && cap < s->held_cnt ? cap : s->held_cnt;
	s->spare_lines = SIZE_MAX;
	if (!line_cap)
		return;
	room = line_cap > fixed + 1 ? line_cap - fixed : 1;
	/* on a narrow page each row takes two */
	measure(s);
	if (report_columns(s->r) < s->used + NAME_COLUMNS_MIN)
		room = room > 3 ? room / 2 : 1;
	if (s->shown_cnt > room)
		s->shown_cnt = room;
	if (s->shown_cnt < s->held_cnt && s->shown_cnt == room && room > 1)
		s->shown_cnt--;
	s->spare_lines = room - s->shown_cnt;
	if (s->shown_cnt < s->held_cnt && s->spare_lines)
		s->spare_lines--;
}

static void sum_up(struct screen *s)
{
	for (size_t i = 0; i < s->cnt; i++)
		if (is_empty(s->r, &s->rows[i])) {
			struct report_row row = s->rows[i];
			size_t stacks = row.row_cnt ? row.row_cnt : 1;

			report_add_row(&s->empty, &row);
			s->empty.row_cnt += stacks - 1;
		}
	/* rows without any values are not worth a line */
	s->has_empty_line = s->empty.row_cnt && (s->empty.alloc || s->r->alloc_type < 0);
}

static int by_emptiness(const void *a, const void *b, void *ctx)
{
	const struct report *r = ctx;
	bool x = is_empty(r, a), y = is_empty(r, b);

	return x != y ? x - y : report_compare_rows(a, b, ctx);
}

static void put_screen(struct screen *s, size_t line_cap, struct report_marks *marks)
{
	sum_up(s);
	s->held_cnt = s->cnt;
	while (s->held_cnt && is_empty(s->r, &s->rows[s->held_cnt - 1]))
		s->held_cnt--;
	choose_cells(s);
	if (is_by_name(s->r) || !report_is_of_libraries(s->r, &s->library, &s->program))
		s->library = NULL;
	share_lines(s, line_cap);
	for (size_t i = s->shown_cnt; i < s->held_cnt; i++)
		report_add_row(&s->other, &s->rows[i]);
	measure(s);
	if (s->shown_cnt || s->unmatched)
		put_titles(s);
	for (size_t i = 0; i < s->shown_cnt; i++)
		put_row(s, i + 1, &s->rows[i], marks);
	put_sums(s);
	if (s->unmatched)
		put_row(s, 0, s->unmatched, marks);
	if (s->library) {
		struct report_line l = { .out = s->out,
					 .columns = report_columns(s->r),
					 .indent = 2 };

		report_line_add(&l, "", "most of it is in libraries such as %.60s;", s->library);
		report_line_add(&l, " ",
				"--own %.60s charges it to functions of %.60s that call them",
				s->program, s->program);
		report_line_end(&l);
	}
}

/* One line each, whatever they hold: the rows were chosen before. */
static void put_tree(const struct report *r, const struct report_row *rows, size_t cnt,
		     struct report_marks *marks, FILE *out)
{
	struct screen s = {
		.r = r, .rows = rows, .shown_cnt = cnt, .table = { .r = r }, .out = out
	};
	bool *wants = s.table.wants;

	choose_cells(&s);
	wants[REPORT_CELL_ALLOC] = r->alloc_type >= 0;
	wants[REPORT_CELL_SHARE] = true;
	wants[REPORT_CELL_PEAK] = wants[REPORT_CELL_WHEN] = r->has_peaks;
	wants[REPORT_CELL_RATE] = wants[REPORT_CELL_ITSELF] = r->opts->by == REPORT_BY_SCOPE;
	wants[REPORT_CELL_STATE] = wants[REPORT_CELL_TASK] = r->opts->by == REPORT_BY_INSTANCE;
	measure(&s);
	report_table_fit(&s.table);
	s.used = report_table_columns(&s.table);
	put_titles(&s);
	for (size_t i = 0; i < cnt; i++)
		put_row(&s, 0, &rows[i], marks);
}

static bool is_none(const struct report *r, const struct report_row *row)
{
	return row->scope.path && !strcmp(strset_get(r->names, row->scope.path), SCOPE_NONE);
}

static const char *const own_keys[] = { "scope", "thread", "task", "task_state", "pid", "comm" };

static bool is_key_of_heaptap(const char *key)
{
	return equals_one_of(key, own_keys, ARRAY_CNT(own_keys));
}

/* The program's own, in order of appearance in the samples that are reported. */
static size_t find_tenant_keys(const struct report *r, const char *ret[TENANT_KEYS_MAX])
{
	const uint32_t *i;
	size_t cnt = 0;

	vec_each(&r->chosen, i) {
		const struct profile_sample *s = &r->p->samples.data[*i];

		for (uint32_t k = 0; k < s->label_cnt && cnt < TENANT_KEYS_MAX; k++) {
			const struct profile_label *l = &r->p->labels.data[s->label_first + k];
			const char *key = profile_text(r->p, l->key_str);

			if (l->str && !is_key_of_heaptap(key) && (!cnt || strcmp(ret[0], key) != 0))
				ret[cnt++] = key;
		}
	}
	return cnt;
}

static bool is_tenant(const struct report *r, const struct report_row *row)
{
	return row->value && strcmp(strset_get(r->names, row->name), SCOPE_NONE) != 0 &&
	       (!r->has_unmatched || row != &r->rows.data[r->rows.cnt - 1]);
}

/* Write as many values as fit in one line. */
static void put_tenants_of(const struct report *r, const char *key, FILE *out)
{
	size_t columns = report_columns(r), used, left = 0;
	char name[REPORT_FIT_BUF], value[UNITS_BUF];
	const struct report_row *row;
	const char *between = "";

	vec_each(&r->rows, row)
		left += is_tenant(r, row);
	if (!left)
		return;
	used = report_put_name(out, key, 16) + 1;
	fputc(':', out);
	vec_each(&r->rows, row) {
		size_t width;

		if (!is_tenant(r, row))
			continue;
		report_fit_name(strset_get(r->names, row->name), 20, name);
		report_format_value(r, report_value(row), value);
		width = report_width(name) + strlen(value) + 3;
		if (between[0] && used + width + (left > 1 ? 12 : 0) > columns)
			break;
		fprintf(out, "%s %s %s", between, name, value);
		used += width;
		between = ",";
		left--;
	}
	if (left)
		fprintf(out, ", %zu more", left);
	fputc('\n', out);
}

/*
 * A line for each of the program's own labels: "tenant: a 12.0 MiB, b 3.40 MiB, 17 more", the values that hold most;
 * --by label:KEY has all. Left out if memory runs out.
 */
static void put_tenants(const struct report *r, FILE *out)
{
	const char *keys[TENANT_KEYS_MAX];
	size_t cnt = find_tenant_keys(r, keys);

	for (size_t i = 0; i < cnt; i++) {
		struct report_options o = *r->opts;
		struct report *by_label;

		o.by = REPORT_BY_LABEL;
		o.label_key = keys[i];
		o.sort = REPORT_SORT_INUSE;
		o.row_cap = 0;
		if (report_open(r->p, &o, &by_label))
			continue;
		put_tenants_of(by_label, keys[i], out);
		report_close(by_label);
	}
}

void report_put_tree(const struct report *r, struct report_marks *marks, FILE *out)
{
	const struct report_row *left = &r->outstanding_total;
	char value[UNITS_BUF], count[UNITS_BUF];

	put_tree(r, r->rows.data, r->rows.cnt, marks, out);
	if (r->opts->by == REPORT_BY_SCOPE) {
		if (r->rows.cnt == 1 && !r->opts->scope && is_none(r, r->rows.data))
			report_put_wrapped("No sample has a scope: the program has none (see "
					   "heaptap/scope.h).",
					   2, report_columns(r), out);
		put_tenants(r, out);
		return;
	}
	if (!r->rows.data[0].task.is_task)
		fputs("\nNo sample has a task.\n", out);
	if (!r->outstanding.cnt)
		return;
	fprintf(out, "\nIn use after exit: %s in %s block%s of %zu task%s\n",
		format_bytes((double)left->value, value, sizeof(value)),
		format_count((double)left->objects, count, sizeof(count)),
		left->objects == 1 ? "" : "s", left->row_cnt, left->row_cnt == 1 ? "" : "s");
	put_tree(r, r->outstanding.data, r->outstanding.cnt, marks, out);
}

int report_put_screen_rows(const struct report *r, size_t line_cap, struct report_marks *marks,
			   FILE *out)
{
	struct report_places list = { 0 };
	struct screen s = { .r = r, .table = { .r = r }, .out = out };
	const struct report_row *row;
	int err = 0;

	if (!is_by_name(r))
		err = report_find_places(r, &list);
	else
		vec_each(&r->rows, row)
			if (!err && !is_noise(r, row))
				err = vec_push(&list, *row);
	if (!err && r->has_unmatched && list.cnt) { /* the last row */
		s.unmatched = &r->rows.data[r->rows.cnt - 1];
		list.cnt--;
	}
	if (!err)
		vec_sort_r(&list, by_emptiness, r);
	s.rows = list.data;
	s.cnt = list.cnt;
	if (!err)
		put_screen(&s, line_cap, marks);
	vec_release(&list);
	return err;
}
