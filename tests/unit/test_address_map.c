/* SPDX-License-Identifier: MIT */
/* test_address_map.c - run-time addresses of a process, and places in its files. */
#include "unit.h"

#include "alloc/allocators.h"
#include "proc/process.h"
#include "record/make_priv.h"
#include "track/files.h"
#include "track/policy.h"

__attribute__((noinline)) static void a_function(void)
{
	__asm__ volatile("");
}

static struct track_files *own_files(void)
{
	const struct file_user user = { getpid(), getpid(), getuid(), NULL };
	static const struct track_policy policy;
	struct track_files *files;
	struct track_file *file;
	struct proc_maps maps;
	const struct proc_map *m;

	assert_int_equal(track_files_new(NULL, &policy, &files), 0);
	assert_int_equal(proc_maps_read(NULL, getpid(), 0, &maps), 0);
	vec_each(&maps.maps, m)
		if (m->is_exec && m->start_addr >> 63 == 0)
			assert_int_equal(track_files_get(files, &user, m, &file), 0);
	proc_maps_release(&maps);
	return files;
}

TEST(test_own)
{
	struct track_files *files = own_files();
	uint64_t addrs[] = { (uintptr_t)a_function, (uintptr_t)getppid }, vaddr;
	const struct track_file *file, *seen = NULL;
	struct address_map a;

	assert_int_equal(address_map_read(NULL, files, getpid(), &a), 0);
	for (size_t i = 0; i < 2; i++) {
		file = address_map_place(&a, addrs[i], &vaddr);
		assert_non_null(file);
		assert_true(file != seen);
		assert_true(vaddr < addrs[i]);
		assert_true(address_map_addr(&a, file, vaddr) == addrs[i]);
		assert_non_null(hmap_get(&a.bias_by_file, &file->id));
		seen = file;
	}
	/* No code, no place. */
	assert_null(address_map_place(&a, (uintptr_t)&vaddr, &vaddr));
	assert_null(address_map_place(&a, 0x100, &vaddr));
	assert_null(address_map_place(&a, UINT64_MAX, &vaddr));
	assert_true(vaddr == UINT64_MAX);
	assert_true(a.maps.maps.cnt >= 2);
	address_map_release(&a);
	track_files_free(files);
}

/* A file that is not mapped any more: its places are told apart, and found again. */
TEST(test_not_mapped)
{
	struct track_files *files = own_files();
	const struct track_file *file = NULL;
	struct address_map a = { .files = files }; /* without mappings */
	uint64_t addr, vaddr;

	for (size_t i = 0; i < track_files_cnt(files) && !file; i++)
		file = track_files_at(files, i);
	assert_non_null(file);
	hmap_init(&a.bias_by_file, sizeof(uint32_t));
	addr = address_map_addr(&a, file, 0x1234);
	assert_true(addr >> 47); /* of no program */
	assert_false(addr >> 63);
	assert_ptr_equal(address_map_place(&a, addr, &vaddr), file);
	assert_int_equal(vaddr, 0x1234);
	assert_true(address_map_addr(&a, file, UINT64_MAX) == 0);
	assert_null(address_map_place(&a, 0x7fffULL << 48, &vaddr));
	assert_null(hmap_get(&a.bias_by_file, &file->id));
	address_map_release(&a);
	track_files_free(files);
}

TEST(test_no_such_process)
{
	struct address_map a;

	assert_int_equal(address_map_read(NULL, NULL, INT32_MAX, &a), -ESRCH);
	address_map_release(&a);
}

RUN_TESTS()
