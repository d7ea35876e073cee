/* SPDX-License-Identifier: MIT */
/* The options of `heaptap serve`: the table is sound, the example file fits it, and values that
 * depend on each other are checked. */
#include "unit.h"

#include "base/err.h"
#include "cmd/serve_options.h"
#include "track/budget.h"

#define EXAMPLE "tools/packaging/serve.toml"

static void on_error(void *ctx, const char *text)
{
	print_error("%s\n", text);
}

static void ignore(void *ctx, const char *text)
{
}

/* argv without its first. */
static int make(const char *const *words, struct serve_settings *ret)
{
	char *argv[16] = { (char *)"serve" };
	struct option_args args;
	int argc = 1, err;

	for (; words[argc - 1]; argc++)
		argv[argc] = (char *)words[argc - 1];
	assert_int_equal(option_read_args(&serve_option_table, argc, argv, on_error, NULL, &args),
			 0);
	err = serve_settings_make(&args, ret);
	option_args_release(&args);
	return err;
}

#define MAKE(ret, ...) make((const char *const[]){ __VA_ARGS__, NULL }, ret)

TEST(test_table)
{
	const struct option_table *t = &serve_option_table;

	for (size_t i = 0; i < t->cnt; i++) {
		const struct option_row *row = &t->rows[i];

		if (row->type == OPTION_HEADING || row->type == OPTION_ASK)
			continue;
		assert_true(row->at < sizeof(struct serve_settings));
		assert_non_null(row->help);
		if (row->type != OPTION_FLAG)
			assert_non_null(row->arg);
		if (row->type == OPTION_CHOICE)
			assert_non_null(row->choices);
		for (size_t j = 0; j < i; j++) {
			if (t->rows[j].type == OPTION_HEADING || t->rows[j].type == OPTION_ASK)
				continue;
			assert_string_not_equal(t->rows[j].name, row->name);
			assert_int_not_equal(t->rows[j].at, row->at);
			assert_true(!row->letter || t->rows[j].letter != row->letter);
		}
	}
}

TEST(test_settings)
{
	struct serve_settings s;

	assert_int_equal(MAKE(&s, "-p", "5", "--pid=6", "--comm", "a", "--rate", "1", "--push",
			      "parca+http://127.0.0.1:1", "--label", "env=x=y"),
			 0);
	assert_int_equal(s.daemon.pid_cnt, 2);
	assert_int_equal(s.daemon.pids[1], 6);
	assert_true(s.daemon.select.has_pids);
	assert_int_equal(s.daemon.rate_bytes, 1);
	assert_int_equal(s.daemon.live_cap, 1000000);
	assert_int_equal(s.daemon.stack_cap, 65536);
	assert_int_equal(s.daemon.rows_interval_ns, 60000000000);
	assert_string_equal(s.daemon.listen, "127.0.0.1:7676");
	assert_int_equal(s.daemon.pushes.target_cnt, 1);
	assert_int_equal(s.daemon.pushes.interval_ns, 10000000000);
	assert_string_equal(s.daemon.pushes.labels[0].name, "env");
	assert_string_equal(s.daemon.pushes.labels[0].value, "x=y");
	serve_settings_release(&s);
}

TEST(test_refused)
{
	static const char *const lines[][6] = {
		{ "--rate", "1" }, /* nothing to follow */
		{ "-a", "--comm", "x" },
		{ "-p1", "--label", "env=x" },
		{ "-p1", "--push-interval", "5s" },
		{ "-p1", "--push", "parca+http://a:1", "--push", "parca+http://a:1" },
		{ "-p1", "--push", "http://a:1" },
		{ "-p0" },
		{ "-p1", "--rows-interval", "59s" },
		{ "-p1", "--listen", "nowhere" },
		{ "-p1", "--listen", "unix:" },
		{ "-p1", "--attach-mode", "x" },
		{ "-p1", "--token-file", "/no/such/file" },
		{ "--comm", "(" },
		{ "--cgroup", "/no/such/cgroup" },
		{ "--config", "/no/such/file" },
	};
	struct serve_settings s;

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		if (make(lines[i], &s) == 0)
			fail_msg("%s %s: taken", lines[i][0], lines[i][1] ? lines[i][1] : "");
		serve_settings_release(&s);
	}
}

/* Every line of the example, with those that are comments in it, is taken; each shows the default
 * of its option, or an option that has none. */
TEST(test_example)
{
	const struct option_table *t = &serve_option_table;
	char *text = NULL, *at;
	struct err why = { 0 };
	struct serve_settings plain = { 0 }, s = { 0 };
	size_t bytes, key_cnt = 0;

	if (access(EXAMPLE, R_OK))
		skip(); /* not run from the top */
	assert_int_equal(option_read_file(EXAMPLE, &text, &bytes, &why), 0);
	text[bytes] = '\0';
	for (at = text; *at; at += strcspn(at, "\n"), at += *at == '\n') {
		size_t key = at[0] == '#' && at[1] == ' ' ? strcspn(at + 2, " ") : 0;

		/* "# key = value" */
		if (key && !strncmp(at + 2 + key, " = ", 3) && !memchr(at, '.', key))
			at[0] = ' ';
	}
	assert_int_equal(option_apply_defaults(t, &plain), 0);
	assert_int_equal(option_apply_defaults(t, &s), 0);
	/* Files that are not there are refused; users and cgroups may be none of this machine's. */
	option_apply_file(t, &s, EXAMPLE, text, bytes, ignore, NULL, NULL);
	for (size_t i = 0; i < t->cnt; i++) {
		const struct option_row *row = &t->rows[i];

		if (!option_is_in_file(row))
			continue;
		at = strstr(text, row->name);
		while (at && strncmp(at + strlen(row->name), " = ", 3))
			at = strstr(at + 1, row->name);
		if (!at)
			continue;
		key_cnt++;
		if (row->value && !option_is_equal(row, &s, &plain))
			fail_msg("%s: not its default in the example", row->name);
	}
	assert_true(key_cnt >= 19);
	free(text);
	option_release(t, &plain);
	option_release(t, &s);
}

TEST(test_reload)
{
	struct serve_settings old, fresh;

	assert_int_equal(MAKE(&old, "-p1", "--max-live", "5", "--rate", "1k"), 0);
	assert_int_equal(
		MAKE(&fresh, "-p2", "--max-live", "6", "--rate", "2k", "--listen", "[::1]:0"), 0);
	assert_int_equal(serve_settings_keep_fixed(&fresh, &old), 0);
	assert_int_equal(fresh.daemon.live_cap, 5);
	assert_string_equal(fresh.daemon.listen, "127.0.0.1:7676");
	assert_int_equal(fresh.daemon.rate_bytes, 1024);
	assert_int_equal(fresh.daemon.pids[0], 2);
	assert_float_equal(fresh.daemon.max_overhead.cpu_share, 0.05, 1e-9);
	assert_float_equal(fresh.daemon.max_overhead.one_cpu, 0.01, 1e-9);
	serve_settings_release(&old);
	serve_settings_release(&fresh);
}

/* The budget and the bounds of what is kept may change, and not whether anything is kept. */
TEST(test_reload_budget)
{
	struct serve_settings old, fresh;

	assert_int_equal(MAKE(&old, "-p1", "--rate", "1k", "--keep-files", "5"), 0);
	assert_int_equal(MAKE(&fresh, "-p1", "--rate", "1", "--max-overhead-host", "1",
			      "--keep-files", "0", "--keep-bytes", "1m", "--keep-at", "80"),
			 0);
	assert_false(budget_has_limit(&fresh.daemon.max_overhead)); /* exact */
	assert_int_equal(serve_settings_keep_fixed(&fresh, &old), 0);
	assert_int_equal(fresh.daemon.rate_bytes, 1024);
	assert_float_equal(fresh.daemon.max_overhead.cpu_share, 0.05, 1e-9);
	assert_float_equal(fresh.daemon.max_overhead_host, 0.01, 1e-9);
	assert_int_equal(fresh.daemon.keep.file_max, 5);
	assert_int_equal(fresh.daemon.keep.bytes_max, 1 << 20);
	assert_float_equal(fresh.daemon.keep.limit_percent, 80, 1e-9);
	serve_settings_release(&fresh);
	assert_int_equal(MAKE(&fresh, "-p1", "--rate", "1k", "--keep-files", "7"), 0);
	assert_int_equal(serve_settings_keep_fixed(&fresh, &old), 0);
	assert_int_equal(fresh.daemon.keep.file_max, 7);
	serve_settings_release(&old);
	serve_settings_release(&fresh);
}

RUN_TESTS()
