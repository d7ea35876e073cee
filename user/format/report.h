/* SPDX-License-Identifier: MIT */
/*
 * report.h - a profile as rows for people (text), programs (JSON) and flame graphs (collapsed).
 *
 * Works for every heap profile, whoever wrote it: in-use space is shown, else the profile's
 * default type, else its last. The rows always add up to the total.
 */
#ifndef HT_FORMAT_REPORT_H
#define HT_FORMAT_REPORT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct profile;

enum report_by { REPORT_BY_STACK, REPORT_BY_FUNCTION, REPORT_BY_MODULE, REPORT_BY_THREAD };
enum report_format { REPORT_TEXT, REPORT_JSON, REPORT_COLLAPSED };
enum report_sort { REPORT_SORT_INUSE, REPORT_SORT_OBJECTS, REPORT_SORT_ALLOC, REPORT_SORT_NAME };

struct report_options {
	enum report_by by;
	enum report_format format;
	enum report_sort sort;
	size_t row_cap; /* 0 = all; the rest becomes one row "(other)" */
	const char *const *module; /* prefixes for REPORT_BY_MODULE; none: the first own module */
	size_t module_cnt;
	size_t frame_cap; /* frames shown per stack, 0 = all */
	size_t columns; /* width of the text, 0 = 100 */
};

/* 0, -ENOMEM, or -EIO when out could not be written. */
int report_write(const struct profile *p, const struct report_options *opts, FILE *out);

#endif
