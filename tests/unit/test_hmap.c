/* SPDX-License-Identifier: MIT */
/* test_hmap.c - the hash map against a plain array, through growth and deletion. */
#include "unit.h"

#include "base/hmap.h"
#include "met_keys.h"
#include "random.h"

#define KEY_CNT 512

TEST(test_empty)
{
	struct hmap m;
	const void *key;
	uint64_t k = 1, val;
	size_t pos = 0;

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

TEST(test_random_operations)
{
	uint64_t present[KEY_CNT] = { 0 }, seed = 4711;
	struct hmap m;

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

TEST(test_find_or_add)
{
	struct hmap m;
	uint64_t val, k;

	hmap_init(&m, sizeof(k));
	for (k = 0; k < 100; k++) {
		assert_int_equal(hmap_add(&m, &k, k + 1000, &val), 0);
		assert_int_equal(val, k + 1000);
		assert_int_equal(*hmap_get(&m, &k), k + 1000);
	}
	for (k = 0; k < 100; k++) {
		assert_int_equal(hmap_add(&m, &k, 7, &val), 0);
		assert_int_equal(val, k + 1000);
		assert_int_equal(*hmap_get(&m, &k), k + 1000);
	}
	assert_int_equal(m.cnt, 100);
	hmap_release(&m);
}

struct record {
	uint64_t key, zero;
	bool *is_gone;
	size_t asked_cnt;
};

static bool is_third(void *record, const void *cnt)
{
	struct record *r = record;

	r->asked_cnt++;
	*r->is_gone = r->key % *(const uint64_t *)cnt != 0;
	return !*r->is_gone;
}

/* Many sizes, so that records are moved over the end of the table when others go. */
TEST(test_records)
{
	const uint64_t third = 3;

	for (uint64_t cnt = 0; cnt < KEY_CNT; cnt++) {
		bool is_gone[KEY_CNT] = { false };
		struct hmap m;

		hmap_init(&m, sizeof(uint64_t));
		for (uint64_t k = 0; k < cnt; k++) {
			struct record *r = hmap_add_record(&m, &k, sizeof(*r));

			assert_non_null(r);
			assert_int_equal(r->zero, 0);
			*r = (struct record){ .key = k, .is_gone = &is_gone[k] };
		}
		hmap_keep_records(&m, is_third, &third);
		assert_int_equal(m.cnt, (cnt + 2) / 3);
		for (uint64_t k = 0; k < KEY_CNT; k++) {
			const struct record *r = hmap_record(&m, &k);

			assert_int_equal(is_gone[k], k < cnt && k % 3);
			assert_int_equal(!!r, k < cnt && k % 3 == 0);
			assert_true(!r || (r->key == k && r->asked_cnt == 1));
		}
		hmap_keep_records(&m, NULL, NULL); /* LeakSanitizer looks */
		assert_int_equal(m.cnt, 0);
		hmap_release(&m);
	}
}

TEST(test_odd_key_sizes)
{
	char key[24];

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

/* The reference implementation's answers for the key 00 01 .. 0f and the bytes 00 01 02 .. */
TEST(test_siphash)
{
	static const struct {
		size_t n;
		uint64_t hash;
	} cases[] = { { 0, 0xabac0158050fc4dcULL },  { 1, 0xc9f49bf37d57ca93ULL },
		      { 7, 0xd3927d989bb11140ULL },  { 8, 0x369095118d299a8eULL },
		      { 15, 0xd320d86d2a519956ULL }, { 63, 0x9d199062b7bbb3a8ULL } };
	const uint64_t key[2] = { 0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL };
	uint8_t bytes[64];

	for (uint8_t i = 0; i < 64; i++)
		bytes[i] = i;
	each_case(c, cases)
		assert_true(siphash13(key, bytes, c->n) == c->hash);
	assert_true(keyed_hash(bytes, 8) == keyed_hash(bytes, 8));
	assert_true(keyed_hash(bytes, 8) != siphash13((uint64_t[2]){ 0, 0 }, bytes, 8));
}

#define MET_CNT 40000

static double put_seconds(bool is_met)
{
	double begin_s = cpu_seconds();
	struct hmap m;

	hmap_init(&m, sizeof(uint64_t));
	for (uint64_t i = 1; i <= MET_CNT; i++) {
		uint64_t key = is_met ? met_word(i, 8 * 0x9e3779b97f4a7c15ULL) : i;

		if (is_met)
			assert_true(!(hash_bytes(&key, 8) & ((1 << MET_ZERO_BITS) - 1)));
		assert_int_equal(hmap_put(&m, &key, i), 0);
	}
	assert_int_equal(m.cnt, MET_CNT);
	hmap_release(&m);
	return cpu_seconds() - begin_s;
}

/* With a hash that is known, these keys took 100 times as long. */
TEST(test_hostile_keys)
{
	double plain_s = put_seconds(false), met_s = put_seconds(true);

	print_message("# %.3f s, others %.3f s\n", met_s, plain_s);
	assert_true(met_s < 10 * plain_s + 0.1);
}

RUN_TESTS()
