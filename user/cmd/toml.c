/* SPDX-License-Identifier: MIT */
/*
 * toml.c - see toml.h.
 *
 * Debian 12 has no C library for TOML (its packages are for C++), and a configuration file here is a list of options:
 * this is the part of the format that they need. A reader moves over the text and never past its end. Every function
 * that fails has reported why, and leaves the rest of the line, or of the array, to skip_rest().
 */
#include "cmd/toml.h"

#include "base/printable.h"
#include "base/units.h"

struct reader {
	const char *begin, *at, *end;
	unsigned line;
	const char *key; /* the key that is being read; "" = none */
	toml_error_fn on_error;
	void *ctx;
	bool has_failed;
};

__attribute__((format(printf, 2, 3))) static int fail(struct reader *r, const char *fmt, ...)
{
	char what[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	r->has_failed = true;
	r->on_error(r->ctx, r->line, r->key, what);
	return -EINVAL;
}

/* '\0' at the end: the text itself contains none. */
static char peek(const struct reader *r)
{
	return r->at < r->end ? *r->at : '\0';
}

static bool is_bare(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* A line ends with LF or CR LF. */
static bool is_line_end(const struct reader *r)
{
	return r->at == r->end || *r->at == '\n' ||
	       (*r->at == '\r' && r->end - r->at > 1 && r->at[1] == '\n');
}

static void skip_blanks(struct reader *r)
{
	while (peek(r) == ' ' || peek(r) == '\t')
		r->at++;
}

static void skip_line(struct reader *r)
{
	while (r->at < r->end && *r->at != '\n')
		r->at++;
}

static void next_line(struct reader *r)
{
	if (peek(r) == '\r')
		r->at++;
	if (peek(r) == '\n') {
		r->at++;
		r->line++;
	}
}

/* Report bytes that no TOML file may have anywhere. */
static int check_text(struct reader *r)
{
	const char *begin = r->at;
	int err = 0;

	while (r->at < r->end && !err) {
		unsigned char c = (unsigned char)*r->at;
		size_t bytes = c < 0x80 ? 1 : utf8_len(r->at, (size_t)(r->end - r->at));

		if (!bytes)
			err = fail(r, "not UTF-8");
		else if ((c < ' ' && c != '\t' && !is_line_end(r)) || c == 0x7f)
			err = fail(r, "control character (0x%02x)", c);
		if (c == '\n')
			r->line++;
		r->at += bytes;
	}
	r->at = begin;
	r->line = 1;
	return err;
}

/* Only blanks and a comment may follow until the end of the line. */
static int end_line(struct reader *r)
{
	skip_blanks(r);
	if (peek(r) == '#')
		skip_line(r);
	if (!is_line_end(r))
		return fail(r, "only a comment (#) can follow the value");
	next_line(r);
	return 0;
}

/* In an array: skip blanks, comments and ends of lines. */
static void skip_space(struct reader *r)
{
	for (;;) {
		skip_blanks(r);
		if (peek(r) == '#')
			skip_line(r);
		if (r->at == r->end || !is_line_end(r))
			return;
		next_line(r);
	}
}

/* Does this line begin with "key ="? */
static bool is_key_line(const struct reader *r)
{
	struct reader ahead = *r;

	skip_blanks(&ahead);
	if (!is_bare(peek(&ahead)))
		return false;
	while (is_bare(peek(&ahead)))
		ahead.at++;
	skip_blanks(&ahead);
	return peek(&ahead) == '=';
}

/* After an error: skip to the next line; in an array, to the line after its end, as far as that can be found. */
static void skip_rest(struct reader *r, bool in_array)
{
	if (r->at > r->begin && r->at[-1] == '\n' && is_key_line(r))
		return; /* the array had no end */
	for (;;) {
		const char *begin = r->at;

		skip_line(r);
		if (memchr(begin, ']', (size_t)(r->at - begin)))
			in_array = false;
		next_line(r);
		if (!in_array || r->at == r->end || is_key_line(r))
			return;
	}
}

struct buffer {
	VEC(char) bytes;
};

static int put(struct buffer *b, const char *bytes, size_t cnt)
{
	if (vec_reserve(&b->bytes, b->bytes.cnt + cnt + 1))
		return -ENOMEM;
	memcpy(b->bytes.data + b->bytes.cnt, bytes, cnt);
	b->bytes.cnt += cnt;
	return 0;
}

static int put_character(struct buffer *b, uint32_t c)
{
	char out[4];

	if (c < 0x80) {
		out[0] = (char)c;
		return put(b, out, 1);
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return put(b, out, 2);
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return put(b, out, 3);
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return put(b, out, 4);
}

static int read_hex(struct reader *r, int digits, struct buffer *b)
{
	uint32_t c = 0;

	for (int i = 0; i < digits; i++, r->at++) {
		int d = hex_digit(peek(r));

		if (d < 0)
			return fail(r, "\\u needs 4 and \\U 8 hexadecimal digits");
		c = c << 4 | (uint32_t)d;
	}
	if (!c || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return fail(r, "\\u%04x is not a valid character", c);
	return put_character(b, c);
}

static int read_escape(struct reader *r, struct buffer *b)
{
	static const char names[] = "btnfr\"\\", meant[] = "\b\t\n\f\r\"\\";
	char c = peek(r);
	const char *at = c ? strchr(names, c) : NULL;

	if (at) {
		r->at++;
		return put(b, &meant[at - names], 1);
	}
	if (c != 'u' && c != 'U')
		return fail(r, "after a backslash expected one of b t n f r \" \\ u U; in '...' a "
			       "backslash is literal");
	r->at++;
	return read_hex(r, c == 'u' ? 4 : 8, b);
}

static int read_string(struct reader *r, struct buffer *b)
{
	char quote = *r->at;
	int err = 0;

	if (r->end - r->at >= 3 && r->at[1] == quote && r->at[2] == quote)
		return fail(r, "strings of several lines (%c%c%c) are not supported", quote, quote,
			    quote);
	r->at++;
	while (!err && peek(r) != quote) {
		if (is_line_end(r))
			return fail(r, "the string does not end on its line");
		if (quote == '"' && *r->at == '\\') {
			r->at++;
			err = read_escape(r, b);
		} else {
			err = put(b, r->at++, 1);
		}
	}
	if (!err)
		r->at++;
	return err;
}

/* Read digits with '_' between them, without the '_'. */
static int read_digits(struct reader *r, struct buffer *b)
{
	bool after_digit = false;
	int err = 0;

	for (; !err && (is_digit(peek(r)) || peek(r) == '_'); r->at++) {
		if (*r->at == '_' && (!after_digit || r->end - r->at < 2 || !is_digit(r->at[1])))
			return fail(r, "'_' is allowed only between digits");
		after_digit = *r->at != '_';
		if (after_digit)
			err = put(b, r->at, 1);
	}
	if (!err && !after_digit)
		return fail(r, "digits are missing in a number");
	return err;
}

static int read_number(struct reader *r, struct buffer *b, enum toml_type *ret)
{
	size_t begin;
	int err = 0;

	*ret = TOML_INTEGER;
	if (*r->at == '-')
		err = put(b, r->at, 1);
	if (*r->at == '-' || *r->at == '+')
		r->at++;
	begin = b->bytes.cnt;
	if (!err)
		err = read_digits(r, b);
	if (!err && b->bytes.cnt > begin + 1 && b->bytes.data[begin] == '0')
		return fail(r, "a number must not begin with 0");
	if (!err && peek(r) == '.') {
		*ret = TOML_FLOAT;
		err = put(b, r->at++, 1);
		if (!err)
			err = read_digits(r, b);
	}
	if (!err && (peek(r) == 'e' || peek(r) == 'E')) {
		*ret = TOML_FLOAT;
		err = put(b, r->at++, 1);
		if (!err && (peek(r) == '-' || peek(r) == '+'))
			err = put(b, r->at++, 1);
		if (!err)
			err = read_digits(r, b);
	}
	if (!err && (is_bare(peek(r)) || peek(r) == '.' || peek(r) == ':'))
		return fail(r, "not a number: a size or time with a unit is a string, such as "
			       "\"64k\"");
	return err;
}

static bool take_word(struct reader *r, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(r->end - r->at) < len || memcmp(r->at, word, len) ||
	    (r->at + len < r->end && is_bare(r->at[len])))
		return false;
	r->at += len;
	return true;
}

static int read_bool(struct reader *r, struct buffer *b)
{
	if (take_word(r, "true"))
		return put(b, "true", 4);
	if (take_word(r, "false"))
		return put(b, "false", 5);
	return fail(r, "not a value: strings are in quotes");
}

static int read_value(struct reader *r, struct toml_entry *entry)
{
	struct toml_value v = { .type = TOML_BOOL, .line = r->line };
	struct buffer b = { 0 };
	char c = peek(r);
	int err;

	if (c == '"' || c == '\'') {
		v.type = TOML_STRING;
		err = read_string(r, &b);
	} else if (is_digit(c) || c == '-' || c == '+') {
		err = read_number(r, &b, &v.type);
	} else if (c == '[') {
		err = fail(r, "an array in an array is not supported");
	} else if (c == '{') {
		err = fail(r, "inline tables are not supported");
	} else if (is_line_end(r) || c == '#') {
		err = fail(r, "a value is missing");
	} else {
		err = read_bool(r, &b);
	}
	if (!err)
		err = put(&b, "", 1);
	v.text = b.bytes.data;
	if (!err)
		err = vec_push(&entry->values, v);
	if (err)
		vec_release(&b.bytes);
	return err;
}

static int read_array(struct reader *r, struct toml_entry *entry)
{
	int err;

	entry->is_array = true;
	r->at++;
	for (;;) {
		skip_space(r);
		if (r->at == r->end || is_key_line(r))
			return fail(r, "the array has no end: ']' is missing");
		if (*r->at == ']')
			break;
		err = read_value(r, entry);
		if (err)
			return err;
		skip_space(r);
		if (peek(r) == ',')
			r->at++;
		else if (peek(r) != ']')
			return fail(r, "in an array, ',' or ']' must follow a value");
	}
	r->at++;
	return 0;
}

static void release_entry(struct toml_entry *e)
{
	struct toml_value *v;

	vec_each(&e->values, v)
		free(v->text);
	vec_release(&e->values);
	free(e->key);
}

/* Read "key =", up to the value. */
static int read_key(struct reader *r, const struct toml_doc *doc, struct toml_entry *entry)
{
	const struct toml_entry *e;
	const char *begin = r->at;

	if (*begin == '[')
		return fail(r, "tables are not supported: all keys are at the top level");
	if (!is_bare(*begin))
		return fail(r,
			    "expected 'key = value', with a key of letters, digits, '-' and '_'");
	while (is_bare(peek(r)))
		r->at++;
	entry->line = r->line;
	entry->key = strndup(begin, (size_t)(r->at - begin));
	if (!entry->key)
		return -ENOMEM;
	r->key = entry->key;
	skip_blanks(r);
	if (peek(r) == '.')
		return fail(r, "dotted keys are not supported");
	if (peek(r) != '=')
		return fail(r, "'=' is missing after the key");
	r->at++;
	skip_blanks(r);
	vec_each(&doc->entries, e)
		if (!strcmp(e->key, entry->key))
			return fail(r, "it was given in line %u already", e->line);
	return 0;
}

static int read_entry(struct reader *r, struct toml_doc *doc)
{
	struct toml_entry entry = { 0 };
	int err = read_key(r, doc, &entry);

	if (!err && peek(r) == '[')
		err = read_array(r, &entry);
	else if (!err)
		err = read_value(r, &entry);
	if (!err)
		err = end_line(r);
	if (err == -EINVAL)
		skip_rest(r, entry.is_array);
	r->key = "";
	if (!err)
		err = vec_push(&doc->entries, entry);
	if (err)
		release_entry(&entry);
	return err;
}

int toml_parse(const char *text, size_t bytes, toml_error_fn on_error, void *ctx,
	       struct toml_doc *ret)
{
	struct reader r = { .begin = text,
			    .at = text,
			    .end = text + bytes,
			    .line = 1,
			    .key = "",
			    .on_error = on_error,
			    .ctx = ctx };
	int err = 0;

	*ret = (struct toml_doc){ 0 };
	if (bytes >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
		r.at += 3; /* a byte order mark */
	if (check_text(&r))
		return -EINVAL;
	while (err != -ENOMEM && r.at < r.end) {
		skip_space(&r);
		if (r.at < r.end)
			err = read_entry(&r, ret);
	}
	if (err == -ENOMEM)
		return err;
	return r.has_failed ? -EINVAL : 0;
}

void toml_release(struct toml_doc *doc)
{
	struct toml_entry *e;

	vec_each(&doc->entries, e)
		release_entry(e);
	vec_release(&doc->entries);
}
