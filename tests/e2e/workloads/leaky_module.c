/* SPDX-License-Identifier: MIT */
/*
 * leaky_module.c - an SQLite extension with a cache that forgets: the SQL function remember(text)
 * keeps a copy of every text, and on one path (texts that begin with an 'x') loses the one that was
 * there before. normalise(text) allocates as much, and frees it.
 */
#include <stdlib.h>
#include <string.h>

#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT1

int sqlite3_leakymodule_init(sqlite3 *db, char **error, const sqlite3_api_routines *api);

static char *cache[61];

static __attribute__((noinline)) char *cache_copy(const char *text, size_t bytes)
{
	char *copy = malloc(bytes + 1);

	if (copy)
		memcpy(copy, text, bytes + 1);
	return copy;
}

static __attribute__((noinline)) void cache_store(unsigned slot, const char *text, size_t bytes)
{
	if (text[0] != 'x')
		free(cache[slot]);
	cache[slot] = cache_copy(text, bytes);
}

static void remember(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
	const char *text = (const char *)sqlite3_value_text(argv[0]);

	(void)argc;
	if (!text)
		return;
	cache_store(strlen(text) % 61, text, strlen(text));
	sqlite3_result_int(ctx, 1);
}

static void normalise(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
	const char *text = (const char *)sqlite3_value_text(argv[0]);
	char *copy = text ? cache_copy(text, strlen(text)) : NULL;

	(void)argc;
	sqlite3_result_text(ctx, copy, -1, SQLITE_TRANSIENT);
	free(copy);
}

int sqlite3_leakymodule_init(sqlite3 *db, char **error, const sqlite3_api_routines *api)
{
	int err;

	SQLITE_EXTENSION_INIT2(api);
	(void)error;
	err = sqlite3_create_function(db, "remember", 1, SQLITE_UTF8, NULL, remember, NULL, NULL);
	if (!err)
		err = sqlite3_create_function(db, "normalise", 1, SQLITE_UTF8, NULL, normalise,
					      NULL, NULL);
	return err;
}
