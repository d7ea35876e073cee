// SPDX-License-Identifier: MIT
// cxx.cc - heaptap/scope.h in C++, checked by what a reader sees. Run by test_languages.sh, in every
// standard. TAP on stdout.
#include <functional>
#include <string>
#include <thread>
#include <utility>
#if __cplusplus >= 202002L && defined(__has_include)
#if __has_include(<coroutine>) && defined(__cpp_impl_coroutine)
#include <coroutine>
#define HAS_COROUTINES 1
#endif
#endif
#if __cplusplus >= 201703L
#include <string_view>
#endif

#include "heaptap/scope.h"

#include "reader.h"

static reader_notes notes;
static int failed_cnt;
static bool is_failed;

static std::string current()
{
	char text[512];

	return reader_current(notes.descriptor, text, sizeof(text));
}
static uint64_t instance()
{
	return reader_u64(reader_record(notes.descriptor) + 8);
}
static void expect(int line, const std::string &what, const std::string &expected)
{
	if (what == expected)
		return;
	printf("# line %d: '%s', not '%s'\n", line, what.c_str(), expected.c_str());
	is_failed = true;
}
#define EXPECT(what, expected) expect(__LINE__, what, expected)
#define EXPECT_TRUE(x) expect(__LINE__, (x) ? "true" : "false: " #x, "true")

static void blocks()
{
	HEAPTAP_SCOPE("Top");
	EXPECT(current(), "Top");
	for (int i = 0; i < 2; i++) {
		HEAPTAP_SCOPE("A", "B");
		EXPECT(current(), "Top/A/B");
		if (i == 0)
			continue;
		HEAPTAP_PUSH("C", "D");
		EXPECT(current(), "Top/A/B/C/D");
		heaptap_pop();
		EXPECT(current(), "Top/A/B/C");
	}
	EXPECT(current(), "Top");
	{
		HEAPTAP_TASK("query", 17);
		EXPECT(current(), "Top/query");
		EXPECT_TRUE(instance() == 17);
		HEAPTAP_PAUSED();
		EXPECT_TRUE(reader_u64(reader_record(notes.descriptor)) & UINT64_C(1) << 32);
	}
	EXPECT(current(), "Top");
	EXPECT_TRUE(instance() == 0);
	EXPECT_TRUE(!(reader_u64(reader_record(notes.descriptor)) & UINT64_C(1) << 32));
}

// a call site in a template is one per instantiation, in an inline function one per image
template <class T> static std::string in_template(T)
{
	HEAPTAP_SCOPE("template");
	return current();
}
inline std::string in_inline()
{
	HEAPTAP_SCOPE("inline");
	return current();
}
static void places()
{
	auto lambda = [](const char *) {
		HEAPTAP_SCOPE("lambda");
		return current();
	};

	EXPECT(in_template(1), "template");
	EXPECT(in_template("x"), "template");
	EXPECT(in_inline(), "inline");
	EXPECT(lambda("x"), "lambda");
	HEAPTAP_SCOPE("outer");
	EXPECT(in_template(1), "outer/template");
	EXPECT(in_template("x"), "outer/template");
	EXPECT(in_inline(), "outer/inline");
	EXPECT(lambda("x"), "outer/lambda");
}

static void strings()
{
	std::string name = "dynamic";

	heaptap::scope a(name);
	heaptap::scope b("pointer");
	heaptap::label c("tenant", std::string("acme"));
	EXPECT(current(), "dynamic/pointer/tenant=acme");
	HEAPTAP_LABEL("tenant", name);
	EXPECT(current(), "dynamic/pointer/tenant=acme/tenant=dynamic");
	HEAPTAP_SCOPE_NAME(name + "!");
	EXPECT(current(), "dynamic/pointer/tenant=acme/tenant=dynamic/dynamic!");
#if __cplusplus >= 201703L
	heaptap::scope d(std::string_view("view of more").substr(0, 4));
	EXPECT(current(), "dynamic/pointer/tenant=acme/tenant=dynamic/dynamic!/view");
#endif
}

static void tasks()
{
	heaptap::task first("job"), second("job");

	EXPECT_TRUE(first.instance() != second.instance() && first.node() == second.node());
	EXPECT_TRUE(first.run([] {
		EXPECT(current(), "job");
		return instance();
	}) == first.instance());
	EXPECT(current(), "");
	{
		heaptap::with here(second);
		EXPECT_TRUE(instance() == second.instance());
		first.run([&] { EXPECT_TRUE(instance() == first.instance()); });
		EXPECT_TRUE(instance() == second.instance());
	}
	uint64_t number = first.instance();
	heaptap::task moved(std::move(first));
	EXPECT_TRUE(moved.instance() == number && first.instance() == 0);
	second = std::move(moved);
	EXPECT_TRUE(second.instance() == number);
	heaptap::task mine("job", 4711);
	EXPECT_TRUE(mine.instance() == 4711);
	first.run([] { EXPECT(current(), ""); });
}

static void carrying()
{
	std::function<int(int)> later;
	int got = 0;

	{
		HEAPTAP_SCOPE("giver");
		HEAPTAP_TASK("t", 3);
		later = heaptap::carry([&](int i) {
			EXPECT(current(), "giver/t");
			EXPECT_TRUE(instance() == 3);
			return i + 1;
		});
	}
	std::thread([&] {
		HEAPTAP_SCOPE("taker");
		got = later(41);
		EXPECT(current(), "taker");
		EXPECT_TRUE(instance() == 0);
	}).join();
	EXPECT_TRUE(got == 42);
	auto once = heaptap::carry(std::bind([](int a) { return a; }, 7));
	auto copy = once;
	EXPECT_TRUE(once() == 7 && copy() == 7);
}

#ifdef __cpp_exceptions
static void exceptions()
{
	try {
		HEAPTAP_SCOPE("thrower");
		heaptap::task t("t");
		t.run([]() { throw 5; });
	} catch (int) {
		EXPECT(current(), "");
		EXPECT_TRUE(instance() == 0);
		return;
	}
	EXPECT_TRUE(false);
}
#endif

#ifdef HAS_COROUTINES
static void coroutines()
{
	struct job {
		struct promise_type {
			job get_return_object()
			{
				return { std::coroutine_handle<promise_type>::from_promise(*this) };
			}
			std::suspend_always initial_suspend() { return {}; }
			std::suspend_always final_suspend() noexcept { return {}; }
			void return_void() {}
			void unhandled_exception() {}
		};
		std::coroutine_handle<promise_type> handle;
	};
	// its scopes end on another thread than they began on
	auto body = [](heaptap::task &t) -> job {
		HEAPTAP_SCOPE("part");
		EXPECT(current(), "co/part");
		heaptap_state mine = heaptap_get();
		co_await std::suspend_always{};
		heaptap_set(mine);
		EXPECT(current(), "co/part");
		EXPECT_TRUE(instance() == t.instance());
	};
	heaptap::task t("co");
	job j = body(t);

	t.run([&] { j.handle.resume(); });
	EXPECT(current(), "");
	std::thread([&] {
		HEAPTAP_SCOPE("thread");
		t.run([&] { j.handle.resume(); });
		EXPECT(current(), "thread");
	}).join();
	EXPECT_TRUE(j.handle.done());
	j.handle.destroy();
	EXPECT(current(), "");
}
#endif

int main()
{
	static const struct {
		const char *name;
		void (*run)();
	} tests[] = {
		{ "blocks", blocks },     { "places", places },
		{ "strings", strings },   { "tasks", tasks },
		{ "carrying", carrying },
#ifdef __cpp_exceptions
		{ "exceptions", exceptions },
#endif
#ifdef HAS_COROUTINES
		{ "coroutines", coroutines },
#endif
	};

	if (reader_image_of(&notes, &notes) || reader_complaint(notes.descriptor)) {
		printf("not ok - no descriptor\n");
		return 1;
	}
	for (const auto &test : tests) {
		is_failed = false;
		test.run();
		if (!current().empty())
			EXPECT(current(), "");
		failed_cnt += is_failed;
		printf("%s - %s\n", is_failed ? "not ok" : "ok", test.name);
	}
	return failed_cnt != 0;
}
