/* SPDX-License-Identifier: MIT */
/*
 * fuzz_pprof.c - a profile made of arbitrary bytes: read, reported in every way, written again
 * and read back the same. The first byte chooses the report.
 */
#include "fuzz.h"

#include "../lib/pprof_check.h"
#include "base/err.h"
#include "profile/pprof.h"
#include "report/report.h"
#include "profile/match_list.h"
#include "profile/profile.h"
#include "read_back.h"

static void write_report(const struct profile *p, uint8_t choice)
{
	static const char *const modules[] = { "lib", "ma" };
	struct report_options opts = {
		.by = choice % 10,
		.format = choice / 10 % 3,
		.sort = choice / 30 % 6,
		.row_cap = choice / 180 * 2,
		.frame_cap = choice & 1,
		.module = modules,
		.module_cnt = choice & 2,
		.columns = choice,
		.label_key = "task",
		.scope = choice & 4 ? "Top" : NULL,
		.folds_repeated = choice & 8,
		.groups_threads = choice & 16,
		.thread_globs = choice & 32 ? "w*" : NULL,
	};
	FILE *out = fopen("/dev/null", "w");
	struct err why;

	if (!out || (choice & 64 && match_list_new("*A*,-Top/B,conn", &opts.match)))
		goto out;
	if (report_check(p, &opts, &why) == -ENOENT && !why.text[0])
		abort();
	report_write(p, &opts, out);
out:
	match_list_free(opts.match);
	if (out)
		fclose(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct profile *p = NULL;
	struct err why;
	int err;

	if (!bytes)
		return 0;
	err = pprof_read_mem(data + 1, bytes - 1, &p, &why);
	if (err && !why.text[0])
		abort(); /* an error without a sentence */
	if (!err) {
		write_report(p, data[0]);
		write_and_read_back(p);
	}
	profile_free(p);
	pprof_check(data + 1, bytes - 1, &why);
	return 0;
}
