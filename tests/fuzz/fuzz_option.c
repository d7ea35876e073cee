/* SPDX-License-Identifier: MIT */
/*
 * fuzz_option.c - arguments and configuration files of the server, by its table of options.
 *
 * The first byte says which: a file follows, or arguments with NULs between them. What is taken and printed as a
 * configuration is taken again, and the same.
 */
#include "fuzz.h"

#include "base/printable.h"
#include "cmd/option.h"
#include "cmd/serve_options.h"

#define ARGS_CAP 64

static void on_error(void *ctx, const char *text)
{
	*(size_t *)ctx += 1;
	if (!*text)
		abort();
}

static int apply_file(struct serve_settings *s, const char *text, size_t bytes)
{
	const struct option_table *t = &serve_option_table;
	size_t error_cnt = 0;
	int err = option_apply_file(t, s, "fuzz", text, bytes, on_error, &error_cnt, NULL);

	if (!err != !error_cnt)
		abort();
	return err;
}

static int apply_args(struct serve_settings *s, char *text, size_t bytes)
{
	struct option_args args = { 0 };
	char *argv[ARGS_CAP + 2] = { "serve" };
	size_t error_cnt = 0;
	int argc = 1, err;

	for (char *p = text; p < text + bytes && argc <= ARGS_CAP; p += strlen(p) + 1)
		argv[argc++] = p;
	err = option_read_args(&serve_option_table, argc, argv, on_error, &error_cnt, &args);
	if (!err != !error_cnt)
		abort();
	if (!err) {
		if (args.first > (size_t)argc)
			abort();
		option_args_find(&args, "listen");
		err = option_apply_args(s, &args, on_error, &error_cnt);
		if (!err != !error_cnt)
			abort();
	}
	option_args_release(&args);
	return err;
}

/* A path may be none, of which a configuration file cannot tell. */
static bool is_utf8(const char *text, size_t bytes)
{
	size_t len;

	for (size_t at = 0; at < bytes; at += len) {
		len = text[at] ? utf8_len(text + at, bytes - at) : 1; /* between arguments */
		if (!len)
			return false;
	}
	return true;
}

/* Printed and read again it is the same. */
static void check_again(const struct serve_settings *s)
{
	const struct option_table *t = &serve_option_table;
	struct serve_settings again = { 0 };
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return;
	option_print_settings(t, s, out);
	fclose(out);
	if (option_apply_defaults(t, &again) || apply_file(&again, text, bytes)) {
		fprintf(stderr, "not taken again:\n%s", text);
		abort();
	}
	for (size_t i = 0; i < t->cnt; i++) {
		const struct option_row *row = &t->rows[i];

		if (!option_is_in_file(row) || option_is_equal(row, s, &again))
			continue;
		fprintf(stderr, "--%s is another one when read again:\n%s", row->name, text);
		abort();
	}
	option_release(t, &again);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	const struct option_table *t = &serve_option_table;
	struct serve_settings s = { 0 };
	char *text = malloc(bytes + 1);
	int err;

	if (!text || !bytes)
		goto out;
	memcpy(text, data + 1, bytes - 1);
	text[bytes - 1] = '\0';
	if (option_apply_defaults(t, &s))
		abort();
	err = data[0] % 2 ? apply_args(&s, text, bytes - 1) : apply_file(&s, text, bytes - 1);
	if (!err && is_utf8(text, bytes - 1))
		check_again(&s);
	option_release(t, &s);
out:
	free(text);
	return 0;
}
