/* SPDX-License-Identifier: MIT */
/* metric_text.c - see metrics_page.h. */
#include "http/metrics_page.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/printable.h"

const char *metric_format_type(enum metric_format format)
{
	return format == METRIC_OPENMETRICS ?
		       "application/openmetrics-text; version=1.0.0; charset=utf-8" :
		       "text/plain; version=0.0.4; charset=utf-8";
}

/* A range of an Accept header, RFC 9110 12.5.1: "type/subtype ; name=value ; q=0.5". */
struct media_range {
	const char *name; /* "type/subtype" */
	size_t name_len;
	const char *version; /* NULL: any */
	size_t version_len;
	double quality;
};

static bool text_is(const char *text, size_t len, const char *want)
{
	return len == strlen(want) && !strncasecmp(text, want, len);
}

/* Remove blanks around it. */
static void trim(const char **text, size_t *len)
{
	while (*len && (**text == ' ' || **text == '\t')) {
		(*text)++;
		(*len)--;
	}
	while (*len && ((*text)[*len - 1] == ' ' || (*text)[*len - 1] == '\t'))
		(*len)--;
}

static double parse_quality(const char *text, size_t len)
{
	char digits[8];
	double q;

	if (!len || len >= sizeof(digits))
		return 0;
	memcpy(digits, text, len);
	digits[len] = '\0';
	if (strspn(digits, "0123456789.") != len)
		return 0;
	q = strtod(digits, NULL);
	return q > 1 ? 1 : q;
}

static void parse_parameter(const char *text, size_t len, struct media_range *r)
{
	const char *equals = memchr(text, '=', len);
	const char *value;
	size_t value_len;

	if (!equals)
		return;
	value = equals + 1;
	value_len = len - (size_t)(value - text);
	len = (size_t)(equals - text);
	trim(&text, &len);
	trim(&value, &value_len);
	if (value_len >= 2 && value[0] == '"' && value[value_len - 1] == '"') {
		value++;
		value_len -= 2;
	}
	if (text_is(text, len, "q")) {
		r->quality = parse_quality(value, value_len);
	} else if (text_is(text, len, "version")) {
		r->version = value;
		r->version_len = value_len;
	}
}

/* Read the next range at *pos, and move *pos behind it; false at the end. */
static bool next_range(const char **pos, struct media_range *ret)
{
	const char *text = *pos;
	bool is_first = true;

	if (!*text)
		return false;
	*ret = (struct media_range){ .quality = 1 };
	while (*text && (is_first || *text != ',')) {
		size_t len;

		if (!is_first)
			text++; /* ';' */
		len = strcspn(text, ";,");
		if (is_first) {
			ret->name = text;
			ret->name_len = len;
			trim(&ret->name, &ret->name_len);
		} else {
			parse_parameter(text, len, ret);
		}
		is_first = false;
		text += len;
	}
	*pos = *text ? text + 1 : text;
	return true;
}

enum metric_format metric_format_choose(const char *accept)
{
	double open = 0, plain = 0;
	struct media_range r;

	while (accept && next_range(&accept, &r)) {
		if (text_is(r.name, r.name_len, "application/openmetrics-text") &&
		    (!r.version || text_is(r.version, r.version_len, "1.0.0")))
			open = fmax(open, r.quality);
		else if (text_is(r.name, r.name_len, "text/plain"))
			plain = fmax(plain, r.quality);
	}
	return open > 0 && open >= plain ? METRIC_OPENMETRICS : METRIC_PROMETHEUS;
}

static const char *type_name(const struct metric_text *m)
{
	switch (m->family->type) {
	case METRIC_COUNTER:
		return "counter";
	case METRIC_INFO:
		return m->format == METRIC_OPENMETRICS ? "info" : "gauge";
	case METRIC_GAUGE:
		break;
	}
	return "gauge";
}

/* The end of the family's name in samples. */
static const char *suffix(const struct metric_text *m)
{
	switch (m->family->type) {
	case METRIC_COUNTER:
		return "_total";
	case METRIC_INFO:
		return "_info";
	case METRIC_GAUGE:
		break;
	}
	return "";
}

void metric_head(struct metric_text *m, const struct metric_family *family)
{
	bool is_open = m->format == METRIC_OPENMETRICS;
	const char *added;

	m->family = family;
	added = is_open ? "" : suffix(m);
	fprintf(m->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", family->name, added, family->help,
		family->name, added, type_name(m));
	if (is_open && family->unit)
		fprintf(m->out, "# UNIT %s %s\n", family->name, family->unit);
}

void metric_begin(struct metric_text *m)
{
	fputs(m->family->name, m->out);
	fputs(suffix(m), m->out);
	m->label_cnt = 0;
}

static void put_label_value(const char *text, FILE *out)
{
	size_t left = strlen(text), len;

	for (; left; text += len, left -= len) {
		len = utf8_len(text, left);
		if (!len) {
			fputc('?', out);
			len = 1;
		} else if (len > 1) {
			fwrite(text, 1, len, out);
		} else if (*text == '\n') {
			fputs("\\n", out);
		} else {
			if (*text == '\\' || *text == '"')
				fputc('\\', out);
			fputc(printable(*text), out);
		}
	}
}

void metric_label(struct metric_text *m, const char *key, const char *value)
{
	if (!*value)
		return;
	fprintf(m->out, "%c%s=\"", m->label_cnt++ ? ',' : '{', key);
	put_label_value(value, m->out);
	fputc('"', m->out);
}

/* The largest whole numbers that a double holds exactly. */
#define WHOLE_MAX 9007199254740992.0

/* From here on 15 digits do not distinguish neighbouring whole numbers. */
#define FRACTION_MAX 1e15

/* Write whole numbers exactly, because rounded ones do not add up. A larger number is never printed as a smaller
 * one, or a counter would seem to restart. */
static void put_number(double value, FILE *out)
{
	char text[32];
	int digits = 15;

	if (fabs(value) <= WHOLE_MAX && (value == floor(value) || fabs(value) >= FRACTION_MAX)) {
		fprintf(out, "%.0f", value);
		return;
	}
	do
		snprintf(text, sizeof(text), "%.*g", digits, value);
	while (fabs(value) > WHOLE_MAX && strtod(text, NULL) != value && ++digits <= 17);
	fputs(text, out);
}

void metric_value(struct metric_text *m, double value)
{
	fputs(m->label_cnt ? "} " : " ", m->out);
	put_number(value, m->out);
	fputc('\n', m->out);
}

void metric_end(struct metric_text *m)
{
	if (m->format == METRIC_OPENMETRICS)
		fputs("# EOF\n", m->out);
}
