/* SPDX-License-Identifier: MIT */
/*
 * test_leftovers.c - which bytes of a process are breakpoints that a profiler left: in the code of an allocator that is
 * otherwise its file's, and not in a patch of somebody else.
 */
#include "unit.h"

#include <sys/mman.h>

#include "alloc/allocators.h"
#include "proc/facts.h"
#include "track/file.h"
#include "track/probes.h"

#define FILE_BYTES 65536
#define VADDR 0x401000
#define FN_OFF 1000
#define FN_BYTES 600
#define PROBE_OFF (FN_OFF + 4)

static uint8_t *memory;
static struct track_file file;
static struct alloc_file alloc;
static struct proc_map map;

/* Elsewhere breakpoints are whole instructions. */
static void only_x86(void)
{
#ifndef __x86_64__
	skip();
#endif
}

static int set_up(void **state)
{
	struct alloc_site site = { .fn_vaddr = VADDR + FN_OFF,
				   .fn_bytes = FN_BYTES,
				   .probe_off = PROBE_OFF };
	struct track_segment segment = { .off = 0, .bytes = FILE_BYTES, .vaddr = VADDR };
	uint8_t bytes[FILE_BYTES];

	for (size_t i = 0; i < FILE_BYTES; i++)
		bytes[i] = (uint8_t)(i % 199); /* no breakpoint */
	file.fd = memfd_create("leftovers", MFD_CLOEXEC);
	assert_int_equal(write(file.fd, bytes, sizeof(bytes)), sizeof(bytes));
	memory = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, file.fd, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	map = (struct proc_map){ .start_addr = (uint64_t)(uintptr_t)memory,
				 .end_addr = (uint64_t)(uintptr_t)memory + FILE_BYTES };
	assert_int_equal(vec_push(&alloc.sites, site), 0);
	assert_int_equal(vec_push(&file.exec, segment), 0);
	file.alloc = &alloc;
	return 0;
}

static int tear_down(void **state)
{
	munmap(memory, FILE_BYTES);
	close(file.fd);
	vec_release(&alloc.sites);
	vec_release(&file.exec);
	return 0;
}

/* The number of them; the first one's offset in *off. */
static size_t found(uint64_t *off)
{
	struct leftovers l = { 0 };
	size_t cnt;

	assert_int_equal(leftovers_find(NULL, getpid(), &map, &file, &l), 0);
	cnt = l.sites.cnt;
	*off = cnt ? l.sites.data[0].off : 0;
	vec_release(&l.sites);
	return cnt;
}

TEST_WITH(test_breakpoints, set_up, tear_down)
{
	uint64_t off;

	only_x86();
	assert_int_equal(found(&off), 0);
	memory[PROBE_OFF] = 0xcc;
	assert_int_equal(found(&off), 1);
	assert_int_equal(off, PROBE_OFF);
	/* beside each other, at the function's end, and not behind it */
	memory[PROBE_OFF + 3] = memory[FN_OFF + FN_BYTES - 1] = memory[FN_OFF + FN_BYTES] = 0xcc;
	assert_int_equal(found(&off), 3);
}

/* A jump over 5 bytes, each of which may have the value of a breakpoint: detaching there would break it. */
TEST_WITH(test_patches, set_up, tear_down)
{
	static const size_t places[] = { FN_OFF, PROBE_OFF - 4, PROBE_OFF - 2, PROBE_OFF,
					 FN_OFF + FN_BYTES - 5 };
	uint64_t off;

	only_x86();
	each_case(c, places) {
		for (int at = 1; at < 5; at++) {
			uint8_t before[5], *jump = memory + *c;

			memcpy(before, jump, sizeof(before));
			memcpy(jump, "\xe9\x01\x02\x03\x04", sizeof(before));
			jump[at] = 0xcc;
			assert_int_equal(found(&off), 0);
			/* one far from it still is one */
			memory[FN_OFF + 300] = 0xcc;
			assert_int_equal(found(&off), 1);
			assert_int_equal(off, FN_OFF + 300);
			memory[FN_OFF + 300] = (FN_OFF + 300) % 199;
			memcpy(jump, before, sizeof(before));
		}
	}
}

/* Functions are searched to their ends wherever they lie: what is near is read together, and what is far is not. */
TEST_WITH(test_places, set_up, tear_down)
{
	static const struct {
		uint64_t off, bytes;
		size_t cnt; /* of breakpoints that are found */
	} functions[] = {
		{ 60000, 20, 2 },
		{ FN_OFF + FN_BYTES + 5, 300, 2 },
		{ 3000, 3000, 2 },
		{ 6500, 4000, 2 },
		{ 11000, 4000, 2 },
		{ 15500, 4000, 2 },
		{ 24000, 9000, 1 }, /* only its beginning */
		{ FILE_BYTES - 7, 7, 2 },
		{ FILE_BYTES - 50, 100, 1 }, /* not all of it is mapped */
		{ FILE_BYTES + 300, 50, 0 },
	};
	struct alloc_site site;
	size_t cnt = 0;
	uint64_t off;

	only_x86();
	each_case(c, functions) {
		site = (struct alloc_site){ .fn_vaddr = VADDR + c->off,
					    .fn_bytes = c->bytes,
					    .probe_off = c->off };
		assert_int_equal(vec_push(&alloc.sites, site), 0);
	}
	assert_int_equal(found(&off), 0);
	each_case(c, functions) {
		if (c->off >= FILE_BYTES)
			continue;
		memory[c->off] = 0xcc;
		if (c->off + c->bytes <= FILE_BYTES)
			memory[c->off + c->bytes - 1] = 0xcc;
		cnt += c->cnt;
		assert_int_equal(found(&off), cnt);
	}
	assert_int_equal(off, FN_OFF + FN_BYTES + 5);
	memory[FN_OFF - 1] = memory[2500] = memory[40000] = 0xcc; /* in no function */
	assert_int_equal(found(&off), cnt);
}

RUN_TESTS()
