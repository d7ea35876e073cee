/* SPDX-License-Identifier: MIT */
/*
 * test_report_own.c - whom a stack is charged to: what is folded of C++, Rust, C, Python and Node, what
 * only looks like it, and what the folded frames say that was going on; names that do not fit.
 */
#include "made_profile.h"
#include "report/report_places.h"
#include "report/report_rows.h"
#include "report/report_text.h"

static struct profile *p; /* of the test that runs */

static int set_up(void **state)
{
	p = made_profile(1);
	return 0;
}

/* "file!function": the function "" = only an address. */
static uint32_t add_frame(const char *text)
{
	const char *mark = strchr(text, '!');
	char file[256];

	assert_non_null(mark);
	snprintf(file, sizeof(file), "%.*s", (int)(mark - text), text);
	return made_location(p, file[0] ? made_mapping(p, file) : HT_NO_INDEX,
			     (struct made_place){ mark + 1, .address = 0x1234 });
}

static void add_stack(const char *const *frames)
{
	uint32_t locs[8];
	size_t cnt = 0;

	for (; frames[cnt]; cnt++)
		locs[cnt] = add_frame(frames[cnt]);
	assert_int_equal(profile_add_sample(p, locs, cnt, (int64_t[]){ 1, 8, 1, 8 }, NULL, 0, NULL),
			 0);
}

/* Rows of a library of which the program's functions are the callers: the report says how to see these. */
TEST_WITH(rows_of_a_library_name_the_option, set_up, NULL)
{
	static const char *const of_library[] = { "/usr/lib/libcodec.so.5!codec_open",
						  "/bin/player!play", "/bin/player!main", NULL };
	static const char *const of_program[] = { "/bin/player!load", "/bin/player!main", NULL };
	const struct report_options plain = { .format = REPORT_TEXT };
	static const char *const own[] = { "player" };
	const struct report_options asked = { .format = REPORT_TEXT, .own = own, .own_cnt = 1 };
	char *text;

	p->recording.is_known = true;
	p->recording.exe_str = profile_str(p, "/bin/player");
	add_stack(of_library);
	add_stack(of_program);
	text = report_text(p, &plain);
	assert_omits(text, "--own"); /* half of it */
	add_stack(of_library);
	text = report_text(p, &plain);
	assert_says(text, "most of it is in libraries such as libcodec.so.5;");
	assert_says(text, "--own player charges it to functions of player");
	text = report_text(p, &asked);
	assert_omits(text, "most of it");
	assert_says(text, " play");
}

static void check_place(const struct report_options *o, size_t sample, const char *want,
			const char *hint)
{
	struct report_place place;
	char buf[REPORT_NAME_BUF];
	struct report *r;
	const char *got;

	r = open_report(p, o);
	assert_true(report_find_place(r, &p->samples.data[sample], &place));
	got = report_frame_name(p, &place.frame, buf, sizeof(buf));
	if (strcmp(got, want) != 0 || strcmp(place.hint ? place.hint : "", hint) != 0)
		fail_msg("stack %zu: '%s' (%s), not '%s' (%s)", sample, got,
			 place.hint ? place.hint : "", want, hint);
}

TEST_WITH(the_first_own_frame_is_charged, set_up, NULL)
{
	static const struct {
		const char *frames[6], *want, *hint;
	} cases[] = {
		/* C++ in its library and in the program; results in front of the name */
		{ { "/usr/lib/libstdc++.so.6!std::string::_M_create(unsigned long&, unsigned long)",
		    "/bin/a!Store::put(int)", "/bin/a!main" },
		  "Store::put(int)",
		  "string" },
		{ { "/bin/a!void std::vector<int, std::allocator<int> >::_M_realloc_insert<int>(int&&)",
		    "/bin/a!int& std::vector<int>::emplace_back<int>(int&&)",
		    "/bin/a!Store::put(int)" },
		  "Store::put(int)",
		  "vector grows" },
		{ { "/bin/a!std::__detail::_Hashtable_alloc<X>::_M_allocate_buckets(unsigned long)",
		    "/bin/a!std::_Hashtable<int, std::vector<int> >::_M_rehash(unsigned long)",
		    "/bin/a!Store::put(int)" },
		  "Store::put(int)",
		  "unordered map grows" },
		{ { "/bin/a!std::_Rb_tree_node<int>* std::_Rb_tree<int, int>::_M_create_node<int>(int)",
		    "/bin/a!Store::put(int)" },
		  "Store::put(int)",
		  "map" },
		{ { "/bin/a!void std::__1::vector<int>::__push_back_slow_path<int>(int&&)",
		    "/bin/a!(anonymous namespace)::put(int)" },
		  "(anonymous namespace)::put(int)",
		  "vector grows" },
		/* a template of one's own that only returns something of std */
		{ { "/bin/a!std::vector<int> mine::build<int>(int)", "/bin/a!main" },
		  "std::vector<int> mine::build<int>(int)",
		  "" },
		/* a class of one's own has an operator new of its own */
		{ { "/bin/a!Pool::operator new(unsigned long)", "/bin/a!main" },
		  "Pool::operator new(unsigned long)",
		  "" },
		{ { "/bin/a!operator new(unsigned long)", "/bin/a!main" }, "main", "" },
		/* Rust, and C++ that has a namespace core */
		{ { "/bin/a!alloc::raw_vec::RawVec<T,A>::grow_one",
		    "/bin/a!alloc::vec::Vec<T,A>::push", "/bin/a!app::store::put",
		    "/bin/a!core::ops::function::FnOnce::call_once" },
		  "app::store::put",
		  "Vec grows" },
		{ { "/bin/a!<alloc::vec::Vec<T> as core::iter::Extend<T>>::extend",
		    "/bin/a!app::store::put" },
		  "app::store::put",
		  "Vec grows" },
		{ { "/bin/a!hashbrown::raw::RawTable<T,A>::reserve_rehash", "/bin/a!app::put" },
		  "app::put",
		  "HashMap grows" },
		{ { "/bin/a!<T as alloc::string::ToString>::to_string", "/bin/a!app::put" },
		  "app::put",
		  "" },
		{ { "/bin/a!<[T] as alloc::slice::hack::ConvertVec>::to_vec", "/bin/a!app::put" },
		  "app::put",
		  "" },
		{ { "/bin/a!<app::Key as alloc::borrow::ToOwned>::to_owned", "/bin/a!app::put" },
		  "<app::Key as alloc::borrow::ToOwned>::to_owned",
		  "" },
		{ { "/bin/a!core::Engine::run(int)", "/bin/a!main" }, "core::Engine::run(int)", "" },
		/* C, Python, Node, wrappers */
		{ { "/lib/libc.so.6!strdup", "/bin/a!remember", "/bin/a!main" }, "remember", "" },
		{ { "/bin/a!strdup", "/bin/a!strdup_all" }, "strdup_all", "" },
		{ { "/bin/redis!ztrymalloc_usable_internal", "/bin/redis!zmalloc",
		    "/bin/redis!createObject" },
		  "createObject",
		  "" },
		{ { "/bin/postgres!AllocSetAlloc", "/bin/postgres!palloc",
		    "/bin/postgres!ExecSort" },
		  "ExecSort",
		  "" },
		{ { "/bin/python3!_PyObject_Malloc", "/bin/python3!PyList_New",
		    "/bin/python3!main" },
		  "PyList_New",
		  "" },
		{ { "/bin/node!node::NodeArrayBufferAllocator::Allocate(unsigned long)",
		    "/bin/node!v8::internal::Builtins::Buffer(int)" },
		  "v8::internal::Builtins::Buffer(int)",
		  "" },
		/* code made at run time: what runs it is nobody's own then */
		{ { "/jvm/libjvm.so!os::malloc(unsigned long, MEMFLAGS)",
		    "/jvm/libjvm.so!Unsafe_AllocateMemory0",
		    "[jit]!long jdk.internal.misc.Unsafe.allocateMemory0(long)",
		    "[jit]!java.nio.ByteBuffer java.nio.ByteBuffer.allocateDirect(int)",
		    "[jit]!void Direct.work(int)" },
		  "void Direct.work(int)",
		  "" },
		{ { "/jvm/libjvm.so!os::malloc(unsigned long, MEMFLAGS)",
		    "/jvm/libjvm.so!Unsafe_AllocateMemory0", "[jit]![jit]+0x7f0000001000",
		    "[jit]!Interpreter", "/jvm/libjvm.so!JavaCalls::call_helper" },
		  "Unsafe_AllocateMemory0",
		  "" },
		{ { "/app/libjni.so!make_table", "[jit]!int App.table()" }, "make_table", "" },
		{ { "/bin/node!node::Buffer::CreateUnsafeArrayBuffer(int)",
		    "/bin/node!Builtins_CallApiCallback", "[jit]!round" },
		  "round",
		  "" },
		{ { "/lib/libpython3.12.so.1.0!PyList_New", "/lib/libffi.so.8!ffi_call",
		    "[jit]!work" },
		  "work",
		  "" },
		/* no name: its file is the program's */
		{ { "/lib/libc.so.6!fopen", "/usr/lib/libz.so.1!", "/bin/a!main" },
		  "libz.so.1+0x1234",
		  "" },
		/* ... and a part of the wrapper that called it; but not of another file's, nor of a function that is none */
		{ { "/usr/lib/libsqlite3.so.0!", "/usr/lib/libsqlite3.so.0!",
		    "/usr/lib/libsqlite3.so.0!sqlite3_malloc64", "/bin/a!remember" },
		  "remember",
		  "" },
		{ { "/usr/lib/libglib-2.0.so.0!", "/usr/lib/libglib-2.0.so.0!g_malloc",
		    "/usr/lib/libgtk.so.4!", "/bin/a!main" },
		  "libgtk.so.4+0x1234",
		  "" },
		{ { "/usr/lib/libz.so.1!", "/bin/a!xmalloc", "/bin/a!main" },
		  "libz.so.1+0x1234",
		  "" },
		{ { "/usr/lib/libz.so.1!", "/usr/lib/libz.so.1!inflateInit2_", "/bin/a!main" },
		  "libz.so.1+0x1234",
		  "" },
		/* a static program has libc's inner names */
		{ { "/bin/a!__memalign", "/bin/a!__getdelim", "/bin/a!read_all" }, "read_all", "" },
		{ { "/bin/a!__vfprintf_internal", "/bin/a!say" }, "say", "" },
		/* nothing own: what has a name and is in no system file, else a name, else the leaf */
		{ { "/lib/libc.so.6!", "/lib/libc.so.6!start_thread", "/bin/a!_start" },
		  "_start",
		  "" },
		{ { "/lib/libc.so.6!", "/lib/libc.so.6!start_thread" }, "start_thread", "" },
		{ { "!", "!" }, "0x1234", "" },
		{ { "!", "/bin/a!run" }, "run", "" },
	};
	struct report_options o = { 0 };

	each_case(c, cases)
		add_stack(c->frames);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		check_place(&o, i, cases[i].want, cases[i].hint);
}

/* Rust's library has names that look like anybody's where they are inlined: its sources tell. */
TEST_WITH(a_librarys_source_is_not_own, set_up, NULL)
{
	static const struct {
		const char *file;
		bool is_system;
	} cases[] = {
		{ "/rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/library/alloc/src/alloc.rs",
		  true },
		{ "/home/me/.rustup/toolchains/stable/lib/rustlib/src/rust/library/core/src/iter.rs",
		  true },
		{ "/rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/compiler/rustc/main.rs", false },
		{ "/home/me/library/src/alloc.rs", false },
		{ "src/main.rs", false },
		{ "", false },
	};

	each_case(c, cases)
		assert_int_equal(report_is_system_source(c->file), c->is_system);
	add_stack((const char *const[]){ "/bin/a!alloc", "/bin/a!request", NULL });
	p->functions.data[0].filename_str = profile_str(p, cases[0].file);
	check_place(&(struct report_options){ 0 }, 0, "request", "");
}

TEST_WITH(what_is_said_to_be_own_is, set_up, NULL)
{
	static const char *const own[] = { "handle_", "libapp" };
	static const char *const stacks[][5] = {
		{ "/lib/libc.so.6!strdup", "/bin/a!copy", "/bin/a!void handle_it<int>(int)",
		  "/bin/a!main" },
		{ "/bin/a!copy", "/usr/lib/libapp.so!inner", "/bin/a!main" },
		{ "/lib/libc.so.6!strdup", "/bin/a!copy", "/bin/a!main" }, /* nothing begins so */
	};
	struct report_options o = { .own = own, .own_cnt = 2 };

	for (size_t i = 0; i < 3; i++)
		add_stack(stacks[i]);
	check_place(&o, 0, "void handle_it<int>(int)", "");
	check_place(&o, 1, "inner", "");
	check_place(&o, 2, "copy", "");
}

TEST_WITH(files_are_told_by_their_whole_name, set_up, NULL)
{
	assert_true(report_is_system_module("libc.so.6"));
	assert_true(report_is_system_module("libm-2.31.so"));
	assert_true(report_is_system_module("ld-linux-x86-64.so.2"));
	assert_true(report_is_system_module("libtcmalloc_minimal.so.4"));
	assert_true(report_is_system_module("libstdc++.so.6"));
	assert_false(report_is_system_module("libmysqlclient.so.21"));
	assert_false(report_is_system_module("libcurl.so.4"));
	assert_false(report_is_system_module("libmine.so"));
}

static void check_fit(const char *name, size_t columns, const char *want)
{
	char got[REPORT_FIT_BUF];

	report_fit_name(name, columns, got);
	if (strcmp(got, want) != 0)
		fail_msg("'%s' in %zu is '%s', not '%s'", name, columns, got, want);
	assert_true(report_width(got) <= columns);
}

TEST_WITH(names_lose_their_middle, set_up, NULL)
{
	static const char umath[] = "_multiarray_umath.cpython-312-x86_64-linux-gnu.so+0x1a2b3c";

	check_fit(umath, 58, umath);
	check_fit(umath, 30, "_multiarray_um...u.so+0x1a2b3c");
	check_fit(umath, 16, "_m...so+0x1a2b3c");
	check_fit(umath, 9, "+0x1a2b3c");
	check_fit("a_function_with_a_long_name", 15, "a_func...g_name");
	check_fit("some_source_file.cc:1234", 12, "so...cc:1234");
	/* templates and parameters go first */
	check_fit("ns::f<int, long>(std::string)", 20, "ns::f<...>(...)");
	check_fit("operator<(A const&, B const&)", 16, "operator<(...)");
	/* characters, not bytes; none is cut through */
	check_fit("größengrößengrößen", 11, "größ...ößen");
	/* what would drive a terminal */
	check_fit("a\x1b[31mb\n\xc2\x9bzc", 20, "a?[31mb??zc");
}

TEST_WITH(overloads_are_one_name_behind_their_result, set_up, NULL)
{
	assert_string_equal(report_skip_result("int* f(int)"), "f(int)");
	assert_string_equal(report_skip_result("std::map<int, long> g<int>(int)"), "g<int>(int)");
	assert_string_equal(report_skip_result("bool A::operator()<int>(int) const"),
			    "A::operator()<int>(int) const");
	assert_string_equal(report_skip_result("A::operator bool() const"),
			    "A::operator bool() const");
	assert_string_equal(report_skip_result("non-virtual thunk to A::f(int)"), "A::f(int)");
	assert_string_equal(report_skip_result("main"), "main");
	assert_string_equal(report_skip_result(""), "");
	assert_string_equal(report_skip_result("<A as B>::f"), "<A as B>::f");
}

RUN_TESTS()
