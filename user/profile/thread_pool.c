/* SPDX-License-Identifier: MIT */
/* thread_pool.c - see thread_pool.h. */
#include "profile/thread_pool.h"

#include "base/names.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Bytes of UTF-8 count as letters. */
static bool is_separator(char c)
{
	return !is_digit(c) && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
	       !((unsigned char)c & 0x80);
}

int thread_pool_name(const char *name, char *ret, size_t cap)
{
	const char *s = name;
	size_t used = 0;
	int is_pool = 0;

	while (*s) {
		size_t n = strspn(s, "0123456789");
		bool is_alone = s == name || is_separator(s[-1]);
		bool is_number = n && (!s[n] || (is_alone && is_separator(s[n])));
		size_t len = is_number || !n ? 1 : n;

		if (used + len >= cap)
			return -ENOSPC;
		memcpy(ret + used, is_number ? "*" : s, len);
		used += len;
		is_pool |= is_number;
		s += n ? n : 1;
	}
	if (!cap)
		return -ENOSPC;
	ret[used] = '\0';
	return is_pool;
}

static int put(const char *text, size_t len, char *ret, size_t cap)
{
	if (len >= cap)
		return -ENOSPC;
	memcpy(ret, text, len);
	ret[len] = '\0';
	return 0;
}

int thread_pool_name_in(const char *globs, const char *name, char *ret, size_t cap)
{
	size_t name_len = strlen(name);

	for (;; globs++) {
		size_t n = strcspn(globs, ",");

		if (n && glob_match(globs, n, name, name_len)) {
			int err = put(globs, n, ret, cap);

			return err ? err : 1;
		}
		globs += n;
		if (!*globs)
			return put(name, name_len, ret, cap);
	}
}
