/* SPDX-License-Identifier: MIT */
/*
 * test_map_delete.c - many entries deleted at once: those that are there, each told once, and whatever is not there
 * stops nothing.
 */
#include "../unit/unit.h"

#include <bpf/bpf.h>

#include "kernel/map_walk.h"

static int need_root(void **state)
{
	if (geteuid())
		skip();
	return 0;
}

#define ENTRY_CNT 5000

struct told {
	uint32_t cnt[ENTRY_CNT];
};

static void on_deleted(void *ctx, const void *key)
{
	struct told *told = ctx;
	uint64_t number;

	memcpy(&number, key, sizeof(number));
	assert_true(number < ENTRY_CNT);
	told->cnt[number]++;
}

static int make_map(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_NO_PREALLOC);
	int fd = bpf_map_create(BPF_MAP_TYPE_HASH, "delete", sizeof(uint64_t), sizeof(uint32_t),
				ENTRY_CNT, &opts);

	assert_true(fd >= 0);
	return fd;
}

/* Every third key has no entry: the first of all, the last, and one after the other. */
static bool is_there(uint64_t number)
{
	return number % 3 && number != ENTRY_CNT - 1 && number != ENTRY_CNT - 2;
}

TEST_WITH(test_some, need_root, NULL)
{
	static uint64_t keys[ENTRY_CNT];
	static struct told told;
	uint32_t value = 7;
	int fd = make_map();

	for (uint64_t i = 0; i < ENTRY_CNT; i++) {
		keys[i] = i;
		if (is_there(i))
			assert_int_equal(bpf_map_update_elem(fd, &i, &value, BPF_ANY), 0);
	}
	/* The second half stays. */
	assert_int_equal(map_delete_keys(fd, keys, sizeof(*keys), ENTRY_CNT / 2, on_deleted, &told),
			 0);
	for (uint64_t i = 0; i < ENTRY_CNT; i++) {
		bool is_half = i < ENTRY_CNT / 2;

		assert_int_equal(told.cnt[i], is_half && is_there(i));
		assert_int_equal(!bpf_map_lookup_elem(fd, &i, &value), !is_half && is_there(i));
	}
	assert_int_equal(map_delete_keys(fd, keys, sizeof(*keys), ENTRY_CNT, on_deleted, &told), 0);
	for (uint64_t i = 0; i < ENTRY_CNT; i++) {
		assert_int_equal(told.cnt[i], is_there(i));
		assert_int_not_equal(bpf_map_lookup_elem(fd, &i, &value), 0);
	}
	close(fd);
}

TEST_WITH(test_none, need_root, NULL)
{
	uint64_t keys[2] = { 1, 2 };
	struct told told = { 0 };
	int fd = make_map();

	assert_int_equal(map_delete_keys(fd, keys, sizeof(*keys), 0, on_deleted, &told), 0);
	assert_int_equal(map_delete_keys(fd, keys, sizeof(*keys), 2, on_deleted, &told), 0);
	close(fd);
	assert_int_equal(map_delete_keys(-1, keys, sizeof(*keys), 2, on_deleted, &told), -EBADF);
}

RUN_TESTS()
