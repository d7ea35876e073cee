/* SPDX-License-Identifier: MIT */
/* test_tap_steps.c - whose tap it is that is found in a process: this one, which has what a tap leaves there. */
#include "unit.h"

#include <sys/file.h>
#include <sys/mman.h>

#include "tap/tap_priv.h"

#define GAP_BYTES 5

/* The allocator's bytes: a hop, and the jump in a gap that it leads to. */
static uint8_t text[64];
static struct visit_shared shared;
static struct tap_header *header;
static int file_fd;

static void copy_patch(uint32_t i, uint8_t *at, uint8_t byte_cnt, const char *original,
		       const char *patched)
{
	struct tap_patch *p = &header->patch[i];

	*p = (struct tap_patch){ .addr = (uintptr_t)at,
				 .site_addr = (uintptr_t)text,
				 .byte_cnt = byte_cnt,
				 .is_gap = !i };
	memcpy(p->original, original, byte_cnt);
	memcpy(p->patched, patched, byte_cnt);
}

/* Nobody holds this tap, and its data has the mark. */
static int set_up(void **state)
{
	static struct tap_data data = { .mark = TAP_MAGIC };
	void *code;

	file_fd = memfd_create(TAP_NAME "0123", MFD_CLOEXEC);
	if (file_fd < 0 || ftruncate(file_fd, TAP_FILE_BYTES))
		return -1;
	code = mmap(NULL, TAP_CODE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file_fd, 0);
	if (code == MAP_FAILED)
		return -1;
	header = code;
	*header = (struct tap_header){ .magic = TAP_MAGIC,
				       .version = TAP_VERSION,
				       .header_bytes = sizeof(*header),
				       .patch_cnt = 2,
				       .data_addr = (uintptr_t)&data };
	copy_patch(0, text + 16, GAP_BYTES, "\xcc\xcc\xcc\xcc\xcc", "\xe9\x01\x02\x03\x04");
	copy_patch(1, text, 2, "\x48\x89", "\xeb\x0e");
	return 0;
}

static int clear(void)
{
	const uint64_t addr = (uintptr_t)header;
	struct tap_work w = { .old_addr = &addr, .old_cnt = 1, .mem_fd = -1, .file_fd = -1 };
	int err;

	w.pid = getpid();
	shared.result = 0;
	err = tap_step_prepare_clear(&w, &shared);
	if (!err)
		err = tap_step_clear(&w, &shared);
	if (w.mem_fd >= 0)
		close(w.mem_fd);
	return err;
}

TEST(test_cleared)
{
	memcpy(text, "\xeb\x0e", 2);
	memcpy(text + 16, "\xe9\x01\x02\x03\x04", GAP_BYTES);
	assert_int_equal(clear(), 0);
	assert_int_equal(shared.result, 1);
	assert_memory_equal(text, "\x48\x89", 2);
	assert_memory_equal(text + 16, "\xcc\xcc\xcc\xcc\xcc", GAP_BYTES);
	assert_int_equal(clear(), -EALREADY);
}

/* A tap that is somewhere else by now hops into the same gap: the earlier one's memory, which nobody holds, is not in. */
TEST(test_hop_of_another)
{
	memcpy(text, "\xeb\x0e", 2);
	memcpy(text + 16, "\xe9\x05\x06\x07\x08", GAP_BYTES);
	assert_int_equal(clear(), -EALREADY);
	assert_memory_equal(text, "\xeb\x0e", 2);
	assert_memory_equal(text + 16, "\xe9\x05\x06\x07\x08", GAP_BYTES);
}

TEST(test_held)
{
	char path[48];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file_fd);
	fd = keep_fd(open(path, O_RDONLY | O_CLOEXEC));
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_SH), 0);
	memcpy(text, "\xeb\x0e", 2);
	memcpy(text + 16, "\xe9\x01\x02\x03\x04", GAP_BYTES);
	assert_int_equal(clear(), -EBUSY);
	assert_memory_equal(text, "\xeb\x0e", 2);
}

RUN_TESTS_WITH(set_up, NULL)
