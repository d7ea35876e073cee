/* SPDX-License-Identifier: MIT */
/*
 * test_scope_tree.c - each path counts for its scope, whatever the order; folding; escapes; depth; peaks; the top level
 * always adds up to everything.
 */
#include "unit.h"

#include "profile/scope_tree.h"

static int64_t own[256]; /* bytes of each node itself */

static void add(struct scope_tree *t, const char *path, int64_t bytes)
{
	uint32_t node;

	if (!t->nodes.cnt)
		memset(own, 0, sizeof(own));
	assert_int_equal(scope_tree_add(t, path, &node), 0);
	assert_true(node < sizeof(own) / sizeof(*own));
	own[node] += bytes;
}

static bool is_in(const struct scope_tree *t, uint32_t node, uint32_t ancestor)
{
	while (node != ancestor && node != SCOPE_NO_NODE)
		node = t->nodes.data[node].parent;
	return node == ancestor;
}

static int64_t inclusive(const struct scope_tree *t, uint32_t node)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < t->nodes.cnt; i++)
		sum += is_in(t, i, node) ? own[i] : 0;
	return sum;
}

static const struct scope_node *find(struct scope_tree *t, const char *path)
{
	uint32_t node;

	assert_int_equal(scope_tree_find(t, path, &node), 0);
	return node == SCOPE_NO_NODE ? NULL : &t->nodes.data[node];
}

static void has(struct scope_tree *t, const char *path, int64_t all, int64_t exclusive)
{
	uint32_t node;

	assert_int_equal(scope_tree_find(t, path, &node), 0);
	if (node == SCOPE_NO_NODE)
		fail_msg("there is no %s", path);
	else if (inclusive(t, node) != all || own[node] != exclusive)
		fail_msg("%s: %lld and %lld", path, (long long)inclusive(t, node),
			 (long long)own[node]);
}

static int64_t top_level_bytes(const struct scope_tree *t)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < t->nodes.cnt; i++)
		if (t->nodes.data[i].parent == SCOPE_NO_NODE)
			sum += inclusive(t, i);
	return sum;
}

TEST(scopes_are_in_their_parents)
{
	struct scope_tree t;

	assert_int_equal(scope_tree_init(&t, false), 0);
	add(&t, "Top/A/B", 100); /* before its ancestors have anything */
	add(&t, "Top/A", 100);
	add(&t, "Top", 100);
	add(&t, "Top/B", 100);
	add(&t, NULL, 7);
	has(&t, "Top", 400, 100);
	has(&t, "Top/A", 200, 100);
	has(&t, "Top/A/B", 100, 100);
	has(&t, "Top/B", 100, 100);
	has(&t, "(none)", 7, 7);
	assert_null(find(&t, "A"));
	assert_null(find(&t, "Top/A/B/C"));
	assert_int_equal(top_level_bytes(&t), 407);
	/* more may come */
	add(&t, "Top/A/B", 1);
	has(&t, "Top", 401, 100);
	has(&t, "Top/A/B", 101, 101);
	scope_tree_release(&t);
}

TEST(repeated_names_fold)
{
	static const char *const cases[][2] = {
		{ "A/B/A", "A/B" },
		{ "A/B/A/C", "A/B/C" },
		{ "A/A/A", "A" },
		{ "A", "A" },
		{ "A/AB/B", "A/AB/B" },
		{ "A\\/B/A", "A\\/B/A" }, /* another name */
		{ "", "" },
		{ "A//B/", "A//B" }, /* names without letters are names */
	};
	struct scope_tree t;
	char got[64];

	assert_int_equal(scope_tree_init(&t, true), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		scope_path_fold(cases[i][0], got);
		assert_string_equal(got, cases[i][1]);
		add(&t, cases[i][0], 1 << i);
	}
	has(&t, "A", 1 + 2 + 4 + 8 + 16 + 128, 4 + 8);
	has(&t, "A/B", 3, 1);
	has(&t, "A/B/C", 2, 2);
	has(&t, "A\\/B/A", 32, 32);
	assert_int_equal(top_level_bytes(&t), 255);
	scope_tree_release(&t);
}

TEST(names_keep_their_escapes)
{
	static const char path[] = "a\\/b/c\\\\/d";
	const char *pos = path;
	struct scope_name name;
	struct scope_tree t;
	uint32_t node;
	char *again;

	assert_true(scope_path_next(&pos, &name));
	assert_int_equal(name.len, 4);
	assert_true(scope_path_next(&pos, &name));
	assert_memory_equal(name.text, "c\\\\/", 4);
	assert_int_equal(name.len, 3);
	assert_true(scope_path_next(&pos, &name));
	assert_false(scope_path_next(&pos, &name));
	assert_string_equal(scope_path_leaf(path), "d");
	assert_string_equal(scope_path_leaf("x\\/y"), "x\\/y");
	assert_string_equal(scope_path_leaf("x\\"), "x\\"); /* an escape of nothing */

	assert_int_equal(scope_tree_init(&t, false), 0);
	add(&t, path, 1);
	assert_int_equal(t.nodes.cnt, 3);
	assert_int_equal(scope_tree_find(&t, path, &node), 0);
	again = scope_tree_path(&t, node);
	assert_string_equal(again, path);
	free(again);
	scope_tree_release(&t);
}

TEST(knows_what_is_below)
{
	assert_true(scope_path_is_in("A/B", "A"));
	assert_true(scope_path_is_in("A/B", "A/B"));
	assert_false(scope_path_is_in("A", "A/B"));
	assert_false(scope_path_is_in("AB/C", "A"));
	assert_false(scope_path_is_in("A\\/B", "A"));
	assert_false(scope_path_is_in("A\\/B", "A\\"));
	assert_false(scope_path_is_in("B/A", "A"));
}

TEST(depth_is_bounded)
{
	char *path = unit_keep(malloc(200001), free), *shallow;
	struct scope_tree t;

	assert_non_null(path);
	for (size_t i = 0; i < 100000; i++)
		memcpy(path + 2 * i, "x/", 2);
	path[199999] = '\0';
	assert_int_equal(scope_tree_init(&t, false), 0);
	add(&t, path, 5);
	path[2 * SCOPE_DEPTH_MAX - 1] = '\0';
	add(&t, path, 6);
	assert_int_equal(t.nodes.cnt, SCOPE_DEPTH_MAX);
	has(&t, path, 11, 11);
	assert_int_equal(top_level_bytes(&t), 11);
	/* every name another: no more are kept by folding either */
	shallow = malloc(200001);
	assert_non_null(shallow);
	for (size_t i = 0; i < 100; i++)
		memcpy(path + 2 * i, (char[]){ (char)(i + (i < '/' ? 128 : 129)), '/' }, 2);
	path[199] = '\0';
	scope_path_fold(path, shallow);
	assert_int_equal(strlen(shallow), 2 * SCOPE_DEPTH_MAX - 1);
	free(shallow);
	scope_tree_release(&t);
}

TEST(peaks_are_said_of_paths)
{
	const struct scope_node *n;
	struct scope_tree t;

	assert_int_equal(scope_tree_init(&t, true), 0);
	add(&t, "A/B", 10);
	add(&t, "A/B/A", 20);
	add(&t, "A/B/C", 30);
	add(&t, "A/B/A/C", 40);
	add(&t, "L", 80);
	assert_int_equal(scope_tree_add_peak(&t, "L", 50, 1, true), 0); /* below several labels */
	assert_int_equal(scope_tree_add_peak(&t, "A/B", 500, 1, false), 0);
	assert_int_equal(scope_tree_add_peak(&t, "A/B/A", 400, 2, false), 0);
	assert_int_equal(scope_tree_add_peak(&t, "A/B/C", 60, 3, false), 0);
	assert_int_equal(scope_tree_add_peak(&t, "A/B/A/C", 45, 4, false), 0);
	assert_int_equal(scope_tree_add_peak(&t, "A/B/Z", 1000, 5, false), 0);
	assert_int_equal(scope_tree_add_peak(&t, "Z", 1000, 5, false), 0);
	assert_int_equal(t.nodes.cnt, 4); /* a peak makes no scope */
	assert_true(find(&t, "L")->peak_cnt > 1);
	assert_int_equal(find(&t, "L")->peak_bytes, 50);
	n = find(&t, "A/B");
	assert_int_equal(n->peak_bytes, 500); /* A/B/A's is part of it */
	assert_int_equal(n->peak_time_ns, 1);
	assert_int_equal(n->peak_cnt, 1);
	n = find(&t, "A/B/C");
	assert_int_equal(n->peak_cnt, 2);
	assert_int_equal(n->peak_bytes, 60);
	assert_int_equal(find(&t, "A")->peak_cnt, 0);
	scope_tree_release(&t);
}

RUN_TESTS()
