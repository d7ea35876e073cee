/* SPDX-License-Identifier: MIT */
/* cmd/doctor_page.c - see cmd/doctor_page.h. */
#include "cmd/doctor_page.h"

#include <stdlib.h>
#include <string.h>

#include "base/printable.h"

void page_wrapped(const struct page *to, int at, int indent, const char *names)
{
	char *copy = strdup(names);
	const char *text = copy ? copy : "";
	bool is_first = true;

	if (copy)
		make_printable(copy);
	while (*text) {
		int len = (int)strcspn(text, " ");

		if (len && !is_first && at + 1 + len > to->columns) {
			fprintf(to->out, "\n%*s", indent, "");
			at = indent;
			is_first = true;
		}
		if (len) {
			fprintf(to->out, "%s%.*s", is_first ? "" : " ", len, text);
			at += len + !is_first;
			is_first = false;
		}
		text += len;
		text += strspn(text, " ");
	}
	fputc('\n', to->out);
	free(copy);
}

void page_field(const struct page *to, const char *name, const char *text)
{
	fprintf(to->out, "  %-13s", name);
	page_wrapped(to, 15, 15, text);
}

const char *page_tag_format(const struct survey_tag *tag, char buf[24])
{
	snprintf(buf, 24, "%s",
		 tag->kind == HT_TAG_OTEL   ? "OpenTelemetry" :
		 tag->kind == HT_TAG_CUSTOM ? "custom labels" :
					      "scope.h");
	if (tag->has_descriptor)
		snprintf(buf, 24, "scope.h %u.%u", SCOPE_DESCRIPTOR_MAJOR, tag->descriptor.minor);
	return buf;
}
