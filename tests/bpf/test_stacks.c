/* SPDX-License-Identifier: MIT */
/*
 * test_stacks.c - where a stack ends, and why: deep recursion, code without unwind information,
 * a library that user space has not seen yet.
 */
#include "frames.h"

#include <dlfcn.h>

static void *(*volatile do_malloc)(size_t) = malloc;

/* Each level is one frame: no tail call, no loop. */
PART(recursion)
void *alloc_below(uint64_t depth, size_t bytes)
{
	void *block;

	asm volatile("" : "+r"(depth)); /* no clones for small depths */
	block = depth ? alloc_below(depth - 1, bytes) : do_malloc(bytes);
	asm volatile("" : "+r"(block));
	return block;
}

/* out[0]: depth, out[1]: size */
PART(step)
void step_deep(volatile uint64_t *out)
{
	out[2] = (uintptr_t)alloc_below(out[0], out[1]);
	asm volatile("");
}

static struct ht_stack alloc_deep(struct rig *rig, uint64_t depth, uint64_t size_bytes)
{
	rig->out[0] = depth;
	rig->out[1] = size_bytes;
	rig_do(rig, step_deep);
	return frames_of(rig, size_bytes);
}

TEST(test_depths)
{
	static const uint32_t frame_cnts[] = { 50, 126, 127, 128, 200 };
	struct ht_stack stack, base, one;
	uint64_t deep_cnt = 0, frame_cnt;
	struct rig *rig = rig_open(rig_mode(state), 1, 4096, 1024);

	base = alloc_deep(rig, 0, 1001);
	one = alloc_deep(rig, 1, 1002);
	assert_int_equal(base.end, HT_END_COMPLETE);
	assert_int_equal(one.frame_cnt, base.frame_cnt + 1);
	assert_int_equal(frames_in(rig, &base, PART_RANGE(recursion), NULL), 1);
	frame_cnt = base.frame_cnt + one.frame_cnt;
	for (size_t i = 0; i < sizeof(frame_cnts) / sizeof(*frame_cnts); i++) {
		uint32_t depth = frame_cnts[i] - base.frame_cnt;
		uint32_t own_cnt = depth + 1 < HT_FRAMES_CAP ? depth + 1 : HT_FRAMES_CAP - 1;
		bool is_cut = frame_cnts[i] > HT_FRAMES_CAP;

		stack = alloc_deep(rig, depth, 1003 + i);
		assert_int_equal(stack.end, is_cut ? HT_END_TOO_DEEP : HT_END_COMPLETE);
		assert_int_equal(stack.frame_cnt, is_cut ? HT_FRAMES_CAP : frame_cnts[i]);
		/* The leaf's end is what is kept: malloc, the last call of the recursion... */
		assert_int_equal(stack.frame[0], base.frame[0]);
		assert_int_equal(stack.frame[1], base.frame[1]);
		assert_int_equal(frames_in(rig, &stack, PART_RANGE(recursion), NULL), own_cnt);
		assert_int_equal(frames_in(rig, &stack, PART_RANGE(step), NULL),
				 own_cnt == depth + 1);
		/* ... and its other end is the same for all that reach it. */
		if (!is_cut)
			assert_memory_equal(stack.frame + depth + 2, base.frame + 2,
					    (base.frame_cnt - 2) * sizeof(*base.frame));
		deep_cnt += is_cut;
		frame_cnt += stack.frame_cnt;
	}
	assert_int_equal(rig_stat(rig, HT_STAT_END_TOO_DEEP), deep_cnt);
	assert_int_equal(rig_stat(rig, HT_STAT_END_COMPLETE), 2 + 5 - deep_cnt);
	assert_int_equal(rig_stat(rig, HT_STAT_FRAMES), frame_cnt);
}

#ifdef __x86_64__
/*
 * Functions without unwind information, which call fn(arg). The rows of the first are found by
 * following its instructions (elf/unwind_scan.c). The next two change rsp in a way that cannot be
 * followed: one has a frame pointer (made in two steps, which the scan does not recognise, or there
 * would be a row), the next has something else in rbp. The last puts arguments below its return
 * address, as the code in V8 that calls C++ does: only its frame pointer is right then.
 */
void *call_plain(void *(*fn)(size_t), size_t arg);
void *call_framed(void *(*fn)(size_t), size_t arg);
void *call_opaque(void *(*fn)(size_t), size_t arg);
void *call_shuffled(void *(*fn)(size_t), size_t arg);
extern const char end_of_no_cfi[];
__asm__(".text\n"
	".p2align 4\n"
	".globl call_plain, call_framed, call_opaque, call_shuffled, end_of_no_cfi\n"
	".type call_plain, @function\n"
	"call_plain:\n"
	"	push %rbp\n"
	"	mov $0x4711, %ebp\n"
	"	sub $32, %rsp\n"
	"	mov %rdi, %rax\n"
	"	mov %rsi, %rdi\n"
	"	call *%rax\n"
	"	add $32, %rsp\n"
	"	pop %rbp\n"
	"	ret\n"
	".size call_plain, .-call_plain\n"
	".type call_framed, @function\n"
	"call_framed:\n"
	"	push %rbp\n"
	"	mov %rsp, %r10\n"
	"	mov %r10, %rbp\n"
	"	mov $32, %eax\n"
	"	sub %rax, %rsp\n"
	"	mov %rdi, %rax\n"
	"	mov %rsi, %rdi\n"
	"	call *%rax\n"
	"	mov %rbp, %rsp\n"
	"	pop %rbp\n"
	"	ret\n"
	".size call_framed, .-call_framed\n"
	".type call_opaque, @function\n"
	"call_opaque:\n"
	"	push %rbp\n"
	"	mov $0x4711, %ebp\n"
	"	mov $32, %eax\n"
	"	sub %rax, %rsp\n"
	"	mov %rdi, %rax\n"
	"	mov %rsi, %rdi\n"
	"	call *%rax\n"
	"	add $32, %rsp\n"
	"	pop %rbp\n"
	"	ret\n"
	".size call_opaque, .-call_opaque\n"
	".type call_shuffled, @function\n"
	"call_shuffled:\n"
	"	pop %rax\n"
	"	push $1\n"
	"	push $2\n"
	"	push %rax\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	mov %rdi, %rax\n"
	"	mov %rsi, %rdi\n"
	"	call *%rax\n"
	"	leave\n"
	"	ret $16\n"
	".size call_shuffled, .-call_shuffled\n"
	"end_of_no_cfi:\n");
#define PLAIN (const char *)call_plain, (const char *)call_framed
#define FRAMED (const char *)call_framed, (const char *)call_opaque
#define OPAQUE (const char *)call_opaque, (const char *)call_shuffled
#define SHUFFLED (const char *)call_shuffled, end_of_no_cfi

PART(leaf)
void *alloc_leaf(size_t bytes)
{
	void *block = do_malloc(bytes);

	asm volatile("" : "+r"(block));
	return block;
}

/* The link that is followed is the caller's rbp: it must be a frame pointer, too. */
PART(caller)
void step_no_cfi(volatile uint64_t *out)
{
	asm volatile("" : : "r"(__builtin_frame_address(0))); /* so there is one */
	out[0] = (uintptr_t)call_plain(alloc_leaf, 1009);
	out[1] = (uintptr_t)call_framed(alloc_leaf, 1013);
	out[2] = (uintptr_t)call_opaque(alloc_leaf, 1019);
	out[3] = (uintptr_t)call_shuffled(alloc_leaf, 1021);
}

/* Leaf, the function, its caller, and so on to the end. */
static void check_no_cfi(struct rig *rig, uint64_t size_bytes, const char *start, const char *end)
{
	struct ht_stack stack = frames_of(rig, size_bytes);
	int leaf, inner, caller;

	assert_int_equal(stack.end, HT_END_COMPLETE);
	assert_int_equal(frames_in(rig, &stack, PART_RANGE(leaf), &leaf), 1);
	assert_int_equal(frames_in(rig, &stack, start, end, &inner), 1);
	assert_int_equal(frames_in(rig, &stack, PART_RANGE(caller), &caller), 1);
	assert_int_equal(inner, leaf + 1);
	assert_int_equal(caller, inner + 1);
}

TEST(test_no_cfi)
{
	struct ht_stack cut;
	int opaque;
	struct rig *rig = rig_open(rig_mode(state), 1, 4096, 1024);

	rig_do(rig, step_no_cfi);
	check_no_cfi(rig, 1009, PLAIN);
	check_no_cfi(rig, 1013, FRAMED);
	check_no_cfi(rig, 1021, SHUFFLED);
	assert_int_equal(rig_stat(rig, HT_STAT_FRAMES_FP), 2);

	/* Nothing to follow: the stack is cut there and says so. */
	cut = frames_of(rig, 1019);
	assert_int_equal(cut.end, HT_END_NO_ROW);
	assert_int_equal(frames_in(rig, &cut, OPAQUE, &opaque), 1);
	assert_int_equal(opaque, cut.frame_cnt - 1);
	assert_int_equal(rig_stat(rig, HT_STAT_END_NO_ROW), 1);
	assert_int_equal(rig_stat(rig, HT_STAT_END_COMPLETE), 3);
}
#endif

/*
 * A library that calls back: libgcc_s, whose _Unwind_Backtrace() calls a function for each frame.
 * Nothing here is linked to it, so it comes and goes.
 */
typedef int (*backtrace_fn)(void *, void *);
static void *library;
static char copies[2][64]; /* of it, by path: found without mapping anything else before */
static size_t callback_bytes;

PART(callback)
int on_frame(void *unwind, void *arg)
{
	void *block = do_malloc(callback_bytes);

	(void)unwind, (void)arg;
	asm volatile("" : "+r"(block));
	return 5; /* _URC_END_OF_STACK: no more of them */
}

static void step_load(volatile uint64_t *out)
{
	library = dlopen("libgcc_s.so.1", RTLD_NOW);
	out[0] = library != NULL;
}

/* out[0]: size of the block */
PART(loaded)
void step_call_library(volatile uint64_t *out)
{
	union {
		void *object;
		backtrace_fn fn;
	} backtrace = { dlsym(library, "_Unwind_Backtrace") };

	callback_bytes = out[0];
	out[1] = (uint64_t)backtrace.fn((void *)on_frame, NULL);
}

static char *library_base(void)
{
	Dl_info info = { 0 };

	if (library)
		dladdr(dlsym(library, "_Unwind_Backtrace"), &info);
	return info.dli_fbase;
}

/*
 * Unload it, and see to it that it comes to another place. Where it was stays taken: user space
 * still believes it to be there, which would be wrong for anything else.
 */
static void step_move(volatile uint64_t *out)
{
	char *before = library_base();

	dlclose(library);
	for (size_t off = 0; off < 1 << 20; off += 4096)
		mmap(before + off, 4096, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	step_load(out);
	out[1] = library_base() != before;
}

static struct ht_stack call_library(struct rig *rig, uint64_t size_bytes)
{
	rig->out[0] = size_bytes;
	rig_do(rig, step_call_library);
	return frames_of(rig, size_bytes);
}

TEST(test_dlopen)
{
	struct kernel_features features;
	struct rig *rig;
	struct ht_stack stack;
	uint64_t asked_cnt;
	int callback, loaded;

	assert_int_equal(kernel_features_probe(&features), 0);
	rig = rig_open(rig_mode(state), 1, 4096, 1024);
	rig_do(rig, step_load);
	if (!rig->out[0])
		skip();
	/* A file that was never seen: the stack is cut, and that brings user space here. */
	stack = call_library(rig, 2003);
	assert_int_equal(stack.end, HT_END_NO_MAPPING);
	assert_int_equal(stack.frame_cnt, 2);
	assert_int_equal(rig_stat(rig, HT_STAT_END_NO_MAPPING), 1);
	rig_settle(rig);
	stack = call_library(rig, 2011);
	assert_int_equal(stack.end, HT_END_COMPLETE);

	/* The same file at a new place: the walk finds it by itself. */
	asked_cnt = rig_stat(rig, HT_STAT_FIND_VMA);
	rig_do(rig, step_move);
	assert_int_equal(rig->out[0], 1);
	assert_int_equal(rig->out[1], 1);
	if (features.find_vma) {
		stack = call_library(rig, 2017);
		assert_int_equal(stack.end, HT_END_COMPLETE);
		assert_int_equal(frames_in(rig, &stack, PART_RANGE(callback), &callback), 1);
		assert_int_equal(frames_in(rig, &stack, PART_RANGE(loaded), &loaded), 1);
		assert_true(loaded > callback + 1); /* the library's are between */
		assert_true(rig_stat(rig, HT_STAT_FIND_VMA) > asked_cnt);
		assert_int_equal(rig_stat(rig, HT_STAT_END_NO_MAPPING), 1);
	}
	/* Without it, and with it, what user space reads next time has the place. */
	rig_settle_mapped(rig);
	asked_cnt = rig_stat(rig, HT_STAT_FIND_VMA);
	stack = call_library(rig, 2027);
	assert_int_equal(stack.end, HT_END_COMPLETE);
	assert_int_equal(rig_stat(rig, HT_STAT_FIND_VMA), asked_cnt);
}

static void step_load_copy(volatile uint64_t *out)
{
	library = dlopen(copies[0], RTLD_NOW);
	out[0] = library != NULL;
}

/* out[1]: is the other copy where the first one was? */
static void step_replace(volatile uint64_t *out)
{
	char *before = library_base();

	dlclose(library);
	library = dlopen(copies[1], RTLD_NOW);
	out[0] = library != NULL;
	out[1] = library_base() == before;
}

static void copy_library(void)
{
	void *handle = dlopen("libgcc_s.so.1", RTLD_NOW);
	char command[1200];
	Dl_info info;

	assert_non_null(handle);
	assert_true(dladdr(dlsym(handle, "_Unwind_Backtrace"), &info));
	for (int i = 0; i < 2; i++) {
		snprintf(copies[i], sizeof(copies[i]), "/tmp/heaptap-test-%d-%d.so", getpid(), i);
		snprintf(command, sizeof(command), "cp -L '%s' %s", info.dli_fname, copies[i]);
		assert_int_equal(system(command), 0);
	}
	dlclose(handle);
}

/* Frames in files whose path has this in it. */
static uint32_t frames_of_file(const struct rig *rig, const struct ht_stack *stack,
			       const char *name)
{
	uint32_t cnt = 0;

	for (size_t i = 0; i < track_files_cnt(rig->files); i++) {
		const struct track_file *file = track_files_at(rig->files, i);

		for (uint32_t n = 0; file && strstr(file->path, name) && n < stack->frame_cnt; n++)
			cnt += stack->frame[n] >> HT_FRAME_VADDR_BITS == file->id;
	}
	return cnt;
}

/* The walk remembers what it found for a pc, but not when something else is mapped there. */
TEST(test_replaced)
{
	struct ht_stack first, again, replaced;
	struct rig *rig;

	copy_library();
	rig = rig_open(rig_mode(state), 1, 4096, 1024);
	rig_do(rig, step_load_copy);
	assert_int_equal(rig->out[0], 1);
	rig_settle_mapped(rig);
	first = call_library(rig, 2029);
	again = call_library(rig, 2039);
	assert_int_equal(first.end, HT_END_COMPLETE);
	assert_true(frames_of_file(rig, &first, copies[0]) > 0);
	assert_int_equal(again.frame_cnt, first.frame_cnt);
	assert_memory_equal(again.frame, first.frame, first.frame_cnt * sizeof(*first.frame));

	rig_do(rig, step_replace);
	unlink(copies[0]);
	unlink(copies[1]);
	assert_int_equal(rig->out[0], 1);
	assert_int_equal(rig->out[1], 1);
	rig_settle_mapped(rig);
	replaced = call_library(rig, 2053);
	assert_int_equal(replaced.end, HT_END_COMPLETE);
	assert_int_equal(frames_of_file(rig, &replaced, copies[0]), 0);
	assert_int_equal(frames_of_file(rig, &replaced, copies[1]),
			 frames_of_file(rig, &first, copies[0]));
}

/* Where it has mapped code of a file; path NULL: of any. */
static struct process_events_map map_of(const struct rig *rig, const char *path)
{
	struct process_events_map ret = { .pid = rig->pid, .time_ns = now_ns(), .path = "" };
	struct proc_maps maps = { 0 };
	const struct proc_map *m;

	assert_int_equal(proc_maps_read(NULL, rig->pid, 0, &maps), 0);
	vec_each(&maps.maps, m) {
		if (!m->is_exec || !m->ino || ret.bytes || (path && strcmp(m->path, path) != 0))
			continue;
		ret.dev = m->dev;
		ret.ino = m->ino;
		ret.addr = m->start_addr;
		ret.bytes = m->end_addr - m->start_addr;
		ret.off = m->off;
	}
	proc_maps_release(&maps);
	assert_true(ret.bytes);
	return ret;
}

/* What BPF has, or finds by itself, need not be read at once; what has another's place must be. */
TEST(test_may_wait)
{
	struct process_events_map known, map;
	struct rig *rig;
	int idle_ms;

	copy_library();
	rig = rig_open(rig_mode(state), 1, 4096, 1024);
	rig->policy.finds_mappings = true;
	rig_do(rig, step_load_copy);
	assert_int_equal(rig->out[0], 1);
	rig_settle_mapped(rig);
	idle_ms = tracker_wait_ms(rig->tracker);
	assert_true(idle_ms >= 500);
	map = known = map_of(rig, copies[0]);
	tracker_on_mmap(rig->tracker, &known);
	assert_int_equal(tracker_wait_ms(rig->tracker), idle_ms);
	map.addr = map_of(rig, NULL).addr;
	tracker_on_mmap(rig->tracker, &map);
	assert_true(tracker_wait_ms(rig->tracker) <= 10);
	rig_settle(rig);
	assert_int_equal(tracker_wait_ms(rig->tracker), idle_ms);
	map = known;
	map.ino++; /* not known */
	tracker_on_mmap(rig->tracker, &map);
	assert_true(tracker_wait_ms(rig->tracker) <= 10);
	rig_settle(rig);
	map = known;
	map.addr = 1 << 24; /* nothing is so low */
	tracker_on_mmap(rig->tracker, &map);
	assert_in_range(tracker_wait_ms(rig->tracker), 11, 499);
	usleep(300000);
	rig_settle(rig);
	assert_int_equal(tracker_wait_ms(rig->tracker), idle_ms);
	unlink(copies[0]);
	unlink(copies[1]);
}

RUN_RIG_TESTS()
