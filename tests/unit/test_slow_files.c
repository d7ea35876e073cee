/* SPDX-License-Identifier: MIT */
/* test_slow_files.c - what the children that look up symbols remember together. */
#include "child.h"

#include "symbol/symbol.h"

static const struct slow_file_key some = { 1, 2, 3 };

TEST(test_remembers)
{
	const struct slow_file_key others[] = { { 2, 2, 3 }, { 1, 3, 3 }, { 1, 2, 4 } };
	const struct slow_file_key none = { 0 };
	struct slow_files *s;

	assert_int_equal(slow_files_new(&s), 0);
	assert_int_equal(slow_files_find(s, &some, 100), SLOW_FILE_NOTHING);
	slow_files_put(s, &some, SLOW_FILE_DWARF, 100);
	assert_int_equal(slow_files_find(s, &some, 101), SLOW_FILE_DWARF);
	slow_files_put(s, &some, SLOW_FILE_ALL, 200);
	assert_int_equal(slow_files_find(s, &some, 199 + SLOW_FILES_NS), SLOW_FILE_ALL);
	assert_int_equal(slow_files_find(s, &some, 200 + SLOW_FILES_NS), SLOW_FILE_NOTHING);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(slow_files_find(s, &others[i], 201), SLOW_FILE_NOTHING);
	slow_files_put(s, &none, SLOW_FILE_ALL, 200);
	assert_int_equal(slow_files_find(s, &none, 201), SLOW_FILE_NOTHING);
	slow_files_free(s);
	slow_files_put(NULL, &some, SLOW_FILE_ALL, 0);
	assert_int_equal(slow_files_find(NULL, &some, 0), SLOW_FILE_NOTHING);
}

/* The latest, whatever their number. */
TEST(test_is_bounded)
{
	struct slow_files *s;
	struct slow_file_key key = some;

	assert_int_equal(slow_files_new(&s), 0);
	for (key.ino = 1; key.ino <= 100000; key.ino++)
		slow_files_put(s, &key, SLOW_FILE_ALL, 0);
	for (key.ino = 100000; key.ino > 99900; key.ino--)
		assert_int_equal(slow_files_find(s, &key, 1), SLOW_FILE_ALL);
	key.ino = 1;
	assert_int_equal(slow_files_find(s, &key, 1), SLOW_FILE_NOTHING);
	slow_files_free(s);
}

/* What a child says, the parent and the next child know. */
TEST(test_is_shared)
{
	struct slow_files *s;
	int status;

	assert_int_equal(slow_files_new(&s), 0);
	if (!fork()) {
		slow_files_put(s, &some, SLOW_FILE_ALL, 0);
		_exit(0);
	}
	assert_true(wait(&status) > 0 && !status);
	assert_int_equal(slow_files_find(s, &some, 1), SLOW_FILE_ALL);
	assert_true(slow_files_end_ns(s) == UINT64_MAX);
	slow_files_end_at(s, 77);
	if (!fork())
		_exit(slow_files_end_ns(s) != 77);
	assert_true(wait(&status) > 0 && !status);
	slow_files_free(s);
}

/* Files of a device on which many hang are left alone, and others are not; until those have ended. */
TEST(test_hung)
{
	pid_t pid[SLOW_FILES_HUNG];
	struct slow_files *s;
	size_t cnt = 0;

	assert_int_equal(slow_files_new(&s), 0);
	for (; cnt < SLOW_FILES_HUNG_DEVICE; cnt++) {
		assert_false(slow_files_is_full(s, 7));
		pid[cnt] = start_idle();
		slow_files_put_hung(s, 7, pid[cnt]);
	}
	assert_true(slow_files_is_full(s, 7));
	assert_false(slow_files_is_full(s, 8));
	for (; cnt < SLOW_FILES_HUNG; cnt++) {
		assert_false(slow_files_is_full(s, 9999));
		pid[cnt] = start_idle();
		slow_files_put_hung(s, (uint32_t)(100 + cnt), pid[cnt]);
	}
	assert_true(slow_files_is_full(s, 9999));
	end_child(pid[0]);
	assert_false(slow_files_is_full(s, 9999));
	assert_false(slow_files_is_full(s, 7));
	while (cnt-- > 1)
		end_child(pid[cnt]);
	slow_files_free(s);
}

RUN_TESTS()
