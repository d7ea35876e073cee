/* SPDX-License-Identifier: MIT */
/* test_sum.c - heaptap/sum.h: sums beyond 64 bits, compared with 128 bits. */
#include "unit.h"

#include <pthread.h>

#include "heaptap/sum.h"

static void check(const struct ht_sum *sum, unsigned __int128 truth)
{
	unsigned __int128 is = ((unsigned __int128)sum->high << HT_SUM_LOW_BITS) + sum->low;
	double value = ht_sum_value(sum, 8);

	assert_true(is == truth);
	assert_true(fabs(value - (double)truth / 256) <= value * 0x1p-50);
}

TEST(goes_beyond_64_bits)
{
	static const uint64_t summands[] = { 1,		 255,	     256,	 65535,
					     65536,	 65537,	     100 << 8,	 (1ULL << 53) + 3,
					     UINT64_MAX, 1ULL << 63, 0xffff0000, 0 };
	unsigned __int128 truth = 0;
	struct ht_sum sum = { 0 };

	for (int round = 0; round < 20000; round++)
		each_case(c, summands) {
			ht_sum_add(&sum, *c);
			truth += *c;
		}
	assert_true(truth >> 78 == 1); /* of 80 bits */
	check(&sum, truth);
}

/* The last of 2^48 summands, whose low parts were all as large as can be. */
TEST(has_room)
{
	struct ht_sum sum = { .low = ((1ULL << 48) - 1) * 0xffff,
			      .high = ((1ULL << 40) - 1) * ((1ULL << 24) - 1) };
	unsigned __int128 truth = ((unsigned __int128)sum.high << HT_SUM_LOW_BITS) + sum.low;

	ht_sum_add(&sum, (1ULL << 40) - 1);
	check(&sum, truth + (1ULL << 40) - 1);
}

TEST(merges)
{
	struct ht_sum a = { 0 }, b = { 0 };

	for (int i = 0; i < 3; i++)
		ht_sum_add(&a, UINT64_MAX);
	ht_sum_add(&b, UINT64_MAX);
	ht_sum_merge(&a, &b);
	check(&a, (unsigned __int128)UINT64_MAX * 4);
}

#define THREAD_CNT 4
#define ROUND_CNT 200000

static void *add_often(void *sum)
{
	for (int i = 0; i < ROUND_CNT; i++)
		ht_sum_add(sum, 0x1234567890abcdefULL);
	return NULL;
}

TEST(adds_from_several_threads)
{
	pthread_t thread[THREAD_CNT];
	struct ht_sum sum = { 0 };

	for (int i = 0; i < THREAD_CNT; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, add_often, &sum), 0);
	for (int i = 0; i < THREAD_CNT; i++)
		pthread_join(thread[i], NULL);
	check(&sum, (unsigned __int128)0x1234567890abcdefULL * ROUND_CNT * THREAD_CNT);
}

RUN_TESTS()
