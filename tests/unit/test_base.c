/* SPDX-License-Identifier: MIT */
/* test_base.c - growing arrays, messages, and names that others gave. */
#include "unit.h"

#include "base/curl_setup.h"
#include "base/json.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/fd.h"
#include "base/vec.h"

TEST(test_vec_push)
{
	VEC(int) v = { 0 };
	int *p, sum = 0;

	for (int i = 0; i < 1000; i++)
		assert_int_equal(vec_push(&v, i), 0);
	assert_int_equal(v.cnt, 1000);
	assert_true(v.cap >= 1000 && v.cap <= 2000);
	vec_each(&v, p)
		sum += *p;
	assert_int_equal(sum, 999 * 1000 / 2);
	vec_release(&v);
	assert_null(v.data);
	assert_int_equal(v.cnt + v.cap, 0);
	vec_each(&v, p)
		fail();
}

TEST(test_vec_too_large)
{
	VEC(uint64_t) v = { 0 };
	uint64_t *data;

	assert_int_equal(vec_push(&v, 7), 0);
	data = v.data;
	/* sizes whose product wraps, and one that does not fit by far */
	assert_int_equal(vec_reserve(&v, SIZE_MAX), -ENOMEM);
	assert_int_equal(vec_reserve(&v, SIZE_MAX / 8 + 2), -ENOMEM);
	assert_ptr_equal(v.data, data);
	assert_int_equal(v.cnt, 1);
	assert_int_equal(v.data[0], 7);
	vec_release(&v);
}

/* From each order in which equal ones, the least and the greatest can be; and an empty list. */
TEST(test_sort)
{
	struct row {
		char name;
		uint64_t at;
	};
	VEC(struct row) v = { 0 };

	vec_sort_by(&v, at);
	assert_int_equal(v.cnt, 0);
	for (uint64_t step = 1; step < 8; step++) {
		v.cnt = 0;
		for (uint64_t n = 0; n < 8; n++) {
			const uint64_t i = n * step % 8;
			const struct row row = { (char)('a' + i / 2), i < 7 ? i / 2 : UINT64_MAX };

			assert_int_equal(vec_push(&v, row), 0);
		}
		vec_sort_by(&v, at);
		for (size_t n = 1; n < v.cnt; n++)
			assert_true(v.data[n - 1].at <= v.data[n].at);
		for (size_t n = 0; n < 7; n++)
			assert_int_equal(v.data[n].at, v.data[n].name - 'a');
	}
	vec_release(&v);
}

/* Against a walk from the front, with equal ones, before the first, behind the last, and of an empty list. */
TEST(test_sorted)
{
	static const uint64_t sorted[] = { 2, 2, 5, 7, 7, 7, 9, UINT64_MAX };
	struct row {
		char name;
		uint64_t at;
	};
	VEC(struct row) v = { 0 };

	assert_int_equal(vec_first_from(&v, at, 0), 0);
	assert_null(vec_get(&v, at, 0));
	each_case(c, sorted) {
		assert_int_equal(vec_push(&v, (struct row){ 'x', *c }), 0);
		for (uint64_t key = 0; key < 12; key++) {
			uint64_t wanted = key < 11 ? key : UINT64_MAX;
			size_t from = 0, behind = 0;

			while (from < v.cnt && v.data[from].at < wanted)
				from++;
			while (behind < v.cnt && v.data[behind].at <= wanted)
				behind++;
			assert_int_equal(vec_first_from(&v, at, wanted), from);
			assert_int_equal(vec_first_behind(&v, at, wanted), behind);
			assert_ptr_equal(vec_get(&v, at, wanted),
					 from < behind ? &v.data[from] : NULL);
		}
	}
	vec_release(&v);
}

static void captured(void (*fn)(void), char *text, size_t text_cap)
{
	int saved = dup(STDERR_FILENO), fds[2];
	ssize_t n;

	assert_int_equal(pipe(fds), 0);
	dup2(fds[1], STDERR_FILENO);
	fn();
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(fds[1]);
	n = read(fds[0], text, text_cap - 1);
	close(fds[0]);
	assert_true(n >= 0);
	text[n] = '\0';
}

static void say_all(void)
{
	log_error("e %d", 1);
	log_warn("w %d", 2);
	log_info("i %d", 3);
	log_debug("d %d", 4);
}

static void say_status(void)
{
	log_status("first");
	log_status("second");
	log_status_end();
}

TEST(test_log_levels)
{
	static const struct {
		enum log_level level;
		const char *expected;
	} cases[] = {
		{ LOG_ERROR, "heaptap: error: e 1\n" },
		{ LOG_WARN, "heaptap: error: e 1\nheaptap: warning: w 2\n" },
		{ LOG_INFO, "heaptap: error: e 1\nheaptap: warning: w 2\nheaptap: i 3\n" },
		{ LOG_DEBUG, "heaptap: error: e 1\nheaptap: warning: w 2\nheaptap: i 3\n"
			     "heaptap: debug: d 4\n" },
	};
	enum log_level before = log_get_level();
	char text[512];

	each_case(c, cases) {
		log_set_level(c->level);
		assert_int_equal(log_get_level(), c->level);
		captured(say_all, text, sizeof(text));
		assert_string_equal(text, c->expected);
	}
	log_set_level(before);
}

TEST(test_status_is_rare_without_terminal)
{
	char text[512];

	captured(say_status, text, sizeof(text));
	assert_string_equal(text, "");
}

static const struct {
	const char *text, *printable, *json;
} names[] = {
	{ "plain \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
	  "plain \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
	  "\"plain \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"" },
	{ "a\x1b[2J\n\x7f\t", "a?[2J???", "\"a\\u001b[2J\\u000a\\u007f\\u0009\"" },
	{ "a\xc2\x9b"
	  "31m\xc2\xa0",
	  "a?31m\xc2\xa0", "\"a\\u009b31m\xc2\xa0\"" },
	{ "\x9b\xff\xe2\x82", "????", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
	{ "x\xe2\x80\xa8y\xe2\x80\xaez\xe2\x81\xa6", "x?y?z?",
	  "\"x\xe2\x80\xa8y\xe2\x80\xaez\xe2\x81\xa6\"" },
	{ "\"\\", "\"\\", "\"\\\"\\\\\"" },
	{ "", "", "\"\"" },
};

TEST(test_text_add)
{
	char text[8] = "";

	text_add(text, sizeof(text), "%d", 12);
	text_add(text, sizeof(text), ", %s", "3");
	assert_string_equal(text, "12, 3");
	text_add(text, sizeof(text), "%s", "4567"); /* cut */
	assert_string_equal(text, "12, 345");
	text_add(text, sizeof(text), "%d", 8);
	assert_string_equal(text, "12, 345");
}

TEST(test_names)
{
	each_case(c, names) {
		char text[64] = "", zero[] = "a\0b", *json;

		strcpy(text, c->text);
		make_printable(text);
		assert_string_equal(text, c->printable);
		assert_int_equal(make_printable_n(zero, 3), 3);
		assert_string_equal(zero, "a?b");
		json = printed(out, json_text(&(struct json){ .out = out }, NULL, c->text));
		assert_string_equal(json, c->json);
	}
}

TEST(test_shell_words)
{
	static const struct {
		const char *word, *text;
	} cases[] = {
		{ "a/b-1_.,:=+@%\xc3\xa9", "a/b-1_.,:=+@%\xc3\xa9" },
		{ "", "''" },
		{ "a b", "'a b'" },
		{ "it's", "'it'\\''s'" },
		{ "$(x)`y`\\*?~#;&|<>\"!", "'$(x)`y`\\*?~#;&|<>\"!'" },
		{ "a\nb", "'a\nb'" },
	};

	each_case(c, cases) {
		char *text = printed(out, shell_word_put(c->word, out));

		assert_string_equal(text, c->text);
	}
}

TEST(test_markup)
{
	static const struct {
		const char *text, *markup;
	} cases[] = {
		{ "a<b>&\"'\xc3\xa9", "a&lt;b&gt;&amp;&quot;'\xc3\xa9" },
		{ "a\x1b[2J\tb\nc", "a [2J\tb\nc" },
		{ "\xff\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xef\xbf\xbe-\xef\xbf\xbf-\xef\xbf\xbc",
		  "\xef\xbf\xbd-\xef\xbf\xbd-\xef\xbf\xbc" },
		{ "a\x7f\xc2\x9b\xe2\x80\xae\xe2\x81\xa6\xe2\x80\xa8\xc2\xa0\xe2\x80\xa7",
		  "a \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xc2\xa0\xe2\x80\xa7" },
	};

	each_case(c, cases) {
		char *markup = printed(out, markup_put(c->text, strlen(c->text), out));

		assert_string_equal(markup, c->markup);
	}
}

TEST(test_json)
{
	char *text;
	size_t bytes;
	struct json j = { .out = open_memstream(&text, &bytes) };

	assert_non_null(j.out);
	json_begin(&j, NULL, '{');
	json_text(&j, "a", "b");
	json_begin(&j, "c", '[');
	json_end(&j, ']');
	json_line(&j);
	json_begin(&j, "d", '[');
	json_line(&j);
	json_format(&j, NULL, "%d", 1);
	json_bool(&j, NULL, true);
	json_line(&j);
	json_null(&j, NULL);
	json_end(&j, ']');
	json_begin(&j, "e", '{');
	json_number(&j, "f", 0, 4294967295.0);
	json_number(&j, "g", 1, -0.25);
	json_number(&j, "h", 1, NAN);
	json_number(&j, "i", 0, INFINITY);
	json_end(&j, '}');
	json_end(&j, '}');
	fclose(j.out);
	assert_string_equal(
		text,
		"{\"a\":\"b\",\"c\":[],\n\"d\":[\n1,true,\nnull],\"e\":{\"f\":4294967295,\"g\":-0.2,\"h\":null,\"i\":null}}");
	free(text);
}

static void say_names(void)
{
	log_warn("of %s", "a\x1b]0;x\x07\xc2\x9b\nheaptap: error: b");
}

TEST(test_log_names)
{
	char text[512];

	captured(say_names, text, sizeof(text));
	assert_string_equal(text, "heaptap: warning: of a?]0;x???heaptap: error: b\n");
}

/* Where there is no /dev/null it is a file that cannot grow: nothing of it may differ for who reads. */
TEST(test_null_fd)
{
	char byte;
	int fd = keep_fd(null_fd_open());

	assert_true(fd >= 0);
	assert_int_equal(read(fd, &byte, 1), 0);
}

TEST(test_ca_file)
{
	const char *before = getenv("SSL_CERT_FILE"), *found;
	char *saved = before ? strdup(before) : NULL;

	setenv("SSL_CERT_FILE", "/some/file", 1);
	assert_string_equal(ca_file_find(), "/some/file");
	setenv("SSL_CERT_FILE", "", 1);
	found = ca_file_find();
	assert_true(!found || !access(found, R_OK));
	if (saved)
		setenv("SSL_CERT_FILE", saved, 1);
	else
		unsetenv("SSL_CERT_FILE");
	free(saved);
}

RUN_TESTS()
