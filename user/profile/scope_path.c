/* SPDX-License-Identifier: MIT */
/* scope_path.c - see scope_path.h. */
#include "profile/scope_path.h"

#include <string.h>

bool scope_path_next(const char **pos, struct scope_name *ret)
{
	const char *s = *pos;

	if (!s)
		return false;
	ret->text = s;
	while (*s && *s != '/')
		s += *s == '\\' && s[1] ? 2 : 1;
	ret->len = s - ret->text;
	*pos = *s ? s + 1 : NULL;
	return true;
}

static bool is_same(const struct scope_name *a, const struct scope_name *b)
{
	return a->len == b->len && !memcmp(a->text, b->text, a->len);
}

bool scope_path_is_in(const char *path, const char *ancestor)
{
	struct scope_name have, want;

	while (scope_path_next(&ancestor, &want))
		if (!scope_path_next(&path, &have) || !is_same(&have, &want))
			return false;
	return true;
}

void scope_path_fold(const char *path, char *ret)
{
	struct scope_name kept[SCOPE_DEPTH_MAX], name;
	size_t cnt = 0, i;

	while (cnt < SCOPE_DEPTH_MAX && scope_path_next(&path, &name)) {
		for (i = 0; i < cnt && !is_same(&kept[i], &name); i++)
			;
		if (i < cnt)
			continue;
		if (cnt)
			*ret++ = '/';
		memcpy(ret, name.text, name.len);
		ret += name.len;
		kept[cnt++] = name;
	}
	*ret = '\0';
}

const char *scope_path_leaf(const char *path)
{
	struct scope_name name = { path, 0 };

	while (scope_path_next(&path, &name))
		;
	return name.text;
}
