/* SPDX-License-Identifier: MIT */
/*
 * test_report.c - profiles in golden/report/ and what is printed of them, to the letter.
 *
 * server.pb.gz and scopes.pb.gz are the profiles of tests/consumers/make_profile.c; go.pb.gz was written by Go's
 * runtime/pprof: another tool's, without error bars, labels and heaptap's comments.
 */
#include "../unit/unit.h"

#include "base/err.h"
#include "golden.h"

#include "profile/pprof.h"
#include "report/report.h"
#include "profile/match_list.h"
#include "profile/profile.h"

#define FOLDER "tests/golden/report/"

static const char *const prefixes[] = { "größe", "lib" };

static const struct {
	const char *profile, *expected;
	struct report_options opts;
} cases[] = {
	{ "server.pb.gz",
	  "server.stack.text",
	  { .row_cap = 10, .frame_cap = 12, .shows_stacks = true, .shows_notes = true } },
	{ "server.pb.gz", "server.place.text", { .row_cap = 10, .path = "server.pb.gz" } },
	{ "server.pb.gz", "server.function.text", { .by = REPORT_BY_FUNCTION } },
	{ "server.pb.gz", "server.module.text", { .by = REPORT_BY_MODULE } },
	{ "server.pb.gz",
	  "server.prefix.text",
	  { .by = REPORT_BY_MODULE, .module = prefixes, .module_cnt = 2 } },
	{ "server.pb.gz", "server.thread.text", { .by = REPORT_BY_THREAD } },
	{ "server.pb.gz",
	  "server.top.text",
	  { .by = REPORT_BY_FUNCTION, .sort = REPORT_SORT_ALLOC, .row_cap = 2 } },
	{ "server.pb.gz", "server.stack.json", { .format = REPORT_JSON } },
	{ "server.pb.gz",
	  "server.function.json",
	  { .by = REPORT_BY_FUNCTION, .format = REPORT_JSON } },
	{ "server.pb.gz", "server.stack.collapsed", { .format = REPORT_COLLAPSED } },
	{ "server.pb.gz",
	  "server.thread.collapsed",
	  { .by = REPORT_BY_THREAD, .format = REPORT_COLLAPSED } },
	{ "server.pb.gz", "server.heap_v2", { .format = REPORT_HEAP_V2 } },
	{ "go.pb.gz", "go.stack.text", { .row_cap = 2, .frame_cap = 12, .shows_stacks = true } },
	{ "go.pb.gz", "go.function.text", { .by = REPORT_BY_FUNCTION, .row_cap = 20 } },
	{ "go.pb.gz", "go.scope.text", { .by = REPORT_BY_SCOPE } },
	{ "go.pb.gz", "go.instance.text", { .by = REPORT_BY_INSTANCE } },
	{ "scopes.pb.gz", "scopes.scope.text", { .by = REPORT_BY_SCOPE } },
	{ "scopes.pb.gz", "scopes.top.text", { .by = REPORT_BY_SCOPE, .row_cap = 3 } },
	{ "scopes.pb.gz",
	  "scopes.fold.text",
	  { .by = REPORT_BY_SCOPE, .scope = "Top/A", .folds_repeated = true } },
	{ "scopes.pb.gz",
	  "scopes.scope.json",
	  { .by = REPORT_BY_SCOPE, .format = REPORT_JSON, .row_cap = 5 } },
	{ "scopes.pb.gz", "scopes.instance.text", { .by = REPORT_BY_INSTANCE } },
	{ "scopes.pb.gz",
	  "scopes.instance.json",
	  { .by = REPORT_BY_INSTANCE, .format = REPORT_JSON, .scope = "Top/conn" } },
	{ "scopes.pb.gz",
	  "scopes.instance.collapsed",
	  { .by = REPORT_BY_INSTANCE, .format = REPORT_COLLAPSED } },
	{ "scopes.pb.gz",
	  "scopes.label.text",
	  { .by = REPORT_BY_LABEL, .label_key = "query", .row_cap = 20 } },
	{ "scopes.pb.gz",
	  "scopes.pool.text",
	  { .by = REPORT_BY_THREAD, .groups_threads = true, .row_cap = 20 } },
};

static const struct {
	const char *profile, *expected, *match;
	struct report_options opts;
} matched[] = {
	{ "scopes.pb.gz", "scopes.match.text", "Top/*,-B", { .by = REPORT_BY_SCOPE } },
	{ "scopes.pb.gz", "scopes.stack.text", "-B", { .scope = "Top/A", .shows_stacks = true } },
	{ "scopes.pb.gz",
	  "scopes.scope.collapsed",
	  "-conn",
	  { .by = REPORT_BY_SCOPE, .format = REPORT_COLLAPSED } },
};

static struct profile *read_profile(const char *name)
{
	struct profile *p = NULL;
	struct err why;
	char path[256];
	int fd;

	snprintf(path, sizeof(path), FOLDER "%s", name);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	if (pprof_read(fd, &p, &why))
		fail_msg("%s: %s", name, why.text);
	close(fd);
	return p;
}

static void check_print(const char *name, const char *expected, const struct report_options *opts)
{
	struct profile *p = read_profile(name);
	char path[256], *got = printed(out, assert_int_equal(report_write(p, opts, out), 0));

	snprintf(path, sizeof(path), FOLDER "%s", expected);
	golden_compare(path, got);
	profile_free(p);
}

TEST(prints_what_it_did)
{
	each_case(c, cases)
		check_print(c->profile, c->expected, &c->opts);
	each_case(c, matched) {
		struct report_options opts = c->opts;

		assert_int_equal(match_list_new(c->match, &opts.match), 0);
		check_print(c->profile, c->expected, &opts);
		match_list_free(opts.match);
	}
}

RUN_TESTS()
