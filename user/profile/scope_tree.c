/* SPDX-License-Identifier: MIT */
/*
 * scope_tree.c - see scope_tree.h.
 *
 * Peaks and folding. A peak is inclusive, so the peak of A/B/A is part of the peak of A/B and adds nothing when A/B/A
 * is folded into A/B. A/B/A/C and A/B/C are different: one may have been high while the other was low. All that is
 * known of both together is that they had at least the higher peak, and at least what they have now.
 */
#include "profile/scope_tree.h"

struct step {
	uint32_t parent, padding;
	int64_t name_str;
};

int scope_tree_init(struct scope_tree *t, bool folds_repeated)
{
	*t = (struct scope_tree){ .folds_repeated = folds_repeated };
	hmap_init(&t->index, sizeof(struct step));
	return strset_new(&t->names);
}

void scope_tree_release(struct scope_tree *t)
{
	strset_free(t->names);
	vec_release(&t->nodes);
	hmap_release(&t->index);
	t->names = NULL;
}

static bool is_on_path(const struct scope_tree *t, uint32_t node, int64_t name_str)
{
	for (; node != SCOPE_NO_NODE; node = t->nodes.data[node].parent)
		if (t->nodes.data[node].name_str == name_str)
			return true;
	return false;
}

static uint32_t find_child(const struct scope_tree *t, uint32_t parent, int64_t name_str)
{
	struct step step = { .parent = parent, .name_str = name_str };
	const uint64_t *node = hmap_get(&t->index, &step);

	return node ? (uint32_t)*node : SCOPE_NO_NODE;
}

static int get_child(struct scope_tree *t, uint32_t parent, int64_t name_str, uint32_t *ret)
{
	struct step step = { .parent = parent, .name_str = name_str };
	struct scope_node node = { .parent = parent, .name_str = name_str };
	uint64_t i;

	if (t->nodes.cnt >= SCOPE_NO_NODE || hmap_add(&t->index, &step, t->nodes.cnt, &i))
		return -ENOMEM;
	*ret = (uint32_t)i;
	node.depth = parent == SCOPE_NO_NODE ? 0 : t->nodes.data[parent].depth + 1;
	return i < t->nodes.cnt ? 0 : vec_push(&t->nodes, node);
}

/* Find the node that path counts for. Without `makes`: SCOPE_NO_NODE when it is not there. ret_is_part:
 * path lies below that node. */
static int walk(struct scope_tree *t, const char *path, bool makes, uint32_t *ret,
		bool *ret_is_part)
{
	uint32_t node = SCOPE_NO_NODE;
	struct scope_name name;
	bool is_part = false, has_hole = false;

	while (scope_path_next(&path, &name)) {
		int64_t name_str = strset_add_n(t->names, name.text, name.len);
		int err;

		if (name_str < 0)
			return name_str;
		if (node != SCOPE_NO_NODE && t->nodes.data[node].depth + 1 >= SCOPE_DEPTH_MAX) {
			is_part = true;
			break;
		}
		if (t->folds_repeated && is_on_path(t, node, name_str)) {
			is_part = true;
			continue;
		}
		has_hole |= is_part;
		if (makes) {
			err = get_child(t, node, name_str, &node);
			if (err)
				return err;
			continue;
		}
		node = find_child(t, node, name_str);
		if (node == SCOPE_NO_NODE)
			break;
	}
	*ret = node;
	*ret_is_part = is_part && !has_hole;
	return 0;
}

int scope_tree_add(struct scope_tree *t, const char *path, uint32_t *ret)
{
	bool is_part;

	return walk(t, path ? path : SCOPE_NONE, true, ret, &is_part);
}

int scope_tree_add_peak(struct scope_tree *t, const char *path, int64_t bytes, int64_t time_ns,
			bool is_several)
{
	struct scope_node *n;
	uint32_t node;
	bool is_part;
	int err = walk(t, path, false, &node, &is_part);

	if (err || is_part || node == SCOPE_NO_NODE)
		return err;
	n = &t->nodes.data[node];
	if (!n->peak_cnt || bytes > n->peak_bytes) {
		n->peak_bytes = bytes;
		n->peak_time_ns = time_ns;
	}
	n->peak_cnt += is_several ? 2 : 1;
	return 0;
}

int scope_tree_find(struct scope_tree *t, const char *path, uint32_t *ret)
{
	bool is_part;
	int err = walk(t, path, false, ret, &is_part);

	if (!err && is_part)
		*ret = SCOPE_NO_NODE;
	return err;
}

char *scope_tree_path(const struct scope_tree *t, uint32_t node)
{
	const struct scope_node *nodes = t->nodes.data;
	size_t len = 0, n;
	char *path, *at;

	for (uint32_t i = node; i != SCOPE_NO_NODE; i = nodes[i].parent)
		len += strlen(strset_get(t->names, nodes[i].name_str)) + 1;
	path = calloc(1, len + 1);
	if (!path)
		return NULL;
	at = path + len;
	for (uint32_t i = node; i != SCOPE_NO_NODE; i = nodes[i].parent) {
		const char *name = strset_get(t->names, nodes[i].name_str);

		if (i != node)
			at[-1] = '/';
		n = strlen(name);
		at -= n + 1;
		memcpy(at, name, n);
	}
	return path;
}

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
