/* SPDX-License-Identifier: MIT */
/*
 * frames.h - what a recorded stack shows: is this function of the test in it, and where?
 *
 * A function that is to be found is put into a section of its own, whose bounds the linker knows.
 */
#ifndef HT_TESTS_BPF_FRAMES_H
#define HT_TESTS_BPF_FRAMES_H

#include <link.h>

#include "rig.h"

/* PART(name) int f(void): f is found as part `name`; functions of one part are one thing. */
#define PART(name)                               \
	extern const char __start_part_##name[]; \
	extern const char __stop_part_##name[];  \
	static __attribute__((noinline, used, section("part_" #name)))
#define PART_RANGE(name) __start_part_##name, __stop_part_##name

static inline int frames_find_bias(struct dl_phdr_info *info, size_t bytes, void *ctx)
{
	*(uintptr_t *)ctx = info->dlpi_addr; /* the program itself comes first */
	return 1;
}

static inline uint32_t frames_own_file(const struct rig *rig)
{
	char exe[512] = "";

	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	for (size_t i = 0; i < track_files_cnt(rig->files); i++) {
		const struct track_file *file = track_files_at(rig->files, i);

		if (file && !strcmp(file->path, exe))
			return file->id;
	}
	fail_msg("%s is not among the files", exe);
	return 0;
}

/* Frames of the stack that are in code of this program between start and end; ret_first (may be
 * NULL): the one nearest to the leaf, or -1. */
static inline uint32_t frames_in(const struct rig *rig, const struct ht_stack *stack,
				 const char *start, const char *end, int *ret_first)
{
	const uint32_t file_id = frames_own_file(rig);
	uintptr_t bias = 0;
	uint32_t cnt = 0;

	dl_iterate_phdr(frames_find_bias, &bias);
	if (ret_first)
		*ret_first = -1;
	for (uint32_t i = 0; i < stack->frame_cnt; i++) {
		uint64_t vaddr = stack->frame[i] & HT_FRAME_VADDR_MASK;

		if (stack->frame[i] >> HT_FRAME_VADDR_BITS != file_id ||
		    vaddr < (uintptr_t)start - bias || vaddr >= (uintptr_t)end - bias)
			continue;
		if (ret_first && !cnt)
			*ret_first = (int)i;
		cnt++;
	}
	return cnt;
}

struct frames_wanted {
	struct rig *rig;
	uint64_t size_bytes;
	uint32_t found_cnt;
	struct ht_live live;
};

static inline int frames_on_live(void *ctx, const struct ht_live_key *k, const struct ht_live *v)
{
	struct frames_wanted *wanted = ctx;

	if (v->size_bytes != wanted->size_bytes)
		return 0;
	wanted->found_cnt++;
	wanted->live = *v;
	return 0;
}

/* The stack of the only outstanding block of this size. */
static inline struct ht_stack frames_of(struct rig *rig, uint64_t size_bytes)
{
	struct frames_wanted wanted = { .rig = rig, .size_bytes = size_bytes };
	struct ht_stack stack;

	assert_int_equal(engine_each_live(rig->engine, frames_on_live, &wanted), 0);
	assert_int_equal(wanted.found_cnt, 1);
	assert_int_equal(engine_get_stack(rig->engine, wanted.live.stack_id, &stack), 0);
	return stack;
}

#endif
