/* SPDX-License-Identifier: MIT */
/* profile_copy.c - see profile_copy.h. */
#include "push/profile_copy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile.h"

int64_t profile_copy_str(struct profile_copy *c, int64_t id)
{
	return profile_str(c->to, profile_text(c->from, id));
}

/* In-use types come last; they are left out when in use is unknown, as they must not look like 0. */
static size_t type_cnt(const struct profile *p)
{
	bool is_unknown = p->recording.is_known && p->recording.inuse == RECORDING_INUSE_UNKNOWN;

	return is_unknown && p->types.cnt == PROFILE_VALUE_CNT ? PROFILE_INUSE_OBJECTS :
								 p->types.cnt;
}

static int copy_types(struct profile_copy *c)
{
	const struct profile *from = c->from;
	struct profile *to = c->to;

	for (size_t i = 0; i < type_cnt(from); i++) {
		struct profile_type t = {
			.type_str = profile_copy_str(c, from->types.data[i].type_str),
			.unit_str = profile_copy_str(c, from->types.data[i].unit_str),
		};

		if (t.type_str < 0 || t.unit_str < 0 || vec_push(&to->types, t))
			return -ENOMEM;
	}
	to->default_type_str = profile_copy_str(c, from->default_type_str);
	to->period_type.type_str = profile_copy_str(c, from->period_type.type_str);
	to->period_type.unit_str = profile_copy_str(c, from->period_type.unit_str);
	to->period = from->period;
	to->time_ns = from->time_ns;
	to->duration_ns = from->duration_ns;
	return to->default_type_str < 0 || to->period_type.type_str < 0 ||
			       to->period_type.unit_str < 0 ?
		       -ENOMEM :
		       0;
}

static int copy_mappings(struct profile_copy *c)
{
	for (size_t i = 0; i < c->from->mappings.cnt; i++) {
		struct profile_mapping m = c->from->mappings.data[i];

		m.filename_str = profile_copy_str(c, m.filename_str);
		m.build_id_str = profile_copy_str(c, m.build_id_str);
		if (m.filename_str < 0 || m.build_id_str < 0 || vec_push(&c->to->mappings, m))
			return -ENOMEM;
	}
	return 0;
}

int profile_copy_begin(struct profile_copy *c, const struct profile *from, bool names_all)
{
	int err;

	memset(c, 0, sizeof(*c));
	c->from = from;
	c->names_all = names_all;
	err = profile_new(&c->to);
	if (err)
		return err;
	c->functions = calloc(from->functions.cnt + 1, sizeof(*c->functions));
	c->locations = calloc(from->locations.cnt + 1, sizeof(*c->locations));
	err = c->functions && c->locations ? copy_types(c) : -ENOMEM;
	if (!err)
		err = copy_mappings(c);
	if (err)
		profile_copy_release(c);
	return err;
}

struct profile *profile_copy_take(struct profile_copy *c)
{
	struct profile *to = c->to;

	c->to = NULL;
	profile_copy_release(c);
	return to;
}

void profile_copy_release(struct profile_copy *c)
{
	profile_free(c->to);
	free(c->functions);
	free(c->locations);
	vec_release(&c->stack);
	memset(c, 0, sizeof(*c));
}

static int copy_function(struct profile_copy *c, uint32_t index)
{
	struct profile_function f = c->from->functions.data[index];

	f.name_str = profile_copy_str(c, f.name_str);
	f.system_name_str = profile_copy_str(c, f.system_name_str);
	f.filename_str = profile_copy_str(c, f.filename_str);
	if (f.name_str < 0 || f.system_name_str < 0 || f.filename_str < 0 ||
	    vec_push(&c->to->functions, f))
		return -ENOMEM;
	c->functions[index] = c->to->functions.cnt;
	return 0;
}

static int copy_lines(struct profile_copy *c, const struct profile_location *l)
{
	for (uint32_t i = 0; i < l->line_cnt; i++) {
		struct profile_line line = c->from->lines.data[l->line_first + i];

		if (!c->functions[line.function] && copy_function(c, line.function))
			return -ENOMEM;
		line.function = c->functions[line.function] - 1;
		if (vec_push(&c->to->lines, line))
			return -ENOMEM;
	}
	return 0;
}

/* Add a function of that name, and a line in it. */
static int add_named_line(struct profile_copy *c, const char *name)
{
	struct profile_function f = { 0 };
	struct profile_line line = { .function = c->to->functions.cnt };

	f.name_str = f.system_name_str = profile_str(c->to, name);
	if (f.name_str < 0 || vec_push(&c->to->functions, f))
		return -ENOMEM;
	return vec_push(&c->to->lines, line);
}

static int add_bare_line(struct profile_copy *c, const struct profile_location *l)
{
	const char *file = "", *slash;
	char name[320];

	if (l->mapping != HT_NO_INDEX)
		file = profile_text(c->from, c->from->mappings.data[l->mapping].filename_str);
	slash = strrchr(file, '/');
	if (slash && slash[1])
		file = slash + 1;
	snprintf(name, sizeof(name), "%.255s%s0x%" PRIx64, file, *file ? "+" : "", l->address);
	return add_named_line(c, name);
}

static int copy_location(struct profile_copy *c, uint32_t index)
{
	const struct profile_location *from = &c->from->locations.data[index];
	struct profile_location l = *from;
	int err;

	l.line_first = c->to->lines.cnt;
	if (!from->line_cnt && c->names_all) {
		err = add_bare_line(c, from);
		l.line_cnt = 1;
	} else {
		err = copy_lines(c, from);
	}
	if (err || vec_push(&c->to->locations, l))
		return -ENOMEM;
	c->locations[index] = c->to->locations.cnt;
	return 0;
}

int profile_copy_stack(struct profile_copy *c, const uint32_t *locs, size_t cnt)
{
	c->stack.cnt = 0;
	if (vec_reserve(&c->stack, cnt + 1))
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		if (!c->locations[locs[i]] && copy_location(c, locs[i]))
			return -ENOMEM;
		c->stack.data[i] = c->locations[locs[i]] - 1;
	}
	c->stack.cnt = cnt;
	return 0;
}

int64_t profile_copy_named(struct profile_copy *c, const char *name)
{
	struct profile_location l = { .mapping = HT_NO_INDEX, .line_cnt = 1 };

	l.line_first = c->to->lines.cnt;
	if (add_named_line(c, name) || vec_push(&c->to->locations, l))
		return -ENOMEM;
	return c->to->locations.cnt - 1;
}
