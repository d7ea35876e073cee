/* SPDX-License-Identifier: MIT */
/*
 * heaptap/scope.h in C, checked by what a reader sees: paths, tasks, labels, pauses. What has an end,
 * and what happens at the same time, is in test_header_limits.c.
 */
#include <pthread.h>

#include "header_rig.h"

/* As macros of a program do it. */
#define THREE_ON_ONE_LINE()        \
	HEAPTAP_SCOPE("one");      \
	HEAPTAP_LABEL("key", "v"); \
	HEAPTAP_SCOPE("two")

TEST(several_on_one_line)
{
	unsigned before = depth();

	{
		THREE_ON_ONE_LINE();
		assert_int_equal(depth(), before + 3);
	}
	assert_int_equal(depth(), before);
}

TEST(notes_are_found)
{
	assert_int_equal(notes.tls_cnt, 1);
	assert_int_equal(notes.node_cnt, 1);
	assert_int_equal(notes.task_exit_cnt, 1);
	assert_false(notes.differ);
	assert_null(reader_complaint(desc));
	assert_int_equal(reader_u16(desc), 0); /* nobody is attached */
#ifdef __x86_64__
	assert_string_equal(notes.tls_args, "8@%rdi");
	assert_string_equal(notes.node_args, "8@%rdi 8@%rsi");
	assert_string_equal(notes.task_exit_args, "8@%rdi 8@%rsi 8@%rdx");
	assert_int_equal(*(const unsigned char *)notes.tls_probe, 0x90);
	assert_int_equal(*(const unsigned char *)notes.node_probe, 0x90);
	assert_int_equal(*(const unsigned char *)notes.task_exit_probe, 0x90);
#endif
}

TEST(blocks_nest)
{
	assert_string_equal(current(), "");
	{
		HEAPTAP_SCOPE("Top");
		assert_string_equal(current(), "Top");
		{
			HEAPTAP_SCOPE("A");
			assert_string_equal(current(), "Top/A");
			{
				HEAPTAP_SCOPE("B");
				assert_string_equal(current(), "Top/A/B");
				assert_int_equal(depth(), 3);
			}
			assert_string_equal(current(), "Top/A");
		}
		HEAPTAP_SCOPE("B", "C", "D");
		assert_string_equal(current(), "Top/B/C/D");
		assert_int_equal(depth(), 4);
	}
	assert_string_equal(current(), "");
	assert_int_equal(record(0), 0);
}

static int leave_by(int way)
{
	for (int i = 0; i < 3; i++) {
		HEAPTAP_SCOPE("loop");
		if (way == 0)
			break;
		if (way == 1)
			continue;
		if (way == 2)
			return depth();
		if (way == 3)
			goto out;
	}
out:
	return depth();
}

TEST(blocks_end_however_left)
{
	assert_int_equal(leave_by(0), 0);
	assert_int_equal(leave_by(1), 0);
	assert_int_equal(leave_by(2), 1);
	assert_int_equal(leave_by(3), 0);
	assert_int_equal(record(0), 0);
}

static void tagged(const char *expected)
{
	HEAPTAP_SCOPE("shared");
	assert_string_equal(current(), expected);
}

/* A call site that is reached from several scopes, by turns. */
TEST(call_site_has_many_parents)
{
	uint32_t cnt = 0;

	for (int i = 0; i < 3; i++) {
		HEAPTAP_SCOPE("left");
		tagged("left/shared");
		{
			HEAPTAP_SCOPE_NAME("right");
			tagged("left/right/shared");
		}
		heaptap_pause();
		tagged("left/shared");
		assert_true(record(0) & UINT64_C(1) << 32);
		if (i == 0)
			cnt = node_cnt();
	}
	tagged("shared");
	assert_int_equal(node_cnt(), cnt + 1);
	assert_int_equal(record(0), 0);
}

TEST(push_and_pop)
{
	uint32_t before = underflows();

	HEAPTAP_PUSH("one", "two");
	heaptap_push("three");
	heaptap_push_label("k", "v");
	assert_string_equal(current(), "one/two/three/k=v");
	heaptap_pop();
	assert_string_equal(current(), "one/two/three");
	heaptap_pop();
	heaptap_pop();
	assert_string_equal(current(), "one");
	heaptap_pop();
	assert_int_equal(record(0), 0);
	assert_int_equal(underflows(), before);
	heaptap_pop();
	heaptap_pop();
	assert_int_equal(record(0), 0);
	assert_int_equal(underflows(), before + 2);
}

TEST(same_path_same_node)
{
	uint32_t id, cnt;

	HEAPTAP_SCOPE("same");
	id = (uint32_t)record(0);
	cnt = node_cnt();
	for (int i = 0; i < 100; i++) {
		heaptap_state out = heaptap_set((heaptap_state){ 0, 0, 0 });

		heaptap_push("same");
		assert_int_equal((uint32_t)record(0), id);
		heaptap_set(out);
	}
	assert_int_equal(node_cnt(), cnt);
}

/* A tag, a label and a task of one name are three things, and so are "a", "b" and "a/b". */
TEST(kinds_differ)
{
	heaptap_node task;
	uint32_t a, b;

	heaptap_push("kind");
	a = (uint32_t)record(0);
	heaptap_pop();
	heaptap_push_label("kind", "kind");
	b = (uint32_t)record(0);
	assert_int_equal(reader_u16(reader_node(desc, b) + 4), 2);
	heaptap_pop();
	task = heaptap_task("kind");
	assert_int_equal(reader_u16(reader_node(desc, (uint32_t)task) + 4), 3);
	assert_true(a != b && b != (uint32_t)task && a != (uint32_t)task);
	heaptap_push_n("a/b", 3);
	a = (uint32_t)record(0);
	heaptap_pop();
	HEAPTAP_SCOPE("a", "b");
	assert_int_not_equal((uint32_t)record(0), a);
}

TEST(names_have_limits)
{
	static const struct {
		const char *name; /* repeated */
		size_t bytes, kept;
	} cases[] = {
		{ "x", 254, 254 },
		{ "x", 255, 255 },
		{ "x", 256, 255 },
		{ "x", 70000, 255 },
		{ "\xc3\xa9", 254, 254 },
		{ "\xc3\xa9", 300, 254 },
		{ "\xe2\x82\xac", 300, 255 },
		{ "\xf0\x9f\x8c\x8d", 300, 252 },
		{ "\x80", 300, 251 }, /* no UTF-8 */
	};
	static char name[70001];
	uintptr_t node;

	each_case(c, cases) {
		for (size_t j = 0; j < c->bytes; j++)
			name[j] = c->name[j % strlen(c->name)];
		name[c->bytes] = '\0';
		heaptap_push(name);
		node = reader_node(desc, (uint32_t)record(0));
		assert_int_equal(reader_u16(node + 24), c->kept);
		assert_memory_equal(reader_u64(node + 8), name, c->kept);
		assert_int_equal(reader_u16(node + 6), c->kept < c->bytes);
		heaptap_pop();
	}
	heaptap_push_label("key", name);
	assert_int_equal(reader_u16(reader_node(desc, (uint32_t)record(0)) + 6), 2);
	heaptap_pop();
}

TEST(odd_names)
{
	uintptr_t node;

	heaptap_push(NULL);
	assert_string_equal(current(), "(empty)");
	heaptap_push("");
	assert_string_equal(current(), "(empty)/(empty)");
	heaptap_push_label("", NULL);
	assert_string_equal(current(), "(empty)/(empty)/(empty)=(empty)");
	heaptap_push_n("a\0b", 3);
	node = reader_node(desc, (uint32_t)record(0));
	assert_int_equal(reader_u16(node + 24), 3);
	assert_memory_equal(reader_u64(node + 8), "a\0b", 3);
	for (int i = 0; i < 4; i++)
		heaptap_pop();
	assert_int_equal(record(0), 0);
}

/* The table has copies: a name's memory may be used again, a library unloaded. */
TEST(names_are_copied)
{
	char name[] = "before";

	heaptap_push(name);
	memcpy(name, "after ", 6);
	assert_string_equal(current(), "before");
	heaptap_pop();
}

TEST(tasks_have_instances)
{
	heaptap_node query, other;
	heaptap_state before, inner;
	uint32_t count = underflows();

	HEAPTAP_SCOPE("server");
	query = heaptap_task("query");
	assert_string_equal(current(), "server");
	heaptap_push("elsewhere");
	other = heaptap_task("other");
	before = heaptap_enter(query, 17);
	assert_string_equal(current(), "server/query");
	assert_int_equal(record(8), 17);
	assert_int_equal(depth(), 2);
	heaptap_push("parse");
	assert_string_equal(current(), "server/query/parse");
	assert_int_equal(record(8), 17);
	inner = heaptap_enter(other, 18);
	assert_string_equal(current(), "server/elsewhere/other");
	assert_int_equal(record(8), 18);
	heaptap_leave(inner);
	assert_string_equal(current(), "server/query/parse");
	assert_int_equal(record(8), 17);
	heaptap_pop();
	assert_string_equal(current(), "server/query");
	assert_int_equal(underflows(), count);
	heaptap_pop(); /* would leave the task */
	assert_string_equal(current(), "server/query");
	assert_int_equal(underflows(), count + 1);
	heaptap_leave(before);
	assert_string_equal(current(), "server/elsewhere");
	assert_int_equal(record(8), 0);
	heaptap_pop();
	{
		HEAPTAP_TASK("query", 19);
		assert_string_equal(current(), "server/query");
		assert_int_equal((uint32_t)record(0), (uint32_t)query);
		assert_int_equal(record(8), 19);
	}
	assert_string_equal(current(), "server");
	assert_int_equal(record(8), 0);
	heaptap_task_exit(query, 17);
	assert_int_not_equal(heaptap_instance_new(), heaptap_instance_new());
}

static void *work_elsewhere(void *arg)
{
	heaptap_state before;
	int ok = !strcmp(current(), "");

	before = heaptap_set(*(const heaptap_state *)arg);
	ok &= !strcmp(current(), "giver") && record(8) == 5 && before.scope == 0;
	heaptap_set(before);
	ok &= !strcmp(current(), "") && record(8) == 0;
	return ok ? arg : NULL;
}

TEST(state_goes_to_other_threads)
{
	heaptap_state mine;
	pthread_t thread;
	void *ret;

	HEAPTAP_TASK("giver", 5);
	mine = heaptap_get();
	assert_int_equal(pthread_create(&thread, NULL, work_elsewhere, &mine), 0);
	pthread_join(thread, &ret);
	assert_ptr_equal(ret, &mine);
	assert_string_equal(current(), "giver");
	{
		heaptap_state none = { 0, 0, 0 };

		HEAPTAP_WITH(none);
		assert_string_equal(current(), "");
		assert_int_equal(record(8), 0);
	}
	assert_string_equal(current(), "giver");
	assert_int_equal(record(8), 5);
}

TEST(labels_of_others_go_along)
{
	static const char attributes[32];
	heaptap_state mine, before;

	heaptap_set_kv(attributes);
	assert_int_equal(record(16), (uintptr_t)attributes);
	{
		HEAPTAP_TASK("kv", 1);
		assert_int_equal(record(16), (uintptr_t)attributes);
		mine = heaptap_get();
	}
	heaptap_set_kv(NULL);
	assert_int_equal(record(16), 0);
	before = heaptap_set(mine);
	assert_int_equal(record(16), (uintptr_t)attributes);
	heaptap_set(before);
	assert_int_equal(record(16), 0);
	assert_int_equal(record(24), 0);
}

/* A number that was never a node: no scope, and no crash at the next pop. */
TEST(foreign_state_is_none)
{
	heaptap_state wrong = { 0x00050000ffffff00, 3, 0 };

	heaptap_set(wrong);
	assert_int_equal(record(0), 0);
	heaptap_pop();
	heaptap_set((heaptap_state){ 0, 0, 0 });
}

TEST(pauses)
{
	const uint64_t paused = UINT64_C(1) << 32;

	HEAPTAP_SCOPE("p");
	{
		HEAPTAP_PAUSED();
		assert_true(record(0) & paused);
		heaptap_push("inner");
		assert_string_equal(current(), "p/inner");
		assert_true(record(0) & paused);
		heaptap_pop();
		assert_true(record(0) & paused);
		heaptap_leave(heaptap_enter(heaptap_task("t"), 1));
		assert_true(record(0) & paused);
	}
	assert_false(record(0) & paused);
	heaptap_pause();
	heaptap_pause();
	heaptap_unpause();
	assert_false(record(0) & paused);
	assert_int_equal(reader_u16(desc + 22), 0);
	heaptap_pause_all();
	assert_int_equal(reader_u16(desc + 22), 1);
	heaptap_unpause_all();
	assert_int_equal(reader_u16(desc + 22), 0);
}

RUN_TESTS_WITH(setup, NULL)
