/* SPDX-License-Identifier: MIT */
/* match_list.c - see match_list.h. */
#include "profile/match_list.h"

#include "base/names.h"
#include "base/vec.h"
#include "profile/scope_tree.h"

struct pattern {
	const char *text; /* as the user gave it, with its sign */
	const char *glob;
	bool is_minus, is_path, has_matched;
};

struct match_list {
	char *text; /* cut at the commas */
	VEC(struct pattern) patterns;
};

static int add_pattern(struct match_list *m, char *text)
{
	struct pattern p = { .text = text, .glob = text + (*text == '+' || *text == '-') };
	const char *pos = p.glob;
	struct scope_name first;

	if (!*p.glob)
		return -EINVAL;
	p.is_minus = *text == '-';
	p.is_path = scope_path_next(&pos, &first) && pos;
	return vec_push(&m->patterns, p);
}

int match_list_new(const char *text, struct match_list **ret)
{
	struct match_list *m = calloc(1, sizeof(*m));
	char *rest, *one;
	int err = 0;

	if (!m)
		return -ENOMEM;
	rest = m->text = strdup(text);
	if (!rest)
		err = -ENOMEM;
	while (!err && (one = strsep(&rest, ",")))
		err = add_pattern(m, one);
	if (err)
		match_list_free(m);
	else
		*ret = m;
	return err;
}

void match_list_free(struct match_list *m)
{
	if (!m)
		return;
	vec_release(&m->patterns);
	free(m->text);
	free(m);
}

static bool matches(const struct pattern *p, const char *path)
{
	size_t len = strlen(p->glob);
	struct scope_name name;
	const char *pos = path;

	for (size_t i = 0; i < SCOPE_DEPTH_MAX && scope_path_next(&pos, &name); i++) {
		const char *from = p->is_path ? path : name.text;

		if (glob_match(p->glob, len, from, name.text + name.len - from))
			return true;
	}
	return false;
}

bool match_list_test(struct match_list *m, const char *path)
{
	bool is_wanted = m->patterns.data[0].is_minus;
	struct pattern *p;

	vec_each(&m->patterns, p) {
		if (!matches(p, path))
			continue;
		p->has_matched = true;
		is_wanted = !p->is_minus;
	}
	return is_wanted;
}

const char *match_list_unused(const struct match_list *m, size_t *pos)
{
	while (*pos < m->patterns.cnt) {
		const struct pattern *p = &m->patterns.data[(*pos)++];

		if (!p->has_matched)
			return p->text;
	}
	return NULL;
}
