/* SPDX-License-Identifier: MIT */
/*
 * test_jit_stacks.c - stacks through code made at run time: with a frame pointer, with nothing but its
 * own end to tell its frame, with neither; in memory that user space has not seen yet, and in memory
 * that may not be executed for the moment.
 */
#include "frames.h"

#ifdef __x86_64__
#define STUB_BYTES 64
#define AREA_BYTES 8192

/* Each calls its first argument with its second. */
static const uint8_t framed[] = {
	0x55, /* push %rbp */
	0x48, 0x89, 0xe5, /* mov %rsp, %rbp */
	0x48, 0x89, 0xf8, /* mov %rdi, %rax */
	0x48, 0x89, 0xf7, /* mov %rsi, %rdi */
	0xff, 0xd0, /* call *%rax */
	0x90, /* nop */
	0x5d, /* pop %rbp */
	0xc3, /* ret */
};
static const uint8_t small[] = {
	0x48, 0x83, 0xec, 0x08, /* sub $8, %rsp */
	0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0xff, 0xd0, /* as above */
	0x48, 0x83, 0xc4, 0x08, /* add $8, %rsp */
	0xc3, /* ret */
};
static const uint8_t opaque[] = {
	0x55, /* push %rbp */
	0xbd, 0x11, 0x47, 0,	0, /* mov $0x4711, %ebp */
	0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0xff, 0xd0, 0x90, 0x5d, 0xc3,
};
enum stub { FRAMED, SMALL, OPAQUE };

static uint8_t *area; /* in the child */

static void *(*volatile do_malloc)(size_t) = malloc;

PART(leaf)
void *alloc_leaf(size_t bytes)
{
	void *block = do_malloc(bytes);

	asm volatile("" : "+r"(block));
	return block;
}

PART(unexec)
void *alloc_while_written(size_t bytes)
{
	void *block;

	mprotect(area, AREA_BYTES, PROT_READ | PROT_WRITE);
	block = do_malloc(bytes);
	mprotect(area, AREA_BYTES, PROT_READ | PROT_EXEC);
	return block;
}

static void step_map(volatile uint64_t *out)
{
	area = mmap(NULL, AREA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(area + FRAMED * STUB_BYTES, framed, sizeof(framed));
	memcpy(area + SMALL * STUB_BYTES, small, sizeof(small));
	memcpy(area + OPAQUE * STUB_BYTES, opaque, sizeof(opaque));
	mprotect(area, AREA_BYTES, PROT_READ | PROT_EXEC);
	out[2] = (uintptr_t)area;
}

static void step_map_memfd(volatile uint64_t *out)
{
	int fd = memfd_create("code", 0);
	uint8_t *written;

	assert_int_equal(ftruncate(fd, AREA_BYTES), 0);
	written = mmap(NULL, AREA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	memcpy(written + FRAMED * STUB_BYTES, framed, sizeof(framed));
	memcpy(written + SMALL * STUB_BYTES, small, sizeof(small));
	area = mmap(NULL, AREA_BYTES, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	close(fd);
	out[2] = (uintptr_t)area;
}

/* Calls its first argument with the other two, and has something else than a frame pointer in rbp. */
void *call_odd(uint8_t *stub, void *(*fn)(size_t), size_t arg);
extern const char __start_part_odd[], __stop_part_odd[];
__asm__(".pushsection part_odd, \"ax\"\n"
	".globl call_odd\n"
	".type call_odd, @function\n"
	"call_odd:\n"
	"	.cfi_startproc\n"
	"	push %rbp\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset %rbp, -16\n"
	"	mov $0x815, %ebp\n"
	"	mov %rdi, %rax\n"
	"	mov %rsi, %rdi\n"
	"	mov %rdx, %rsi\n"
	"	call *%rax\n"
	"	pop %rbp\n"
	"	.cfi_def_cfa_offset 8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size call_odd, .-call_odd\n"
	".popsection\n");

/* out[0]: which, out[1]: size, out[3]: while the code may not be executed */
static void step_call(volatile uint64_t *out)
{
	out[4] = (uintptr_t)call_odd(area + out[0] * STUB_BYTES,
				     out[3] ? alloc_while_written : alloc_leaf, out[1]);
}

static struct ht_stack call(struct rig *rig, enum stub stub, uint64_t size_bytes)
{
	rig->out[0] = stub;
	rig->out[1] = size_bytes;
	rig_do(rig, step_call);
	return frames_of(rig, size_bytes);
}

/* The frame after the leaf is in the stub, and is that of a "[jit]", or 0 of nobody. */
static void check_frame(struct rig *rig, const struct ht_stack *stack, enum stub stub,
			bool is_known)
{
	const struct track_file *file;
	uint64_t addr = rig->out[2] + stub * STUB_BYTES;
	uint32_t i = 2; /* malloc, alloc_leaf() */

	assert_true(stack->frame_cnt > i);
	assert_in_range(stack->frame[i] & HT_FRAME_VADDR_MASK, addr, addr + STUB_BYTES - 1);
	file = track_files_by_id(rig->files, stack->frame[i] >> HT_FRAME_VADDR_BITS);
	assert_int_equal(file != NULL, is_known);
	if (is_known)
		assert_true(file->is_jit);
}

static void check_whole(struct rig *rig, const struct ht_stack *stack, enum stub stub,
			bool is_known)
{
	int leaf, caller;

	assert_int_equal(stack->end, HT_END_COMPLETE);
	check_frame(rig, stack, stub, is_known);
	assert_int_equal(frames_in(rig, stack, PART_RANGE(leaf), &leaf), 1);
	assert_int_equal(frames_in(rig, stack, PART_RANGE(odd), &caller), 1);
	assert_int_equal(leaf, 1);
	assert_int_equal(caller, 3);
}

TEST(test_frames)
{
	struct kernel_features features;
	struct ht_stack stack;
	struct rig *rig;
	uint64_t asked_cnt;

	assert_int_equal(kernel_features_probe(&features), 0);
	rig = rig_open(rig_mode(state), 1, 4096, 1024);
	rig_do(rig, step_map);
	/* Nobody has told user space: the walk asks the kernel, and user space looks then. */
	stack = call(rig, FRAMED, 1009);
	if (features.find_vma)
		check_whole(rig, &stack, FRAMED, false);
	else
		assert_int_equal(stack.end, HT_END_NO_MAPPING);
	rig_settle(rig);
	asked_cnt = rig_stat(rig, HT_STAT_FIND_VMA);
	stack = call(rig, FRAMED, 1013);
	check_whole(rig, &stack, FRAMED, true);
	stack = call(rig, SMALL, 1019);
	check_whole(rig, &stack, SMALL, true);
	assert_int_equal(rig_stat(rig, HT_STAT_FIND_VMA), asked_cnt);

	stack = call(rig, OPAQUE, 1021);
	assert_int_equal(stack.end, HT_END_JIT);
	assert_int_equal(stack.frame_cnt, 3);
	check_frame(rig, &stack, OPAQUE, true);
	assert_int_equal(rig_stat(rig, HT_STAT_END_JIT), 1);
}

/* Whoever looks while the code is written sees no code there. */
TEST(test_written)
{
	struct ht_stack stack;
	struct rig *rig = rig_open(rig_mode(state), 1, 4096, 1024);

	rig_do(rig, step_map);
	rig_settle_mapped(rig);
	rig->out[3] = 1;
	stack = call(rig, FRAMED, 1009);
	assert_int_equal(stack.end, HT_END_COMPLETE);
	check_frame(rig, &stack, FRAMED, true);
	assert_int_equal(frames_in(rig, &stack, PART_RANGE(unexec), NULL), 1);
}

TEST(test_memfd)
{
	struct ht_stack stack;
	struct rig *rig = rig_open(rig_mode(state), 1, 4096, 1024);

	rig_do(rig, step_map_memfd);
	rig_settle_mapped(rig);
	stack = call(rig, FRAMED, 1009);
	check_whole(rig, &stack, FRAMED, true);
	stack = call(rig, SMALL, 1013);
	check_whole(rig, &stack, SMALL, true);
}

RUN_RIG_TESTS()
#else
int main(void)
{
	return 0;
}
#endif
