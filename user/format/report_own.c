/* SPDX-License-Identifier: MIT */
/* report_own.c - which frame of a stack is the user's own: see report_own_names.c for what is not. */
#include <string.h>

#include "format/report_own.h"
#include "format/report_own_names.h"
#include "format/report_rows.h"

static bool begins_with_own(const struct report *r, const char *text)
{
	for (size_t i = 0; i < r->opts->own_cnt; i++)
		if (!strncmp(text, r->opts->own[i], strlen(r->opts->own[i])))
			return true;
	return false;
}

/* is_asked: what --own says decides, else the tables. */
static bool is_own(const struct report *r, const struct report_frame *f, bool is_asked)
{
	const char *module = report_frame_module(r->p, f);
	char buf[REPORT_NAME_BUF];
	const char *name = report_frame_name(r->p, f, buf, sizeof(buf));

	if (is_asked)
		return begins_with_own(r, module) || begins_with_own(r, report_skip_result(name));
	if (!module[0] && name == buf) /* only an address */
		return false;
	return !report_is_system_module(module) && !report_is_system_function(name);
}

static bool find_own(const struct report *r, const struct profile_sample *s, bool is_asked,
		     struct report_place *ret)
{
	struct report_frame_pos pos = { 0 };
	char buf[REPORT_NAME_BUF];
	struct report_frame f;

	*ret = (struct report_place){ 0 };
	while (report_next_frame(r->p, s, &pos, &f)) {
		if (is_own(r, &f, is_asked)) {
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

/* Of a stack that has nothing own: the first frame with a name that is in no system file, else
 * the first with a name, else the leaf. */
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
	if (r->opts->own_cnt && find_own(r, s, true, ret))
		return true;
	return find_own(r, s, false, ret) || find_any(r, s, ret);
}

bool report_next_own(const struct report *r, const struct profile_sample *s,
		     struct report_frame_pos *pos, struct report_frame *ret)
{
	while (report_next_frame(r->p, s, pos, ret))
		if (is_own(r, ret, false))
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
