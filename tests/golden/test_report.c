/* SPDX-License-Identifier: MIT */
/*
 * test_report.c - profiles in golden/report/ and what is printed of them, to the letter.
 *
 * server.pb.gz is the profile of tests/consumers/make_profile.c; go.pb.gz was written by Go's
 * runtime/pprof: another tool's, without error bars, labels and heaptap's comments.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/pprof.h"
#include "format/report.h"
#include "model/profile.h"

#define FOLDER "tests/golden/report/"

static const char *const prefixes[] = { "größe", "lib" };

static const struct {
	const char *profile, *expected;
	struct report_options opts;
} cases[] = {
	{ "server.pb.gz", "server.stack.text", { .row_cap = 10, .frame_cap = 12 } },
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
	{ "go.pb.gz", "go.stack.text", { .row_cap = 2, .frame_cap = 12 } },
	{ "go.pb.gz", "go.function.text", { .by = REPORT_BY_FUNCTION, .row_cap = 20 } },
};

static char *read_text(const char *name)
{
	static char text[1 << 16];
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), FOLDER "%s", name);
	f = fopen(path, "r");
	if (!f)
		fail_msg("cannot open %s: run from the top folder", path);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	return text;
}

static struct profile *read_profile(const char *name)
{
	struct profile *p = NULL;
	struct format_error why;
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

static void prints_what_it_did(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct profile *p = read_profile(cases[i].profile);
		char *got = NULL;
		size_t bytes;
		FILE *out = open_memstream(&got, &bytes);

		assert_int_equal(report_write(p, &cases[i].opts, out), 0);
		fclose(out);
		if (strcmp(got, read_text(cases[i].expected)) != 0)
			fail_msg("%s is not what is printed now:\n%s", cases[i].expected, got);
		free(got);
		profile_free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(prints_what_it_did) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
