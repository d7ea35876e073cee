/* SPDX-License-Identifier: MIT */
/*
 * fuzz_pprof.c - a profile made of arbitrary bytes: read, reported in every way, written again
 * and read back the same. The first byte chooses the report.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/pprof.h"
#include "format/report.h"
#include "model/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void write_report(const struct profile *p, uint8_t choice)
{
	static const char *const modules[] = { "lib", "ma" };
	const struct report_options opts = {
		.by = choice % 4,
		.format = choice / 4 % 3,
		.sort = choice / 12 % 4,
		.row_cap = choice / 48 % 3,
		.frame_cap = choice & 1,
		.module = modules,
		.module_cnt = choice & 2,
		.columns = choice,
	};
	FILE *out = fopen("/dev/null", "w");

	if (!out)
		return;
	report_write(p, &opts, out);
	fclose(out);
}

static void write_and_read_back(const struct profile *p)
{
	int fd = memfd_create("profile", MFD_CLOEXEC);
	struct profile *again = NULL;
	struct format_error why;

	if (fd < 0)
		return;
	if (pprof_write(p, fd) || lseek(fd, 0, SEEK_SET) || pprof_read(fd, &again, &why))
		abort();
	if (again->samples.cnt != p->samples.cnt || again->locations.cnt != p->locations.cnt ||
	    again->functions.cnt != p->functions.cnt || again->mappings.cnt != p->mappings.cnt ||
	    again->labels.cnt != p->labels.cnt || again->comments.cnt != p->comments.cnt)
		abort();
	profile_free(again);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct profile *p = NULL;
	struct format_error why;
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
