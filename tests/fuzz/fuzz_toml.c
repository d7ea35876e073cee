/* SPDX-License-Identifier: MIT */
/* fuzz_toml.c - configuration files of any content. */
#include "fuzz.h"

#include "cmd/toml.h"

static void on_error(void *ctx, unsigned line, const char *key, const char *what)
{
	*(size_t *)ctx += 1;
	if (!line || !key || !what[0])
		abort();
}

static void check_entry(const struct toml_doc *doc, const struct toml_entry *e)
{
	const struct toml_value *v;
	const struct toml_entry *other;
	char *end;

	if (!e->key[0] || !e->line || (!e->is_array && e->values.cnt != 1))
		abort();
	for (other = doc->entries.data; other < e; other++)
		if (!strcmp(other->key, e->key) || other->line > e->line)
			abort();
	vec_each(&e->values, v) {
		if (v->line < e->line)
			abort();
		if (v->type == TOML_INTEGER || v->type == TOML_FLOAT) {
			strtod(v->text, &end);
			if (end == v->text || *end)
				abort();
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	const struct toml_entry *e;
	struct toml_doc doc;
	size_t error_cnt = 0;
	int err = toml_parse((const char *)data, bytes, on_error, &error_cnt, &doc);

	if (!err != !error_cnt)
		abort();
	vec_each(&doc.entries, e)
		check_entry(&doc, e);
	toml_release(&doc);
	return 0;
}
