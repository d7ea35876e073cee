/* SPDX-License-Identifier: MIT */
/* test_hmap.c - the hash map against a plain array, through growth and deletion. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/hmap.h"

#define KEY_CNT 512

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static void test_empty(void **state)
{
	struct hmap m;
	const void *key;
	uint64_t k = 1, val;
	size_t pos = 0;

	(void)state;
	hmap_init(&m, sizeof(k));
	assert_null(hmap_get(&m, &k));
	assert_false(hmap_del(&m, &k));
	assert_false(hmap_next(&m, &pos, &key, &val));
	hmap_release(&m);
}

/* present[k] is val + 1, or 0. */
static void check_all(const struct hmap *m, const uint64_t *present)
{
	size_t pos = 0, seen = 0, cnt = 0;
	const void *key;
	uint64_t val, k;

	for (k = 0; k < KEY_CNT; k++) {
		uint64_t *got = hmap_get(m, &k);

		assert_int_equal(!!got, !!present[k]);
		if (got)
			assert_int_equal(*got + 1, present[k]);
		cnt += !!present[k];
	}
	assert_int_equal(m->cnt, cnt);
	while (hmap_next(m, &pos, &key, &val)) {
		memcpy(&k, key, sizeof(k));
		assert_int_equal(present[k], val + 1);
		seen++;
	}
	assert_int_equal(seen, cnt);
}

static void test_random_operations(void **state)
{
	uint64_t present[KEY_CNT] = { 0 }, seed = 4711;
	struct hmap m;

	(void)state;
	hmap_init(&m, sizeof(uint64_t));
	for (int i = 0; i < 40000; i++) {
		uint64_t r = next_random(&seed), k = r % KEY_CNT;

		/* phases in which it grows and in which it empties */
		if ((r >> 32) % 100 < (i / 5000 % 2 ? 25 : 75)) {
			assert_int_equal(hmap_put(&m, &k, i), 0);
			present[k] = i + 1;
		} else {
			assert_int_equal(hmap_del(&m, &k), !!present[k]);
			present[k] = 0;
		}
		if (i % 500 == 0)
			check_all(&m, present);
	}
	check_all(&m, present);
	hmap_release(&m);
	assert_int_equal(m.cnt, 0);
}

static void test_odd_key_sizes(void **state)
{
	char key[24];

	(void)state;
	for (size_t bytes = 1; bytes <= sizeof(key); bytes++) {
		struct hmap m;

		hmap_init(&m, bytes);
		for (int i = 0; i < 100; i++) {
			memset(key, 'a', sizeof(key));
			key[bytes - 1] = i;
			assert_int_equal(hmap_put(&m, key, i), 0);
		}
		assert_int_equal(m.cnt, 100);
		key[bytes - 1] = 42;
		assert_int_equal(*hmap_get(&m, key), 42);
		hmap_release(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_random_operations),
		cmocka_unit_test(test_odd_key_sizes),
	};

	return cmocka_run_group_tests_name("hmap", tests, NULL, NULL);
}
