/* SPDX-License-Identifier: MIT */
/* What a program's runtime keeps for itself, and what is said about it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proc/heap_kind.h"
#include "proc/process.h"

static void test_names(void **state)
{
	static const struct {
		const char *path;
		bool is;
	} cases[] = {
		{ "/usr/bin/python3.12", true },
		{ "/usr/bin/python3", true },
		{ "python", true },
		{ "/opt/lib/libpython3.13t.so.1.0", true },
		{ "/usr/lib/libpython3.so", true },
		{ "/usr/bin/python3-config", false },
		{ "/usr/bin/pythonista", false },
		{ "/usr/lib/libpython-helper.so", false },
		{ "/srv/python3/app", false },
		{ "", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(heap_kind_is_cpython_file(cases[i].path), cases[i].is);
}

static void test_words(void **state)
{
	struct heap_kind kind = { .file_cnt = 1 };
	struct heap_words words;

	(void)state;
	assert_false(heap_words_partial(&kind, &words));
	heap_words_none(&kind, &words);
	assert_string_equal(words.what,
			    "no allocator that heaptap knows is in the 1 file that it maps");
	kind.is_static = true;
	heap_words_none(&kind, &words);
	assert_non_null(strstr(words.advice, "static and stripped"));
	kind.is_go = true;
	heap_words_none(&kind, &words);
	assert_non_null(strstr(words.what, "a Go program: its heap is not malloc's"));
	assert_non_null(strstr(words.advice, "use its own pprof"));
	assert_true(heap_words_partial(&kind, &words));
	assert_non_null(strstr(words.what, "cgo"));
	kind = (struct heap_kind){ .is_cpython = true, .file_cnt = 9 };
	assert_true(heap_words_partial(&kind, &words));
	assert_non_null(strstr(words.advice, "PYTHONMALLOC=malloc"));
	kind.has_plain_malloc = true;
	assert_false(heap_words_partial(&kind, &words));
}

static void test_files(void **state)
{
	const char *self[] = { "/proc/self/exe" },
		   *python[] = { "/bin/true", "/x/libpython3.9.so.1" };
	struct heap_kind kind;

	(void)state;
	heap_kind_of_files(self, 1, &kind);
	assert_false(kind.is_go || kind.is_static || kind.is_cpython);
	assert_true(kind.has_names);
	unsetenv("PYTHONMALLOC");
	heap_kind_of_files(python, 2, &kind);
	assert_true(kind.is_cpython && !kind.has_plain_malloc);
	setenv("PYTHONMALLOC", "malloc", 1);
	heap_kind_of_files(python, 2, &kind);
	assert_true(kind.has_plain_malloc);
	setenv("PYTHONMALLOC", "pymalloc", 1);
	heap_kind_of_files(python, 2, &kind);
	assert_false(kind.has_plain_malloc);
	heap_kind_of_files(NULL, 0, &kind);
	assert_false(kind.is_cpython);
}

static void test_process(void **state)
{
	struct process_info info;
	struct heap_kind kind;

	(void)state;
	assert_int_equal(process_info_read(getpid(), &info), 0);
	assert_int_equal(info.ppid, getppid());
	heap_kind_read(&info, &kind);
	assert_false(kind.is_go || kind.is_static || kind.is_cpython);
	assert_true(kind.file_cnt > 1);
}

static void test_list(void **state)
{
	struct process_list list;
	const pid_t *pid;
	bool has_own = false, has_parent = false;

	(void)state;
	assert_int_equal(process_list_read(&list), 0);
	vec_each(&list.pids, pid) {
		has_own |= *pid == getpid();
		has_parent |= *pid == getppid();
	}
	assert_true(has_own && has_parent);
	process_list_release(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names), cmocka_unit_test(test_words),
		cmocka_unit_test(test_files), cmocka_unit_test(test_process),
		cmocka_unit_test(test_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
