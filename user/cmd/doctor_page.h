/* SPDX-License-Identifier: MIT */
/* cmd/doctor_page.h - the page for doctor's text, and helpers of both of its parts. */
#ifndef HT_CMD_DOCTOR_PAGE_H
#define HT_CMD_DOCTOR_PAGE_H

#include "cmd/doctor.h"

#define PAGE_VDSO "[vdso]"

struct page {
	FILE *out;
	int columns;
};

/* Write words of text from column `at` on, further lines indented by `indent`. Names in it may be any bytes. */
void page_wrapped(const struct page *to, int at, int indent, const char *text);
/* "  name         text", wrapped. */
void page_field(const struct page *to, const char *name, const char *text);
/* "scope.h 1.2", "OpenTelemetry". Returns buf. */
const char *page_tag_format(const struct survey_tag *tag, char buf[24]);

/* Output of -v, cmd/doctor_verbose.c: every probed function, mapped file, feature and privilege. */
void page_survey(const struct doctor_report *r, const struct page *to);
void page_kernel(const struct doctor_report *r, const struct page *to);
void page_privileges(const struct doctor_report *r, const struct page *to);

#endif
