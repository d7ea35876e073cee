/* SPDX-License-Identifier: MIT */
/* report_own.c - finds the user's own frames of a stack; report_own_names.c lists those that are not. */
#include <string.h>

#include "report/report_places.h"
#include "report/report_rows.h"

static bool begins_with_own(const struct report *r, const char *text)
{
	for (size_t i = 0; i < r->opts->own_cnt; i++)
		if (!strncmp(text, r->opts->own[i], strlen(r->opts->own[i])))
			return true;
	return false;
}

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
		return begins_with_own(r, module) || begins_with_own(r, report_skip_result(name));
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

bool report_next_own(const struct report *r, const struct profile_sample *s,
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
