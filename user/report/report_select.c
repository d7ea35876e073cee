/* SPDX-License-Identifier: MIT */
/*
 * report_select.c - the scope of each sample, and which samples a report covers.
 *
 * --scope removes the rest: rows and total are those of the scope, and the head says how much of
 * the profile it is. --match removes nothing: what does not match becomes one row, so the rows
 * still add up to the total. Scopes are compared as they are shown; folded, if that was asked for.
 */

#include "base/hmap.h"
#include "report/report_rows.h"
#include "profile/match_list.h"
#include "profile/scope_tree.h"

/* What happens to all samples of one scope. */
enum fate { FATE_CHOSEN, FATE_UNMATCHED, FATE_OUTSIDE };

struct verdict {
	int64_t path; /* in report.names */
	enum fate fate;
};

struct verdicts {
	VEC(struct verdict) list;
	struct hmap index; /* string of the label "scope" (0 = none) -> verdict */
};

static bool needs_scopes(const struct report_options *o)
{
	return o->by == REPORT_BY_SCOPE || o->by == REPORT_BY_INSTANCE || o->scope || o->match;
}

static int64_t shown_path(struct report *r, const char *path)
{
	char *folded;
	int64_t id;

	if (!r->opts->folds_repeated)
		return strset_add(r->names, path);
	folded = malloc(strlen(path) + 1);
	if (!folded)
		return -ENOMEM;
	scope_path_fold(path, folded);
	id = strset_add(r->names, folded);
	free(folded);
	return id;
}

static int judge(struct report *r, int64_t label, struct verdict *ret)
{
	const struct report_options *o = r->opts;
	const char *path;

	ret->path = shown_path(r, label ? profile_text(r->p, label) : SCOPE_NONE);
	if (ret->path < 0)
		return -ENOMEM;
	path = strset_get(r->names, ret->path);
	if (o->scope && !scope_path_is_in(path, o->scope))
		ret->fate = FATE_OUTSIDE;
	else if (o->match && !match_list_test(o->match, path))
		ret->fate = FATE_UNMATCHED;
	else
		ret->fate = FATE_CHOSEN;
	return 0;
}

static int get_verdict(struct report *r, struct verdicts *v, const struct profile_sample *s,
		       struct verdict *ret)
{
	const struct profile_label *scope = profile_find_label(r->p, s, "scope");
	int64_t label = scope ? scope->str : 0;
	const uint64_t *known = hmap_get(&v->index, &label);
	int err;

	if (known) {
		*ret = v->list.data[*known];
		return 0;
	}
	err = judge(r, label, ret);
	if (!err)
		err = vec_push(&v->list, *ret);
	return err ? err : hmap_put(&v->index, &label, v->list.cnt - 1);
}

static int select_one(struct report *r, uint32_t i, enum fate fate)
{
	const struct profile_sample *s = &r->p->samples.data[i];

	report_add_sample(r, s, &r->whole);
	if (fate == FATE_OUTSIDE)
		return 0;
	report_add_sample(r, s, &r->total);
	if (fate == FATE_CHOSEN)
		return vec_push(&r->chosen, i);
	report_add_sample(r, s, &r->unmatched);
	r->has_unmatched = true;
	return 0;
}

static int select_by_scope(struct report *r)
{
	struct verdicts known = { 0 };
	int err = 0;

	hmap_init(&known.index, sizeof(int64_t));
	for (uint32_t i = 0; i < r->p->samples.cnt && !err; i++) {
		struct verdict v;

		err = get_verdict(r, &known, &r->p->samples.data[i], &v);
		if (!err)
			err = vec_push(&r->scopes, v.path);
		if (!err)
			err = select_one(r, i, v.fate);
	}
	vec_release(&known.list);
	hmap_release(&known.index);
	return err;
}

int report_select(struct report *r)
{
	int err = 0;

	r->unmatched.name = strset_add(r->names, "(not matched)");
	if (r->unmatched.name < 0)
		return -ENOMEM;
	if (needs_scopes(r->opts))
		err = select_by_scope(r);
	else
		for (uint32_t i = 0; i < r->p->samples.cnt && !err; i++)
			err = select_one(r, i, FATE_CHOSEN);
	r->unmatched.cumulative = r->unmatched.value;
	report_set_exclusive(&r->unmatched);
	return err;
}

const char *report_sample_scope(const struct report *r, const struct profile_sample *s)
{
	return strset_get(r->names, r->scopes.data[s - r->p->samples.data]);
}
