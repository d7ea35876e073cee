/* SPDX-License-Identifier: MIT */
/* test_name_cache.c - what one process has looked up, those forked before and after it know. */
#include "unit.h"

#include <signal.h>
#include <sys/wait.h>

#include "symbol/symbol.h"
#include "symbol/symbol_wire.h"

#define ADDR_CNT 3

static const uint64_t vaddr[ADDR_CNT] = { 0x1000, 0x2000, 0x3000 };
static const struct name_cache_query of_file = { .key = { .dev = 1, .ino = 2, .changed_ns = 3 },
						 .lines = true,
						 .vaddr = vaddr,
						 .vaddr_cnt = ADDR_CNT };

static void new_reader(struct wire_reader *r)
{
	assert_int_equal(wire_reader_init(r, ADDR_CNT), 0);
}

/* The first address has two frames, the second none, the third one. */
static void fill(struct wire_reader *r)
{
	const struct symbol_frame frames[] = { { "inner", "_inner", "a.c", 7, 3 },
					       { "outer", "_outer", "b.c", 9, 1 },
					       { "third", "third", "", 0, 0 } };

	for (size_t i = 0; i < 3; i++)
		assert_int_equal(vec_push(&r->frames, frames[i]), 0);
	r->answers[0] = (struct wire_answer){ 0, 2, WIRE_FROM_DWARF };
	r->answers[2] = (struct wire_answer){ 2, 1, WIRE_FROM_SYMBOL };
	r->done_flags = WIRE_SPLIT_DEBUG_INFO;
	r->is_done = true;
}

static void put(struct name_cache *c, const struct name_cache_query *q)
{
	struct wire_reader r;

	new_reader(&r);
	fill(&r);
	name_cache_put(c, q, &r);
	wire_reader_release(&r);
}

static bool knows_all(struct name_cache *c, const struct name_cache_query *q)
{
	struct wire_reader r;
	const struct symbol_frame *f;
	uint32_t flags;
	bool is_all;

	new_reader(&r);
	is_all = name_cache_get(c, q, &r, &flags) == q->vaddr_cnt;
	if (is_all) {
		f = r.frames.data + r.answers[0].first;
		assert_int_equal(r.answers[0].cnt, 2);
		assert_string_equal(f[0].name, "inner");
		assert_string_equal(f[0].system_name, "_inner");
		assert_string_equal(f[1].file, "b.c");
		assert_int_equal(f[1].line, 9);
		assert_int_equal(f[1].start_line, 1);
		assert_int_equal(r.answers[1].cnt, 0);
		assert_string_equal(r.frames.data[r.answers[2].first].file, "");
		assert_int_equal(r.dwarf_cnt, 1);
		assert_int_equal(r.symbol_cnt, 1);
		assert_int_equal(flags, WIRE_SPLIT_DEBUG_INFO);
	} else {
		assert_int_equal(r.frames.cnt, 0);
	}
	wire_reader_release(&r);
	return is_all;
}

TEST(other_processes_know)
{
	struct name_cache *c = NULL;
	int status;
	pid_t child;

	assert_int_equal(name_cache_new(&c), 0);
	assert_false(knows_all(c, &of_file));
	child = fork();
	if (!child) {
		put(c, &of_file);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(knows_all(c, &of_file));
	name_cache_renew(c); /* it has room, and is young */
	assert_true(knows_all(c, &of_file));
	name_cache_free(c);
}

/* As many frames with as long names as a helper may send. */
TEST(what_is_too_large_is_left_out)
{
	static char name[65536];
	struct name_cache_query q = of_file;
	struct name_cache *c = NULL;
	struct wire_reader r;

	q.vaddr_cnt = 1;
	memset(name, 'n', sizeof(name) - 1);
	assert_int_equal(name_cache_new(&c), 0);
	new_reader(&r);
	for (size_t i = 0; i < WIRE_FRAMES_CAP; i++)
		assert_int_equal(
			vec_push(&r.frames, (struct symbol_frame){ name, name, name, 1, 1 }), 0);
	r.answers[0] = (struct wire_answer){ 0, WIRE_FRAMES_CAP, WIRE_FROM_DWARF };
	name_cache_put(c, &q, &r);
	wire_reader_release(&r);
	assert_false(knows_all(c, &q));
	put(c, &of_file);
	assert_true(knows_all(c, &of_file));
	name_cache_free(c);
}

TEST(others_names_are_not_taken)
{
	struct name_cache_query q = of_file;
	static const uint64_t others[ADDR_CNT] = { 0x1001, 0x2001, 0x3001 };
	struct name_cache *c = NULL;

	assert_int_equal(name_cache_new(&c), 0);
	put(c, &of_file);
	q.key.changed_ns++;
	assert_false(knows_all(c, &q));
	q = of_file;
	q.lines = false;
	assert_false(knows_all(c, &q));
	q = of_file;
	q.demangle = true;
	assert_false(knows_all(c, &q));
	q = of_file;
	q.vaddr = others;
	assert_false(knows_all(c, &q));
	q = of_file;
	q.key = (struct slow_file_key){ 0 }; /* unknown: any file may have it */
	put(c, &q);
	assert_false(knows_all(c, &q));
	assert_false(knows_all(NULL, &of_file));
	name_cache_free(c);
}

TEST(a_full_one_is_renewed)
{
	struct name_cache_query q = of_file;
	struct name_cache *c = NULL;

	assert_int_equal(name_cache_new(&c), 0);
	put(c, &of_file);
	for (q.key.ino = 1000; q.key.ino < 200000; q.key.ino++)
		put(c, &q);
	assert_true(knows_all(c, &of_file));
	q.key.ino--;
	assert_false(knows_all(c, &q));
	name_cache_renew(c);
	assert_false(knows_all(c, &of_file));
	put(c, &q);
	assert_true(knows_all(c, &q));
	name_cache_free(c);
}

/* Who is hidden from has no such memory: it is gone in the child of a child. */
TEST(hidden_from_children)
{
	struct name_cache *c = NULL;
	int status;
	pid_t child;

	assert_int_equal(name_cache_new(&c), 0);
	put(c, &of_file);
	name_cache_hide(c);
	assert_true(knows_all(c, &of_file));
	child = fork();
	if (!child) {
		signal(SIGSEGV, SIG_DFL);
		knows_all(c, &of_file);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
	name_cache_free(c);
}

RUN_TESTS()
