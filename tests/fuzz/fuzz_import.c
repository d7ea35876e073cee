/* SPDX-License-Identifier: MIT */
/*
 * fuzz_import.c - heap profiles of jemalloc and gperftools made of arbitrary bytes: read, reported
 * and written as pprof, as a heap profile and as a dump again, all of which must be readable. The first byte
 * chooses the report.
 */
#include "fuzz.h"

#include "base/err.h"
#include "profile/pprof.h"
#include "report/report.h"
#include "profile/profile.h"
#include "read_back.h"

static void write_report(const struct profile *p, const struct report_options *opts)
{
	FILE *out = fopen("/dev/null", "w");

	if (!out)
		return;
	report_write(p, opts, out);
	fclose(out);
}

static void write_heap_and_read_back(const struct profile *p, enum report_format format)
{
	const struct report_options opts = { .format = format };
	struct profile *again = NULL;
	struct err why = { 0 };
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return;
	report_write(p, &opts, out);
	fclose(out);
	/* Sums may be larger than what an importer takes. */
	if (import_text(text, bytes, &again, &why) && !strstr(why.text, "too large"))
		abort();
	profile_free(again);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct profile *p = NULL;
	struct err why = { 0 };
	struct report_options opts = { 0 };
	int err;

	if (!bytes)
		return 0;
	opts.by = data[0] % 4;
	opts.format = data[0] / 4 % 3;
	opts.sort = data[0] / 12 % 4;
	err = import_text(data + 1, bytes - 1, &p, &why);
	if (err && !why.text[0])
		abort(); /* an error without a sentence */
	if (!err) {
		const int64_t *v;

		vec_each(&p->values, v)
			if (*v < 0)
				abort();
		write_report(p, &opts);
		write_and_read_back(p);
		write_heap_and_read_back(p, REPORT_HEAP);
		write_heap_and_read_back(p, REPORT_HEAP_V2);
	}
	profile_free(p);
	return 0;
}
