/* SPDX-License-Identifier: MIT */
/* option.c - see option.h. Texts become values here; option_args.c and option_print.c are beside. */
#include "config/option.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/units.h"
#include "config/option_priv.h"
#include "config/toml.h"

#define WHY_BYTES 512

struct problem_sink {
	option_error_fn on_error;
	void *ctx;
	const char *file;
	const struct option_table *table;
};

void option_complain(option_error_fn on_error, void *ctx, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	on_error(ctx, text);
}

const struct option_row *option_find(const struct option_table *t, const char *name)
{
	for (size_t i = 0; i < t->cnt; i++)
		if (t->rows[i].type != OPTION_HEADING && !strcmp(t->rows[i].name, name))
			return &t->rows[i];
	return NULL;
}

/* The key of a file that is likely meant; NULL: none. */
static const char *nearest_key(const struct option_table *t, const char *name)
{
	const char **names = calloc(t->cnt + 1, sizeof(*names));
	const char *found = NULL;
	size_t cnt = 0, i;

	if (!names)
		return NULL;
	for (i = 0; i < t->cnt; i++)
		if (t->rows[i].type != OPTION_HEADING &&
		    !(t->rows[i].flags & (OPTION_NOT_IN_FILE | OPTION_HIDDEN)))
			names[cnt++] = t->rows[i].name;
	i = nearest_name(name, names, cnt);
	if (i < cnt)
		found = names[i];
	free(names);
	return found;
}

static void *value_of(const struct option_row *row, void *settings)
{
	return (char *)settings + row->at;
}

/* What a value has to be like, for messages. */
static void say_wanted(const struct option_row *row, char *why)
{
	char min[UNITS_BUF], max[UNITS_BUF];

	option_format_number(row->type, row->min, min);
	option_format_number(row->type, row->max, max);
	switch (row->type) {
	case OPTION_SIZE:
		snprintf(why, WHY_BYTES, "a size is wanted, such as 50m");
		break;
	case OPTION_TIME:
		snprintf(why, WHY_BYTES, "a time is wanted, such as 30s, 5m or 1h");
		break;
	case OPTION_PERCENT:
		snprintf(why, WHY_BYTES, "a percentage is wanted, such as 5 or 0.5");
		break;
	case OPTION_LIMIT:
		snprintf(why, WHY_BYTES, "a percentage is wanted, such as 5, 0.5 or 5!");
		break;
	default:
		snprintf(why, WHY_BYTES, "a number is wanted");
		break;
	}
	if (row->max)
		snprintf(why + strlen(why), WHY_BYTES - strlen(why), ", from %s to %s", min, max);
	else if (row->min)
		snprintf(why + strlen(why), WHY_BYTES - strlen(why), ", at least %s", min);
}

static int parse_count(const char *text, uint64_t *ret)
{
	char *end;
	unsigned long long n;

	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno || *end)
		return -EINVAL;
	*ret = n;
	return 0;
}

static int parse_percent(const char *text, double *ret)
{
	char *end;

	if (!strcmp(text, "off")) { /* limits: none */
		*ret = 0;
		return 0;
	}
	if ((text[0] < '0' || text[0] > '9') && text[0] != '.')
		return -EINVAL;
	*ret = strtod(text, &end);
	if (end == text || (*end && strcmp(end, "%")) || !isfinite(*ret) ||
	    strspn(text, "0123456789.eE+-%") != strlen(text))
		return -EINVAL;
	return 0;
}

static int set_percent(const struct option_row *row, double *value, const char *text, char *why)
{
	double n;

	if (parse_percent(text, &n) || n < (double)row->min || (row->max && n > (double)row->max)) {
		say_wanted(row, why);
		return -EINVAL;
	}
	*value = n;
	return 0;
}

static int set_limit(const struct option_row *row, struct option_limit *value, const char *text,
		     char *why)
{
	char percent[UNITS_BUF];
	size_t bytes = strlen(text);
	bool is_strict = bytes && text[bytes - 1] == '!';
	int err;

	bytes -= is_strict;
	if (bytes >= sizeof(percent)) {
		say_wanted(row, why);
		return -EINVAL;
	}
	memcpy(percent, text, bytes);
	percent[bytes] = '\0';
	err = set_percent(row, &value->percent, percent, why);
	if (!err)
		value->is_strict = is_strict && value->percent > 0;
	return err;
}

static int parse_number(const struct option_row *row, const char *text, uint64_t *ret, char *why)
{
	uint64_t n;
	int err;

	if (row->type == OPTION_SIZE)
		err = parse_size(text, &n);
	else if (row->type == OPTION_TIME)
		err = parse_duration(text, &n);
	else
		err = parse_count(text, &n);
	if (err || n < row->min || (row->max && n > row->max)) {
		say_wanted(row, why);
		return -EINVAL;
	}
	*ret = n;
	return 0;
}

static int set_text(char **value, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		return -ENOMEM;
	free(*value);
	*value = copy;
	return 0;
}

/* why has WHY_BYTES. A repeated option gets one more value. */
static int set_value(const struct option_row *row, void *settings, const char *text, char *why)
{
	void *value = value_of(row, settings);
	uint64_t n;
	int err;

	snprintf(why, WHY_BYTES, "out of memory");
	if (row->check) {
		err = row->check(text, why, WHY_BYTES);
		if (err)
			return err;
	}
	switch (row->type) {
	case OPTION_FLAG:
		*(bool *)value = !text || !strcmp(text, "true");
		return 0;
	case OPTION_TEXT:
		return set_text(value, text);
	case OPTION_TEXTS:
		return texts_add(value, text);
	case OPTION_NUMBERS:
		err = parse_number(row, text, &n, why);
		return err ? err : vec_push((struct option_numbers *)value, n);
	case OPTION_COUNT:
	case OPTION_SIZE:
	case OPTION_TIME:
		return parse_number(row, text, value, why);
	case OPTION_PERCENT:
		return set_percent(row, value, text, why);
	case OPTION_LIMIT:
		return set_limit(row, value, text, why);
	case OPTION_HEADING:
		break;
	}
	return -EINVAL;
}

static void release_value(const struct option_row *row, void *settings)
{
	void *value = value_of(row, settings);

	switch (row->type) {
	case OPTION_TEXT:
		free(*(char **)value);
		*(char **)value = NULL;
		break;
	case OPTION_TEXTS:
		texts_release(value);
		break;
	case OPTION_NUMBERS:
		vec_release((struct option_numbers *)value);
		break;
	default:
		break;
	}
}

void option_release(const struct option_table *t, void *settings)
{
	for (size_t i = 0; i < t->cnt; i++)
		release_value(&t->rows[i], settings);
}

int option_apply_defaults(const struct option_table *t, void *settings)
{
	char why[WHY_BYTES];
	int err = 0;

	for (size_t i = 0; i < t->cnt && !err; i++)
		if (t->rows[i].value)
			err = set_value(&t->rows[i], settings, t->rows[i].value, why);
	return err;
}

int option_apply_args(void *settings, const struct option_args *args, option_error_fn on_error,
		      void *ctx)
{
	char why[WHY_BYTES];
	int err = 0;

	/* The first of a repeated option does away with what the file says. */
	for (size_t i = 0; i < args->given.cnt; i++)
		release_value(args->given.data[i].row, settings);
	for (size_t i = 0; i < args->given.cnt; i++) {
		const struct option_row *row = args->given.data[i].row;
		const char *text = args->given.data[i].text;
		int one = set_value(row, settings, text, why);

		if (one == -ENOMEM)
			return one;
		if (one && row->flags & OPTION_UNSAID)
			option_complain(on_error, ctx, "bad value for --%s: %s", row->name, why);
		else if (one)
			option_complain(on_error, ctx, "bad value '%s' for --%s: %s",
					text ? text : "", row->name, why);
		err = err ? err : one;
	}
	return err;
}

/* Is this what the option takes, leaving its text aside? */
static bool type_fits(enum option_type option, enum toml_type type)
{
	switch (option) {
	case OPTION_FLAG:
		return type == TOML_BOOL;
	case OPTION_TEXT:
	case OPTION_TEXTS:
		return type == TOML_STRING;
	case OPTION_COUNT:
	case OPTION_NUMBERS:
		return type == TOML_INTEGER;
	case OPTION_PERCENT: /* a string: "5%", "off" */
	case OPTION_LIMIT:
		return type == TOML_INTEGER || type == TOML_FLOAT || type == TOML_STRING;
	case OPTION_SIZE:
	case OPTION_TIME:
		return type == TOML_STRING || type == TOML_INTEGER;
	case OPTION_HEADING:
		break;
	}
	return false;
}

static const char *wanted_type(enum option_type type)
{
	switch (type) {
	case OPTION_FLAG:
		return "true or false";
	case OPTION_COUNT:
		return "an integer";
	case OPTION_NUMBERS:
		return "integers in [ ]";
	case OPTION_TEXTS:
		return "strings in [ ]";
	case OPTION_PERCENT:
		return "a number, or a string such as \"5%\"";
	case OPTION_LIMIT:
		return "a number, or a string such as \"5%\" or \"5!\"";
	case OPTION_SIZE:
		return "a string such as \"50m\", or an integer of bytes";
	case OPTION_TIME:
		return "a string such as \"30s\", or an integer of seconds";
	default:
		return "a string";
	}
}

static int apply_value(const struct problem_sink *p, const struct option_row *row, void *settings,
		       const struct toml_value *v)
{
	char why[WHY_BYTES];
	int err;

	if (!type_fits(row->type, v->type)) {
		option_complain(p->on_error, p->ctx, "%s:%u: %s: it is %s, and has to be %s",
				p->file, v->line, row->name, toml_type_name(v->type),
				wanted_type(row->type));
		return -EINVAL;
	}
	err = set_value(row, settings, v->text, why);
	if (err && err != -ENOMEM && row->flags & OPTION_UNSAID)
		option_complain(p->on_error, p->ctx, "%s:%u: %s: bad value: %s", p->file, v->line,
				row->name, why);
	else if (err && err != -ENOMEM)
		option_complain(p->on_error, p->ctx, "%s:%u: %s: bad value '%s': %s", p->file,
				v->line, row->name, v->text, why);
	return err;
}

static int apply_entry(const struct problem_sink *p, void *settings, const struct toml_entry *e,
		       unsigned *lines)
{
	const struct option_row *row = option_find(p->table, e->key);
	const struct toml_value *v;
	const char *nearest;
	bool is_list;
	int err = 0, one;

	if (!row || row->flags & (OPTION_NOT_IN_FILE | OPTION_HIDDEN)) {
		nearest = nearest_key(p->table, e->key);
		option_complain(p->on_error, p->ctx, "%s:%u: %s: %s%s%s%s", p->file, e->line,
				e->key, row ? "it is for the command line only" : "unknown key",
				nearest && !row ? ": did you mean " : "",
				nearest && !row ? nearest : "", nearest && !row ? "?" : "");
		return -EINVAL;
	}
	if (lines)
		lines[row - p->table->rows] = e->line;
	is_list = row->type == OPTION_TEXTS || row->type == OPTION_NUMBERS;
	if (e->is_array != is_list) {
		option_complain(p->on_error, p->ctx, "%s:%u: %s: it has to be %s", p->file, e->line,
				e->key, wanted_type(row->type));
		return -EINVAL;
	}
	if (is_list)
		release_value(row, settings); /* the default */
	vec_each(&e->values, v) {
		one = apply_value(p, row, settings, v);
		if (one == -ENOMEM)
			return one;
		err = err ? err : one;
	}
	return err;
}

static void on_toml_error(void *ctx, unsigned line, const char *key, const char *what)
{
	const struct problem_sink *p = ctx;

	option_complain(p->on_error, p->ctx, "%s:%u: %s%s%s", p->file, line, key,
			key[0] ? ": " : "", what);
}

int option_apply_file(const struct option_table *t, void *settings, const char *name,
		      const char *text, size_t bytes, option_error_fn on_error, void *ctx,
		      unsigned *lines)
{
	struct problem_sink p = { on_error, ctx, name, t };
	struct toml_doc doc;
	const struct toml_entry *e;
	int err = toml_parse(text, bytes, on_toml_error, &p, &doc), one;

	vec_each(&doc.entries, e) {
		one = err == -ENOMEM ? 0 : apply_entry(&p, settings, e, lines);
		if (one == -ENOMEM || !err)
			err = one;
	}
	toml_release(&doc);
	return err;
}

bool option_is_equal(const struct option_row *row, const void *a, const void *b)
{
	const void *va = (const char *)a + row->at, *vb = (const char *)b + row->at;
	const struct option_numbers *na = va, *nb = vb;
	const struct option_limit *la = va, *lb = vb;
	const char *ta, *tb;

	switch (row->type) {
	case OPTION_HEADING:
		return true;
	case OPTION_FLAG:
		return *(const bool *)va == *(const bool *)vb;
	case OPTION_TEXT:
		ta = *(char *const *)va;
		tb = *(char *const *)vb;
		return ta && tb ? !strcmp(ta, tb) : ta == tb;
	case OPTION_TEXTS:
		return texts_equal(va, vb);
	case OPTION_NUMBERS:
		return na->cnt == nb->cnt &&
		       (!na->cnt || !memcmp(na->data, nb->data, na->cnt * sizeof(*na->data)));
	case OPTION_COUNT:
	case OPTION_SIZE:
	case OPTION_TIME:
		return *(const uint64_t *)va == *(const uint64_t *)vb;
	case OPTION_PERCENT:
		return *(const double *)va == *(const double *)vb;
	case OPTION_LIMIT:
		return la->percent == lb->percent && la->is_strict == lb->is_strict;
	}
	return false;
}

static int copy_texts(struct texts *to, const struct texts *from)
{
	struct texts copy = { 0 };

	for (size_t i = 0; i < from->cnt; i++) {
		if (texts_add(&copy, from->data[i])) {
			texts_release(&copy);
			return -ENOMEM;
		}
	}
	texts_release(to);
	*to = copy;
	return 0;
}

static int copy_numbers(struct option_numbers *to, const struct option_numbers *from)
{
	if (vec_reserve(to, from->cnt))
		return -ENOMEM;
	to->cnt = from->cnt;
	if (from->cnt)
		memcpy(to->data, from->data, from->cnt * sizeof(*from->data));
	return 0;
}

int option_copy(const struct option_row *row, void *to, const void *from)
{
	void *vt = value_of(row, to);
	const void *vf = (const char *)from + row->at;

	switch (row->type) {
	case OPTION_HEADING:
		break;
	case OPTION_FLAG:
		*(bool *)vt = *(const bool *)vf;
		break;
	case OPTION_TEXT:
		if (*(char *const *)vf)
			return set_text(vt, *(char *const *)vf);
		release_value(row, to);
		break;
	case OPTION_TEXTS:
		return copy_texts(vt, vf);
	case OPTION_NUMBERS:
		return copy_numbers(vt, vf);
	case OPTION_COUNT:
	case OPTION_SIZE:
	case OPTION_TIME:
		*(uint64_t *)vt = *(const uint64_t *)vf;
		break;
	case OPTION_PERCENT:
		*(double *)vt = *(const double *)vf;
		break;
	case OPTION_LIMIT:
		*(struct option_limit *)vt = *(const struct option_limit *)vf;
		break;
	}
	return 0;
}
