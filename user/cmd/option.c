/* SPDX-License-Identifier: MIT */
/* option.c - the values of option.h: parsed from texts, compared, copied, printed; and --help. */
#include "cmd/option.h"

#include "base/err.h"
#include "base/terminal.h"
#include "base/units.h"

#define PERCENT_LEAST 0.0001
#define HELP_COLUMN_MAX 26
#define HELP_WIDTH 98

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

bool option_is_in_file(const struct option_row *row)
{
	return row->type != OPTION_HEADING && row->type != OPTION_ASK &&
	       !(row->flags & (OPTION_NOT_IN_FILE | OPTION_HIDDEN));
}

static void *value_of(const struct option_row *row, void *settings)
{
	return (char *)settings + row->at;
}

struct unit {
	const char *name;
	uint64_t factor;
};

/* Write n in the largest unit of which it is a whole number. */
static void format_whole(uint64_t n, const struct unit *units, size_t cnt, char buf[UNITS_BUF])
{
	size_t i = 0;

	while (i + 1 < cnt && (!n || n % units[i].factor))
		i++;
	snprintf(buf, UNITS_BUF, "%llu%s", (unsigned long long)(n / units[i].factor),
		 units[i].name);
}

/* Write n exactly as a value of this type: "64k", "1500ms". Returns buf. */
static char *format_number(enum option_type type, uint64_t n, char buf[UNITS_BUF])
{
	static const struct unit sizes[] = {
		{ "t", 1ULL << 40 }, { "g", 1 << 30 }, { "m", 1 << 20 }, { "k", 1 << 10 }, { "", 1 }
	};
	static const struct unit times[] = {
		{ "h", 3600000000000ULL }, { "m", 60000000000ULL }, { "s", 1000000000 },
		{ "ms", 1000000 },	   { "us", 1000 },	    { "ns", 1 }
	};
	static const struct unit none[] = { { "", 1 } };

	if (type == OPTION_SIZE)
		format_whole(n, sizes, ARRAY_CNT(sizes), buf);
	else if (type == OPTION_TIME)
		format_whole(n, times, ARRAY_CNT(times), buf);
	else
		format_whole(n, none, 1, buf);
	return buf;
}

/* Say what the value has to be. Returns -EINVAL. */
static int say_wanted(const struct option_row *row, struct err *why)
{
	static const char *const words[] = {
		[OPTION_NUMBERS] = "a number",
		[OPTION_COUNT] = "a number",
		[OPTION_SIZE] = "a size such as 50m",
		[OPTION_TIME] = "a time such as 30s, 5m or 1m30s",
		[OPTION_PERCENT] = "a percentage such as 5 or 0.5",
		[OPTION_LIMIT] = "a percentage such as 5, 0.5 or 5!",
	};
	char min[UNITS_BUF], max[UNITS_BUF];

	format_number(row->type, row->min, min);
	format_number(row->type, row->max, max);
	if (row->wanted)
		return err_set(why, -EINVAL, "%s", row->wanted);
	if (row->max)
		return err_set(why, -EINVAL, "%s, from %s to %s", words[row->type], min, max);
	if (row->min)
		return err_set(why, -EINVAL, "%s, at least %s", words[row->type], min);
	return err_set(why, -EINVAL, "%s", words[row->type]);
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

static int set_percent(const struct option_row *row, double *value, const char *text,
		       struct err *why)
{
	bool is_off = !row->min && !strcmp(text, "off"); /* a limit: none */
	double n = 0;

	if ((!is_off && parse_percent(text, &n)) || n < (double)row->min ||
	    (row->max && n > (double)row->max))
		return say_wanted(row, why);
	/* option_print_settings() would need an exponent for it, which is not read */
	if (n > 0 && n < PERCENT_LEAST)
		return err_set(why, -EINVAL, "no less than %g", PERCENT_LEAST);
	*value = n;
	return 0;
}

static int set_limit(const struct option_row *row, struct option_limit *value, const char *text,
		     struct err *why)
{
	char percent[UNITS_BUF];
	size_t bytes = strlen(text);
	bool is_strict = bytes && text[bytes - 1] == '!';
	int err;

	bytes -= is_strict;
	if (bytes >= sizeof(percent))
		return say_wanted(row, why);
	memcpy(percent, text, bytes);
	percent[bytes] = '\0';
	err = set_percent(row, &value->percent, percent, why);
	if (!err)
		value->is_strict = is_strict && value->percent > 0;
	return err;
}

static int parse_number(const struct option_row *row, const char *text, uint64_t *ret,
			struct err *why)
{
	uint64_t n;
	int err;

	if (row->type == OPTION_SIZE)
		err = parse_size(text, &n);
	else if (row->type == OPTION_TIME)
		err = parse_duration(text, &n);
	else
		err = parse_count(text, &n);
	if (err || n < row->min || (row->max && n > row->max))
		return say_wanted(row, why);
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

static int set_choice(const struct option_row *row, int *value, const char *text, struct err *why)
{
	for (int i = 0; row->choices[i]; i++) {
		if (!strcmp(text, row->choices[i])) {
			*value = i;
			return 0;
		}
	}
	err_set(why, -EINVAL, "%s", row->choices[0]);
	for (int i = 1; row->choices[i]; i++)
		err_add(why, "%s%s", row->choices[i + 1] ? ", " : " or ", row->choices[i]);
	return -EINVAL;
}

static int add_texts(const struct option_row *row, struct texts *texts, const char *text,
		     struct err *why)
{
	char *list, *rest, *one;
	int err = 0;

	if (!(row->flags & OPTION_COMMAS))
		return texts_add(texts, text);
	list = rest = strdup(text);
	if (!list)
		return -ENOMEM;
	while (!err && (one = strsep(&rest, ",")))
		err = *one ? texts_add(texts, one) :
			     err_set(why, -EINVAL, "one of the list is empty");
	free(list);
	return err;
}

int option_set(const struct option_row *row, void *settings, const char *text, struct err *why)
{
	void *value = value_of(row, settings);
	uint64_t n = 0;
	int err;

	err_set(why, -ENOMEM, "out of memory");
	if (row->check && text) {
		err = row->check(text, why);
		if (err)
			return err;
	}
	switch (row->type) {
	case OPTION_HEADING:
		return -EINVAL;
	case OPTION_ASK:
		return 0;
	case OPTION_FLAG:
		*(bool *)value = !text || !strcmp(text, "true");
		return 0;
	case OPTION_CHOICE:
		return set_choice(row, value, text ? text : row->choices[1], why);
	case OPTION_TEXT:
		if (text)
			return set_text(value, text);
		option_clear(row, settings);
		return 0;
	case OPTION_TEXTS:
		return add_texts(row, value, text, why);
	case OPTION_NUMBERS:
		err = parse_number(row, text, &n, why);
		return err ? err : vec_push((struct option_numbers *)value, n);
	case OPTION_COUNT:
	case OPTION_SIZE:
	case OPTION_TIME:
		if (text)
			return parse_number(row, text, value, why);
		*(uint64_t *)value = 0;
		return 0;
	case OPTION_PERCENT:
		return set_percent(row, value, text, why);
	case OPTION_LIMIT:
		return set_limit(row, value, text, why);
	}
	return -EINVAL;
}

void option_clear(const struct option_row *row, void *settings)
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
		option_clear(&t->rows[i], settings);
}

int option_apply_defaults(const struct option_table *t, void *settings)
{
	int err = 0;

	for (size_t i = 0; i < t->cnt && !err; i++)
		if (t->rows[i].value)
			err = option_set(&t->rows[i], settings, t->rows[i].value, NULL);
	return err;
}

static bool texts_equal(const struct texts *a, const struct texts *b)
{
	bool is = a->cnt == b->cnt;

	for (size_t i = 0; i < a->cnt && is; i++)
		is = !strcmp(a->data[i], b->data[i]);
	return is;
}

bool option_is_equal(const struct option_row *row, const void *a, const void *b)
{
	const void *va = (const char *)a + row->at, *vb = (const char *)b + row->at;
	const struct option_numbers *na = va, *nb = vb;
	const struct option_limit *la = va, *lb = vb;
	const char *ta, *tb;

	switch (row->type) {
	case OPTION_HEADING:
	case OPTION_ASK:
		return true;
	case OPTION_CHOICE:
		return *(const int *)va == *(const int *)vb;
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
	case OPTION_ASK:
		break;
	case OPTION_CHOICE:
		*(int *)vt = *(const int *)vf;
		break;
	case OPTION_FLAG:
		*(bool *)vt = *(const bool *)vf;
		break;
	case OPTION_TEXT:
		if (*(char *const *)vf)
			return set_text(vt, *(char *const *)vf);
		option_clear(row, to);
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

/* --help, and the configuration in effect. */

/* Write "  -r, --rate BYTES" or "      --frames[=N]". Returns its length. */
static int format_label(const struct option_row *row, char *buf, size_t buf_bytes)
{
	const char *begin = row->flags & OPTION_MAY_HAVE_VALUE ? "[=" : " ";
	const char *end = row->flags & OPTION_MAY_HAVE_VALUE ? "]" : "";
	char letter[] = { '-', row->letter, ',', '\0' };

	return snprintf(buf, buf_bytes, "  %3s --%s%s%s%s", row->letter ? letter : "", row->name,
			row->arg ? begin : "", row->arg ? row->arg : "", row->arg ? end : "");
}

/* begin: the column where the help texts begin. */
static void print_row(const struct option_row *row, int begin, FILE *out)
{
	char label[64], value[96];
	int at = format_label(row, label, sizeof(label));

	fputs(label, out);
	if (at > begin - 2) { /* too long: the help begins on the next line */
		fputc('\n', out);
		at = 0;
	}
	fprintf(out, "%*s", begin - at, "");
	at = terminal_put_words(row->help, begin, begin, HELP_WIDTH, out);
	snprintf(value, sizeof(value), "(default: %s)", row->value);
	if (row->value)
		terminal_put_words(value, at, begin, HELP_WIDTH, out);
	fputc('\n', out);
}

/* As far left as the labels allow, not counting the few long ones. */
static int find_begin(const struct option_table *t)
{
	char label[64];
	int begin = 0;

	for (size_t i = 0; i < t->cnt; i++) {
		int len = t->rows[i].type == OPTION_HEADING || t->rows[i].flags & OPTION_HIDDEN ?
				  0 :
				  format_label(&t->rows[i], label, sizeof(label)) + 2;

		if (len > begin && len <= HELP_COLUMN_MAX)
			begin = len;
	}
	return begin;
}

void option_print_help(const struct option_table *t, FILE *out)
{
	int begin = find_begin(t);

	for (size_t i = 0; i < t->cnt; i++) {
		if (t->rows[i].type == OPTION_HEADING)
			fprintf(out, "\n%s:\n", t->rows[i].help);
		else if (!(t->rows[i].flags & OPTION_HIDDEN))
			print_row(&t->rows[i], begin, out);
	}
}

/* As a literal where that is easier to read, such as for regular expressions. */
static void print_string(const char *text, FILE *out)
{
	bool is_plain = !strchr(text, '\'');

	for (const char *p = text; *p && is_plain; p++)
		is_plain = (unsigned char)*p >= ' ' && *p != 0x7f;
	if (is_plain && strpbrk(text, "\\\"")) {
		fprintf(out, "'%s'", text);
		return;
	}
	fputc('"', out);
	for (; *text; text++) {
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			fprintf(out, "\\u%04x", (unsigned char)*text);
		else if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else
			fputc(*text, out);
	}
	fputc('"', out);
}

/* Is there no given value and no default? */
static bool is_unset(const struct option_row *row, const void *value)
{
	switch (row->type) {
	case OPTION_TEXT:
		return !*(char *const *)value;
	case OPTION_CHOICE:
		return !row->value && !*(const int *)value;
	case OPTION_COUNT:
	case OPTION_SIZE:
	case OPTION_TIME:
		return !row->value && !*(const uint64_t *)value;
	case OPTION_PERCENT:
		return !row->value && *(const double *)value == 0;
	case OPTION_LIMIT:
		return !row->value && ((const struct option_limit *)value)->percent == 0;
	default:
		return false;
	}
}

static void print_value(const struct option_row *row, const void *value, FILE *out)
{
	const struct option_numbers *numbers = value;
	const struct option_limit *limit = value;
	const struct texts *texts = value;
	char buf[UNITS_BUF];

	switch (row->type) {
	case OPTION_HEADING:
	case OPTION_ASK:
		break;
	case OPTION_CHOICE:
		print_string(row->choices[*(const int *)value], out);
		break;
	case OPTION_FLAG:
		fputs(*(const bool *)value ? "true" : "false", out);
		break;
	case OPTION_TEXT:
		print_string(*(char *const *)value, out);
		break;
	case OPTION_TEXTS:
		fputc('[', out);
		for (size_t i = 0; i < texts->cnt; i++) {
			fputs(i ? ", " : "", out);
			print_string(texts->data[i], out);
		}
		fputc(']', out);
		break;
	case OPTION_NUMBERS:
		fputc('[', out);
		for (size_t i = 0; i < numbers->cnt; i++)
			fprintf(out, "%s%llu", i ? ", " : "", (unsigned long long)numbers->data[i]);
		fputc(']', out);
		break;
	case OPTION_COUNT:
		fprintf(out, "%llu", (unsigned long long)*(const uint64_t *)value);
		break;
	case OPTION_SIZE:
	case OPTION_TIME:
		fprintf(out, "\"%s\"", format_number(row->type, *(const uint64_t *)value, buf));
		break;
	case OPTION_PERCENT:
		fprintf(out, "%.15g", *(const double *)value);
		break;
	case OPTION_LIMIT:
		if (limit->is_strict)
			fprintf(out, "\"%.15g!\"", limit->percent);
		else
			fprintf(out, "%.15g", limit->percent);
		break;
	}
}

void option_print_settings(const struct option_table *t, const void *settings, FILE *out)
{
	for (size_t i = 0; i < t->cnt; i++) {
		const struct option_row *row = &t->rows[i];
		const void *value = (const char *)settings + row->at;

		if (!option_is_in_file(row) || is_unset(row, value))
			continue;
		fprintf(out, "%s = ", row->name);
		print_value(row, value, out);
		fputc('\n', out);
	}
}
