/* SPDX-License-Identifier: MIT */
/*
 * report_diff_profile.c - a difference as one profile, for pprof's readers and for the picture.
 *
 * It has the two values of the difference, blocks and bytes. For pprof the values of before are
 * negative, so that sums are changes. For the picture they are positive: the picture knows that the
 * first samples are those of before.
 */
#include <errno.h>
#include <string.h>

#include "profile/profile.h"
#include "profile/profile_append.h"
#include "report/report_diff.h"
#include "report/report_diff_rows.h"

static int copy_type(struct profile *to, const struct report *r, int type)
{
	const struct profile_type *from;
	struct profile_type copy;

	if (type < 0)
		return 0;
	from = &r->p->types.data[type];
	copy.type_str = profile_str(to, profile_text(r->p, from->type_str));
	copy.unit_str = profile_str(to, profile_text(r->p, from->unit_str));
	return copy.type_str < 0 || copy.unit_str < 0 ? -ENOMEM : vec_push(&to->types, copy);
}

int diff_join(const struct diff *d, int sign_before, struct profile **ret)
{
	const struct report *before = d->side[0].r, *after = d->side[1].r;
	struct profile *p;
	int err = profile_new(&p);

	if (err)
		return err;
	err = copy_type(p, after, after->objects_type);
	if (!err)
		err = copy_type(p, after, after->value_type);
	if (!err) {
		p->default_type_str = p->types.data[p->types.cnt - 1].type_str;
		p->time_ns = after->p->time_ns;
		err = profile_append(p, before->p, before->chosen.data, before->chosen.cnt,
				     sign_before);
	}
	if (!err)
		err = profile_append(p, after->p, after->chosen.data, after->chosen.cnt, 1);
	if (err)
		profile_free(p);
	else
		*ret = p;
	return err;
}

int report_diff_profile(const struct profile *before, const char *before_name,
			const struct profile *after, const char *after_name,
			const struct report_options *opts, struct profile **ret, struct err *why)
{
	struct report_options o = *opts;
	struct profile *p = NULL;
	struct profile_sample *s;
	struct diff d;
	int err = diff_open(before, before_name, after, after_name, &o, &d, why);

	if (!err)
		err = diff_join(&d, -1, &p);
	if (!err)
		err = profile_comment(p, "difference: %s minus %s", after_name, before_name);
	if (!err) {
		vec_each(&p->samples, s)
			s->has_error = false; /* the error of a change differs */
		*ret = p;
	} else {
		profile_free(p);
	}
	diff_release(&d);
	return err;
}
