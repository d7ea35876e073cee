/* SPDX-License-Identifier: MIT */
/*
 * report_places.c - groups stacks the way people look for them: one row for all that were charged
 * to the same line of the same function, with the same caller.
 *
 * Stacks that differ only further away would read alike. The rows still add up.
 */
#include "report/report_places.h"

#include "base/hmap.h"
#include "base/names.h"
#include "base/printable.h"

/* Finds the user's own frames of a stack; report_own_names.c lists those that are not. */

/* Which rules apply: --own; the tables; the tables in a stack with a runtime's code. */
enum rules { ASKED, TABLES, MANAGED };

/* Code that was made at run time. */
static bool is_jit(const char *module)
{
	return !strcmp(module, "[jit]");
}

static const char *frame_file(const struct report *r, const struct report_frame *f)
{
	return f->line ? profile_text(r->p, r->p->functions.data[f->line->function].filename_str) :
			 "";
}

static bool is_own(const struct report *r, const struct report_frame *f, enum rules rules)
{
	const char *module = report_frame_module(r->p, f);
	char buf[REPORT_NAME_BUF];
	const char *name = report_frame_name(r->p, f, buf, sizeof(buf));

	if (rules == ASKED)
		return begins_with_one_of(module, r->opts->own, r->opts->own_cnt) ||
		       begins_with_one_of(report_skip_result(name), r->opts->own, r->opts->own_cnt);
	if (!module[0] && name == buf) /* only an address */
		return false;
	if (is_jit(module))
		return !report_is_runtime_code(name, frame_file(r, f));
	if (rules == MANAGED && report_is_runtime_module(module))
		return false;
	return !report_is_system_module(module) && !report_is_system_function(name) &&
	       !report_is_system_source(frame_file(r, f));
}

/* How many frames without a name may be a part of the wrapper that called them. */
#define NAMELESS_CNT 3

/*
 * Is the frame without a name a part of a wrapper? A stripped library keeps the names that it exports: sqlite3_malloc,
 * but not those of the functions that it is made of. pos: behind the frame.
 */
static bool is_of_wrapper(const struct report *r, const struct profile_sample *s,
			  struct report_frame_pos pos, const struct report_frame *f)
{
	char buf[REPORT_NAME_BUF];
	const char *module = report_frame_module(r->p, f), *name;
	struct report_frame next;

	if (report_frame_name(r->p, f, buf, sizeof(buf)) != buf || is_jit(module))
		return false;
	for (int i = 0; i < NAMELESS_CNT && report_next_frame(r->p, s, &pos, &next); i++) {
		if (strcmp(report_frame_module(r->p, &next), module) != 0)
			return false;
		name = report_frame_name(r->p, &next, buf, sizeof(buf));
		if (name != buf)
			return report_is_system_function(name);
	}
	return false;
}

/* MANAGED if the stack has a function of the user's in code made at run time. */
static enum rules rules_of(const struct report *r, const struct profile_sample *s)
{
	struct report_frame_pos pos = { 0 };
	struct report_frame f;

	while (report_next_frame(r->p, s, &pos, &f))
		if (is_jit(report_frame_module(r->p, &f)) && is_own(r, &f, TABLES))
			return MANAGED;
	return TABLES;
}

static bool find_own(const struct report *r, const struct profile_sample *s, enum rules rules,
		     struct report_place *ret)
{
	struct report_frame_pos pos = { 0 };
	char buf[REPORT_NAME_BUF];
	struct report_frame f;

	*ret = (struct report_place){ 0 };
	while (report_next_frame(r->p, s, &pos, &f)) {
		if (is_own(r, &f, rules) && (rules == ASKED || !is_of_wrapper(r, s, pos, &f))) {
			ret->frame = f;
			ret->behind = pos;
			return true;
		}
		if (!ret->hint)
			ret->hint =
				report_growth_hint(report_frame_name(r->p, &f, buf, sizeof(buf)));
	}
	return false;
}

/* In a stack without own frames: the first frame with a name outside system files, else the first
 * with a name, else the leaf. */
static bool find_any(const struct report *r, const struct profile_sample *s,
		     struct report_place *ret)
{
	struct report_frame_pos pos = { 0 };
	struct report_frame f;
	int best = 0;

	*ret = (struct report_place){ 0 };
	while (report_next_frame(r->p, s, &pos, &f)) {
		char buf[REPORT_NAME_BUF];
		const char *module = report_frame_module(r->p, &f);
		bool is_named = report_frame_name(r->p, &f, buf, sizeof(buf)) != buf;
		int rank = is_named && !report_is_system_module(module) ? 3 : is_named ? 2 : 1;

		if (rank > best) {
			best = rank;
			ret->frame = f;
			ret->behind = pos;
		}
	}
	return best > 0;
}

bool report_find_place(const struct report *r, const struct profile_sample *s,
		       struct report_place *ret)
{
	if (r->opts->own_cnt && find_own(r, s, ASKED, ret))
		return true;
	return find_own(r, s, rules_of(r, s), ret) || find_any(r, s, ret);
}

bool report_is_own(const struct report *r, const struct profile_sample *s,
		   const struct report_frame *f)
{
	return (r->opts->own_cnt && is_own(r, f, ASKED)) || is_own(r, f, rules_of(r, s));
}

/* The frame's file: "" for the program's. */
static const char *library_of(const struct report *r, const struct report_frame *f,
			      const char *program)
{
	const char *module = report_frame_module(r->p, f);

	return strcmp(module, program) != 0 ? module : "";
}

/* The library that the sample is charged to although the program is in its stack; NULL: none. */
static const char *charged_library(const struct report *r, const struct profile_sample *s,
				   const char *program)
{
	struct report_place place;
	struct report_frame f;
	const char *library;

	if (!report_find_place(r, s, &place))
		return NULL;
	library = library_of(r, &place.frame, program);
	if (!library[0] || is_jit(library) || strstr(library, program)) /* its own: libsqlite3.so */
		return NULL;
	while (report_next_frame(r->p, s, &place.behind, &f))
		if (!library_of(r, &f, program)[0] && is_own(r, &f, TABLES))
			return library;
	return NULL;
}

bool report_is_of_libraries(const struct report *r, const char **ret_library,
			    const char **ret_program)
{
	const struct recording *rec = &r->p->recording;
	const char *exe = profile_text(r->p, rec->called_str ? rec->called_str : rec->exe_str);
	const char *slash = strrchr(exe, '/'), *program = slash ? slash + 1 : exe;
	int64_t most = 0;
	double bytes = 0;
	const uint32_t *i;

	if (!rec->is_known || !program[0] || r->opts->own_cnt || report_is_runtime_module(program))
		return false;
	vec_each(&r->chosen, i) {
		const struct profile_sample *s = &r->p->samples.data[*i];
		struct report_row row = { 0 };
		const char *library;

		report_add_sample(r, s, &row);
		library = row.value > 0 ? charged_library(r, s, program) : NULL;
		if (!library)
			continue;
		bytes += (double)row.value;
		if (row.value > most) {
			most = row.value;
			*ret_library = library;
		}
	}
	*ret_program = program;
	return bytes > 0.5 * (double)r->total.value;
}

/* Find the next own frame from pos on, by the tables alone; false: none. */
static bool report_next_own(const struct report *r, const struct profile_sample *s,
			    struct report_frame_pos *pos, struct report_frame *ret)
{
	enum rules rules = rules_of(r, s);

	while (report_next_frame(r->p, s, pos, ret))
		if (is_own(r, ret, rules))
			return true;
	return false;
}

const char *report_sample_function(const struct report *r, const struct profile_sample *s,
				   char *buf)
{
	struct report_place place;

	if (!report_find_place(r, s, &place))
		return "(no stack)";
	return report_frame_name(r->p, &place.frame, buf, REPORT_NAME_BUF);
}

#define CALLERS_MAX 3
#define NAME_COLUMNS_MIN 8
#define ROW_NAME_COLUMNS_MIN 26
#define SECOND_INDENT 6
#define KEY_BUF 4096

/* Parameters are not needed when the line identifies the function. */
static void strip_parameters(char *name)
{
	int depth = 0;

	for (char *s = name; *s; s++) {
		bool is_operator = s - name >= 8 && !strncmp(s - 8, "operator", 8);

		if (!strncmp(s, "(anonymous namespace)", 21)) {
			s += 20;
		} else if (*s == '<' || *s == '{') {
			depth++;
		} else if ((*s == '>' && s > name && s[-1] != '-' && depth) || *s == '}') {
			depth--;
		} else if (!depth && *s == '(' && !is_operator) {
			*s = '\0';
			return;
		}
	}
}

void report_name_frame(const struct report *r, const struct report_frame *f,
		       struct report_named *ret)
{
	char buf[REPORT_NAME_BUF];
	const char *name = report_frame_name(r->p, f, buf, sizeof(buf)), *slash;

	ret->place[0] = '\0';
	if (f->line) {
		const char *file =
			profile_text(r->p, r->p->functions.data[f->line->function].filename_str);

		slash = strrchr(file, '/');
		if (file[0] && f->line->line > 0)
			snprintf(ret->place, sizeof(ret->place), " %.60s:%lld",
				 slash ? slash + 1 : file, (long long)f->line->line);
	}
	snprintf(ret->name, sizeof(ret->name), "%s",
		 ret->place[0] ? report_skip_result(name) : name);
	if (ret->place[0])
		strip_parameters(ret->name);
}

char *report_fit_named(const struct report_named *n, size_t columns, char buf[REPORT_FIT_BUF])
{
	size_t width = report_width(n->place), name_width = report_width(n->name);
	char place[REPORT_FIT_BUF];

	/* half a line number is useless */
	if (columns < width + (name_width < NAME_COLUMNS_MIN ? name_width : NAME_COLUMNS_MIN))
		return report_fit_name(n->name, columns, buf);
	report_fit_name(n->name, columns - width, buf);
	report_fit_name(n->place, width, place);
	text_add(buf, REPORT_FIT_BUF, "%s", place);
	return buf;
}

static const struct profile_sample *first_sample(const struct report *r,
						 const struct report_row *row)
{
	return &r->p->samples.data[r->order.data[row->sample_first]];
}

/* "name file:line (hint) < caller file:line" */
static int64_t key_of(const struct report *r, const struct report_row *row)
{
	struct report_place place;
	struct report_named n;
	struct report_frame caller;
	char key[KEY_BUF];

	if (!report_find_place(r, first_sample(r, row), &place))
		return strset_add(r->names, "(no stack)");
	report_name_frame(r, &place.frame, &n);
	report_strip_tier(n.name);
	snprintf(key, sizeof(key), "%s%s (%s)", n.name, n.place, place.hint ? place.hint : "");
	if (report_next_own(r, first_sample(r, row), &place.behind, &caller)) {
		report_name_frame(r, &caller, &n);
		report_strip_tier(n.name);
		text_add(key, sizeof(key), " < %s%s", n.name, n.place);
	}
	return strset_add(r->names, key);
}

static int add_stack(const struct report *r, const struct report_row *row, struct hmap *index,
		     struct report_places *ret)
{
	int64_t key = row->sample_cnt ? key_of(r, row) : row->name;
	uint64_t i;

	if (key < 0 || hmap_add(index, &key, ret->cnt, &i))
		return -ENOMEM;
	if (i < ret->cnt) {
		report_add_row(&ret->data[i], row);
		return 0;
	}
	if (vec_push(ret, *row))
		return -ENOMEM;
	ret->data[i].row_cnt = 0;
	return 0;
}

int report_find_places(const struct report *r, struct report_places *ret)
{
	const struct report_row *row;
	struct hmap index;
	int err = 0;

	hmap_init(&index, sizeof(int64_t));
	vec_each(&r->rows, row)
		if (!err)
			err = r->opts->by == REPORT_BY_STACK ? add_stack(r, row, &index, ret) :
							       vec_push(ret, *row);
	hmap_release(&index);
	return err;
}

size_t report_name_place(const struct report *r, const struct report_row *row,
			 struct report_named_place *ret)
{
	const struct profile_sample *s;
	struct report_place place;
	struct report_frame f;

	*ret = (struct report_named_place){ 0 };
	if (!row->sample_cnt) {
		snprintf(ret->own.name, sizeof(ret->own.name), "%s",
			 strset_get(r->names, row->name));
		return 0;
	}
	s = first_sample(r, row);
	if (!report_find_place(r, s, &place)) {
		snprintf(ret->own.name, sizeof(ret->own.name), "(no stack)");
		return 0;
	}
	report_name_frame(r, &place.frame, &ret->own);
	ret->hint = place.hint;
	while (ret->caller_cnt < CALLERS_MAX && report_next_own(r, s, &place.behind, &f))
		report_name_frame(r, &f, &ret->caller[ret->caller_cnt++]);
	return ret->caller_cnt;
}

void report_name_row(const struct report *r, const struct report_row *row,
		     struct report_named_place *ret)
{
	bool is_scope = r->opts->by == REPORT_BY_SCOPE && row->scope.path;

	if (r->opts->by == REPORT_BY_STACK && row->sample_cnt) {
		report_name_place(r, row, ret);
		return;
	}
	*ret = (struct report_named_place){ 0 };
	snprintf(ret->own.name, sizeof(ret->own.name), "%s",
		 strset_get(r->names, is_scope ? row->scope.path : row->name));
}

/* As the n-th, from the row's own on. */
static const struct report_named *frame_of(const struct report_named_place *p, size_t n)
{
	return n ? &p->caller[n - 1] : &p->own;
}

static bool is_whole(const struct report_named *n, const char *text)
{
	size_t bytes = strlen(n->name);

	return !strncmp(text, n->name, bytes) && !strcmp(text + bytes, n->place);
}

/* "own < caller < caller": of the first two a part at least. Return how many from the first on are whole. */
static size_t fit_place(const struct report_named_place *p, size_t room, char buf[REPORT_FIT_BUF])
{
	char text[REPORT_FIT_BUF];
	size_t whole = is_whole(&p->own, report_fit_named(&p->own, room, buf));

	for (size_t i = 1; i <= p->caller_cnt; i++) {
		const struct report_named *n = frame_of(p, i);
		size_t used = report_width(buf) + 3;

		if (used + (i > 1 ? report_width(n->name) + report_width(n->place) :
				    NAME_COLUMNS_MIN) >
		    room)
			break;
		whole += is_whole(n, report_fit_named(n, room - used, text)) && whole == i;
		text_add(buf, REPORT_FIT_BUF, " < %s", text);
	}
	return whole;
}

int report_names_init(struct report_names *t, const struct report *r, size_t used)
{
	size_t columns = report_columns(r);

	*t = (struct report_names){ .columns = columns, .room = ROW_NAME_COLUMNS_MIN };
	if (columns > used + t->room)
		t->room = columns - used;
	return strset_new(&t->texts);
}

int report_names_add(struct report_names *t, const struct report_named_place *p)
{
	char text[REPORT_FIT_BUF];
	int64_t id;

	fit_place(p, t->room, text);
	id = strset_add(t->texts, text);
	while (id >= 0 && t->row_cnt.cnt < strset_cnt(t->texts))
		if (vec_push(&t->row_cnt, 0))
			id = -ENOMEM;
	if (id >= 0)
		t->row_cnt.data[id]++;
	return id < 0 ? -ENOMEM : 0;
}

void report_names_put(const struct report_names *t, const struct report_named_place *p, FILE *out)
{
	struct report_line l = {
		.out = out, .columns = t->columns, .indent = SECOND_INDENT, .used = SECOND_INDENT
	};
	char text[REPORT_FIT_BUF];
	size_t whole = fit_place(p, t->room, text), room = t->columns - SECOND_INDENT - 2;
	int64_t id = strset_add(t->texts, text); /* it is there */

	fputs(text, out);
	fputc('\n', out);
	if (id < 0 || t->row_cnt.data[id] < 2 || (whole > p->caller_cnt && !p->hint))
		return;
	fprintf(out, "%*s", SECOND_INDENT, "");
	if (p->hint)
		report_line_add(&l, "", "(%s)", p->hint);
	for (size_t i = whole; i <= p->caller_cnt; i++)
		report_line_add(&l, i == whole && !p->hint ? "" : " ", "%s%s", i ? "< " : "",
				report_fit_named(frame_of(p, i), room, text));
	report_line_end(&l);
}

void report_names_release(struct report_names *t)
{
	strset_free(t->texts);
	vec_release(&t->row_cnt);
}
