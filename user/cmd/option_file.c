/* SPDX-License-Identifier: MIT */
/* option_file.c - the configuration file of option.h. */

#include "base/err.h"
#include "base/fd.h"
#include "base/names.h"
#include "cmd/option.h"
#include "cmd/toml.h"

struct problem_sink {
	option_error_fn on_error;
	void *ctx;
	const char *file;
	const struct option_table *table;
};

/* The key that was most likely meant; NULL: none. */
static const char *nearest_key(const struct option_table *t, const char *name)
{
	const char **names = calloc(t->cnt + 1, sizeof(*names));
	const char *found = NULL;
	size_t cnt = 0, i;

	if (!names)
		return NULL;
	for (i = 0; i < t->cnt; i++)
		if (option_is_in_file(&t->rows[i]))
			names[cnt++] = t->rows[i].name;
	i = nearest_name(name, names, cnt);
	if (i < cnt)
		found = names[i];
	free(names);
	return found;
}

#define STRING (1 << TOML_STRING)
#define INTEGER (1 << TOML_INTEGER)
#define NUMBER (1 << TOML_INTEGER | 1 << TOML_FLOAT)

/* What the file has as the value of an option, leaving its text aside. */
static const struct {
	unsigned types;
	const char *wanted;
} forms[] = {
	[OPTION_FLAG] = { 1 << TOML_BOOL, "true or false" },
	[OPTION_CHOICE] = { STRING, "a string" },
	[OPTION_TEXT] = { STRING, "a string" },
	[OPTION_TEXTS] = { STRING, "strings in [ ]" },
	[OPTION_NUMBERS] = { INTEGER, "integers in [ ]" },
	[OPTION_COUNT] = { INTEGER, "an integer" },
	[OPTION_SIZE] = { STRING | INTEGER, "a string such as \"50m\", or an integer of bytes" },
	[OPTION_TIME] = { STRING | INTEGER, "a string such as \"30s\", or an integer of seconds" },
	[OPTION_PERCENT] = { STRING | NUMBER, "a number, or a string such as \"5%\"" },
	[OPTION_LIMIT] = { STRING | NUMBER, "a number, or a string such as \"5%\" or \"5!\"" },
};

static const char *toml_type_name(enum toml_type type)
{
	static const char *const names[] = { "a string", "an integer", "a float", "true or false" };

	return names[type];
}

static int apply_value(const struct problem_sink *p, const struct option_row *row, void *settings,
		       const struct toml_value *v)
{
	struct err why;
	int err;

	if (!(forms[row->type].types >> v->type & 1)) {
		option_complain(p->on_error, p->ctx, "%s:%u: %s: it is %s, and must be %s", p->file,
				v->line, row->name, toml_type_name(v->type),
				forms[row->type].wanted);
		return -EINVAL;
	}
	err = option_set(row, settings, v->text, &why);
	if (err && err != -ENOMEM && row->flags & OPTION_UNSAID)
		option_complain(p->on_error, p->ctx, "%s:%u: %s: bad value: %s", p->file, v->line,
				row->name, why.text);
	else if (err && err != -ENOMEM)
		option_complain(p->on_error, p->ctx, "%s:%u: %s: bad value '%s': %s", p->file,
				v->line, row->name, v->text, why.text);
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

	if (!row || !option_is_in_file(row)) {
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
		option_complain(p->on_error, p->ctx, "%s:%u: %s: it must be %s", p->file, e->line,
				e->key, forms[row->type].wanted);
		return -EINVAL;
	}
	if (is_list)
		option_clear(row, settings); /* remove the default */
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

static int check_file(int fd, const char *path, struct err *why)
{
	struct stat st;

	if (fstat(fd, &st))
		return err_set_os(why, -errno, "cannot read '%s'", path);
	if (!S_ISREG(st.st_mode))
		return err_set(why, -EINVAL, "'%s' is not a regular file", path);
	/* Group root is trusted. */
	if (st.st_mode & S_IWOTH || (st.st_mode & S_IWGRP && st.st_gid) ||
	    (st.st_uid && st.st_uid != geteuid()))
		return err_set(
			why, -EPERM,
			"'%s' can be written by others (owner %u, group %u, mode %03o): make it your own, "
			"and chmod go-w it",
			path, st.st_uid, st.st_gid, st.st_mode & 0777);
	return 0;
}

int option_read_file(const char *path, char **ret, size_t *ret_bytes, struct err *why)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err;
	char *buf = NULL;
	ssize_t n;

	if (fd < 0)
		return err_set_os(why, -errno, "cannot read '%s'", path);
	err = check_file(fd, path, why);
	if (err)
		goto out;
	buf = malloc(OPTION_FILE_BYTES_CAP + 1);
	n = buf ? read_full(fd, buf, OPTION_FILE_BYTES_CAP + 1) : -ENOMEM;
	if (n < 0 || n > OPTION_FILE_BYTES_CAP) {
		err = err_set_os(why, n < 0 ? (int)n : -EFBIG, "cannot read '%s'", path);
		free(buf);
	} else {
		*ret = buf;
		*ret_bytes = (size_t)n;
	}
out:
	close(fd);
	return err;
}
