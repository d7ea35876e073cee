/* SPDX-License-Identifier: MIT */
/* report.c - see report.h. */
#include "format/report.h"

#include <errno.h>

#include "format/report_rows.h"

int report_write(const struct profile *p, const struct report_options *opts, FILE *out)
{
	struct report *r;
	int err = report_open(p, opts, &r);

	if (err)
		return err;
	switch (opts->format) {
	case REPORT_TEXT:
		err = report_write_text(r, out);
		break;
	case REPORT_JSON:
		err = report_write_json(r, out);
		break;
	case REPORT_COLLAPSED:
		err = report_write_collapsed(r, out);
		break;
	case REPORT_HEAP:
		err = report_write_heap(r, out);
		break;
	}
	if (!err && (fflush(out) || ferror(out)))
		err = errno ? -errno : -EIO;
	report_close(r);
	return err;
}
