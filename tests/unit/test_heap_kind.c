/* SPDX-License-Identifier: MIT */
/* What a program's runtime keeps for itself, and what is said about it. */
#include "unit.h"

#include "proc/runtime_kind.h"
#include "proc/process.h"
#include "proc/reader.h"

static struct reader *by_reader;

TEST(test_names)
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

	each_case(c, cases)
		assert_int_equal(runtime_is_cpython_file(c->path), c->is);
}

/* Runtimes by their files; the switch in the environment shows all, another value does not. */
TEST(test_runtimes)
{
	static const struct {
		const char *path;
		enum runtime_kind kind;
		const char *told, *what; /* NULL: no switch */
	} cases[] = {
		{ "/usr/bin/php8.2", RUNTIME_PHP, "USE_ZEND_ALLOC=0", "Zend" },
		{ "/usr/sbin/php-fpm8.2", RUNTIME_PHP, "USE_ZEND_ALLOC=0", "Zend" },
		{ "/usr/lib/apache2/modules/libphp8.2.so", RUNTIME_PHP, "USE_ZEND_ALLOC=0",
		  "Zend" },
		{ "/usr/bin/ruby3.1", RUNTIME_RUBY, NULL, "Ruby" },
		{ "/usr/lib/libruby-3.1.so.3.1.2", RUNTIME_RUBY, NULL, "Ruby" },
		{ "/usr/lib/jvm/lib/server/libjvm.so", RUNTIME_JAVA, NULL, "Java" },
		{ "/usr/bin/node", RUNTIME_NODE, NULL, "V8" },
		{ "/usr/lib/libnode.so.108", RUNTIME_NODE, NULL, "V8" },
		{ "/usr/bin/luajit-2.1.0-beta3", RUNTIME_LUAJIT, NULL, "LuaJIT" },
		{ "/usr/share/dotnet/libcoreclr.so", RUNTIME_DOTNET, NULL, ".NET" },
		{ "/usr/bin/mono-sgen", RUNTIME_MONO, NULL, "Mono" },
		{ "/opt/bun/bin/bun", RUNTIME_BUN, NULL, "JavaScriptCore" },
		{ "/usr/lib/erlang/bin/beam.smp", RUNTIME_ERLANG, "ERL_ZFLAGS=+Mea min", "Erlang" },
		{ "/usr/bin/python3.11", RUNTIME_PYTHON, "PYTHONMALLOC=malloc_debug", "CPython" },
		{ "/usr/bin/lua5.4", RUNTIME_NONE, NULL, NULL }, /* all is malloc's */
		{ "/usr/bin/phpize", RUNTIME_NONE, NULL, NULL },
		{ "/usr/bin/rubyist", RUNTIME_NONE, NULL, NULL },
		{ "/usr/bin/node-helper", RUNTIME_NONE, NULL, NULL },
	};
	struct runtime_words words;

	each_case(c, cases) {
		assert_int_equal(runtime_of_file(c->path), c->kind);
		runtime_words_heap(c->kind, "PYTHONMALLOC=pymalloc", 22, &words);
		assert_int_equal(!words.what, !c->what);
		if (!words.what)
			continue;
		assert_says(words.what, c->what);
		assert_non_null(words.advice);
		if (c->told)
			runtime_words_heap(c->kind, c->told, strlen(c->told) + 1, &words);
		assert_int_equal(!words.what, c->told != NULL);
	}
}

TEST(test_words)
{
	struct heap_kind kind = { .file_cnt = 1 };
	struct heap_words words;

	assert_false(heap_words_partial(&kind, &words));
	heap_words_none(&kind, &words);
	assert_string_equal(words.what, "no known allocator found in its 1 mapped file");
	kind.is_static = true;
	heap_words_none(&kind, &words);
	assert_says(words.advice, "static and stripped");
	kind.is_go = true;
	heap_words_none(&kind, &words);
	assert_says(words.what, "a Go program, whose heap is not malloc's");
	assert_says(words.advice, "use its own pprof");
	assert_true(heap_words_partial(&kind, &words));
	assert_says(words.what, "cgo");
	kind = (struct heap_kind){ .runtime = RUNTIME_PYTHON, .file_cnt = 9 };
	runtime_words_heap(kind.runtime, NULL, 0, &kind.own);
	assert_true(heap_words_partial(&kind, &words));
	assert_says(words.advice, "PYTHONMALLOC=malloc");
	runtime_words_heap(kind.runtime, "A=1\0PYTHONMALLOC=malloc", 24, &kind.own);
	assert_false(heap_words_partial(&kind, &words));
}

TEST(test_files)
{
	const char *self[] = { "/proc/self/exe" },
		   *python[] = { "/bin/true", "/x/libpython3.9.so.1" };
	struct heap_kind kind;

	heap_kind_of_files(by_reader, self, 1, &kind);
	assert_false(kind.is_go || kind.is_static || kind.runtime);
	assert_true(kind.has_names);
	unsetenv("PYTHONMALLOC");
	heap_kind_of_files(by_reader, python, 2, &kind);
	assert_true(kind.runtime == RUNTIME_PYTHON && kind.own.what);
	setenv("PYTHONMALLOC", "malloc", 1);
	heap_kind_of_files(by_reader, python, 2, &kind);
	assert_null(kind.own.what);
	setenv("PYTHONMALLOC", "pymalloc", 1);
	heap_kind_of_files(by_reader, python, 2, &kind);
	assert_non_null(kind.own.what);
	heap_kind_of_files(by_reader, NULL, 0, &kind);
	assert_int_equal(kind.runtime, RUNTIME_NONE);
}

TEST(test_process)
{
	struct process_info info;
	struct heap_kind kind;

	assert_int_equal(process_info_read(by_reader, getpid(), &info), 0);
	assert_int_equal(info.ppid, getppid());
	heap_kind_read(by_reader, &info, &kind);
	assert_false(kind.is_go || kind.is_static || kind.runtime);
	assert_true(kind.file_cnt > 1);
}

static int run_job(uint32_t kind, int fd, const void *args, size_t args_bytes, int out_fd)
{
	return kind == HEAP_KIND_JOB ? heap_kind_run_job(args, args_bytes, out_fd) : 1;
}

/* Where there is a reader, nothing is opened here. A file that cannot be read is taken for ordinary. */
TEST(test_jobs)
{
	static const char *const none[] = { "/no/such/file" }, *const text[] = { "/etc/passwd" };
	struct heap_kind kind;

	assert_int_equal(reader_start(READER_PATIENT_MS, run_job, &by_reader), 0);
	test_process(NULL);
	test_files(NULL);
	heap_kind_of_files(by_reader, none, 1, &kind);
	assert_false(kind.is_go || kind.is_static || kind.has_names);
	heap_kind_of_files(by_reader, text, 1, &kind);
	assert_false(kind.is_go || kind.is_static || kind.has_names);
	reader_end(by_reader);
	by_reader = NULL;
}

TEST(test_list)
{
	struct process_list list;
	const pid_t *pid;
	bool has_own = false, has_parent = false;

	assert_int_equal(process_list_read(&list), 0);
	vec_each(&list.pids, pid) {
		has_own |= *pid == getpid();
		has_parent |= *pid == getppid();
	}
	assert_true(has_own && has_parent);
	process_list_release(&list);
}

RUN_TESTS()
