/* SPDX-License-Identifier: MIT */
/*
 * fuzz_keep_name.c - names of saved profiles: those of any file in their folder, and those of any process.
 *
 * The first byte says which: a file's name follows, or what a name is made of.
 */
#include "fuzz.h"

#include "record/saver_priv.h"

#define YEAR_10000_S 253402300800ULL

static void check_name(const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._+-";

	if (!*name || *name == '.' || strlen(name) >= KEEP_NAME_BYTES ||
	    name[strspn(name, allowed)])
		abort();
}

/* Only what would be written is taken for a file of ours. */
static void check_file(const uint8_t *data, size_t bytes)
{
	char *name = fuzz_text(data, bytes), again[KEEP_NAME_BYTES];
	struct saved_name n;

	if (!saved_name_parse(name, &n)) {
		check_name(name);
		saved_name_format(&n, again);
		if (strcmp(name, again))
			abort();
	}
	free(name);
}

static uint64_t take(const uint8_t **data, size_t *bytes, size_t cnt)
{
	uint64_t v = 0;

	for (; cnt && *bytes; cnt--, (*bytes)--)
		v = v << 8 | *(*data)++;
	return v;
}

static void check_process(const uint8_t *data, size_t bytes)
{
	struct saved_name n = { 0 }, found;
	char name[KEEP_NAME_BYTES], words[64];

	n.pid = (pid_t)(take(&data, &bytes, 4) & INT32_MAX);
	saved_name_set_end(&n, (uint32_t)take(&data, &bytes, 4));
	if (n.reason > KEEP_GONE)
		abort();
	n.taken_epoch_ms = (int64_t)(take(&data, &bytes, 6) % (YEAR_10000_S * 1000));
	memcpy(n.comm, data, bytes < sizeof(n.comm) ? bytes : sizeof(n.comm));
	saved_name_format(&n, name);
	check_name(name);
	saved_reason_words(&n, words, sizeof(words));
	if (!*words || saved_name_parse(name, &found) || found.pid != n.pid ||
	    found.reason != n.reason || found.code != n.code ||
	    found.taken_epoch_ms != n.taken_epoch_ms)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	if (!bytes)
		return 0;
	if (data[0] % 2)
		check_process(data + 1, bytes - 1);
	else
		check_file(data + 1, bytes - 1);
	return 0;
}
