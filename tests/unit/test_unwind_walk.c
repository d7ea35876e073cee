/* SPDX-License-Identifier: MIT */
/*
 * test_unwind_walk.c - this process's own stacks, walked with unwind rows.
 *
 * The walker below does, in user space, what the BPF program does with the same rows, and its
 * stacks are compared with those of libgcc's unwinder. It runs where rows of every
 * kind are met: in functions without frame pointers, with alloca, with a realigned stack, in
 * callbacks of libc, in new threads, in signal handlers on both kinds of stack, and in a timer's
 * signal that interrupts libraries at any instruction, PLT stubs and the vDSO included.
 */
#include "unit.h"

#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unwind.h>

#include "../lib/find_row.h"
#include "elf/elf_file.h"
#include "elf/unwind_table.h"

#if defined(__x86_64__)

#define MAPPINGS_CAP 256
#define FRAMES_CAP 127
#define NOINLINE __attribute__((noinline))

struct mapping {
	uint64_t start, end, bias;
	struct unwind_table *table;
};

static struct mapping mappings[MAPPINGS_CAP];
static size_t mapping_cnt;

struct regs {
	uint64_t pc, sp, bp;
};

struct stack {
	uint64_t frame[FRAMES_CAP];
	uint32_t frame_cnt;
	uint32_t end; /* HT_END_* */
};

static void mapping_add(uint64_t start, uint64_t end, uint64_t off, const char *path)
{
	struct mapping *m = &mappings[mapping_cnt];
	struct elf_file *ef = NULL;
	uint64_t vaddr;
	int err;

	assert_true(mapping_cnt < MAPPINGS_CAP);
	if (!strcmp(path, "[vdso]"))
		err = elf_file_open_mem((const void *)(uintptr_t)start, end - start, &ef);
	else
		err = path[0] == '/' ? elf_file_open(path, &ef) : -ENOENT;
	if (err)
		return;
	*m = (struct mapping){ .start = start, .end = end };
	if (!elf_file_code_vaddr(ef, off, &vaddr) && !unwind_table_build(ef, NULL, &m->table)) {
		m->bias = start - vaddr;
		mapping_cnt++;
	}
	elf_file_close(ef);
}

static void read_mappings(void)
{
	char line[1024], path[512], perms[8];
	uint64_t start, end, off;
	FILE *f = fopen("/proc/self/maps", "re");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		path[0] = '\0';
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %511s", &start,
			   &end, perms, &off, path) >= 4 &&
		    perms[2] == 'x')
			mapping_add(start, end, off, path);
	}
	fclose(f);
}

static const struct ht_row *row_at(uint64_t pc)
{
	size_t i;

	for (i = 0; i < mapping_cnt; i++) {
		if (pc >= mappings[i].start && pc < mappings[i].end)
			return find_row(mappings[i].table, pc - mappings[i].bias);
	}
	return NULL;
}

/* Other functions' stack memory: nothing that a sanitizer should have an opinion on. */
__attribute__((no_sanitize("address", "undefined"))) static uint64_t load(uint64_t addr)
{
	return *(volatile uint64_t *)(uintptr_t)addr;
}

static int cfa_of(const struct ht_row *row, const struct regs *r, uint64_t *ret)
{
	uint64_t off = (uint64_t)(int64_t)row->cfa_off * 8;

	switch (row->cfa) {
	case HT_CFA_RSP:
		*ret = r->sp + off;
		return 0;
	case HT_CFA_RBP:
		*ret = r->bp + off;
		return 0;
	case HT_CFA_DEREF_RSP:
		*ret = load(r->sp + off);
		return 0;
	case HT_CFA_DEREF_RBP:
		*ret = load(r->bp + off);
		return 0;
	case HT_CFA_RSP_WIDE:
		*ret = r->sp + (uint64_t)HT_ROW_WIDE_OFF(row) * 8;
		return 0;
	case HT_CFA_PLT:
		*ret = r->sp + 8 + ((r->pc & 15) >= (uint64_t)row->cfa_off ? 8 : 0);
		return 0;
	default:
		return -1;
	}
}

static uint64_t caller_bp(const struct ht_row *row, const struct regs *r, uint64_t cfa)
{
	uint64_t off = (uint64_t)(int64_t)row->rbp_off * 8;

	switch (row->rbp) {
	case HT_RBP_AT_CFA:
		if (row->cfa == HT_CFA_RSP_WIDE)
			off = (uint64_t)(int64_t)HT_ROW_WIDE_RBP_OFF(row) * 8;
		return load(cfa + off);
	case HT_RBP_AT_RBP:
		return load(r->bp + off);
	case HT_RBP_UNDEFINED:
		return 0;
	default:
		return r->bp;
	}
}

/* is_exact: r.pc is an instruction that has not run yet, not the return address of a call. */
static void walk(struct regs r, bool is_exact, struct stack *ret)
{
	const struct ht_row *row;
	uint64_t cfa;

	ret->frame_cnt = 0;
	ret->end = HT_END_TOO_DEEP;
	while (ret->frame_cnt < FRAMES_CAP) {
		ret->frame[ret->frame_cnt++] = r.pc;
		row = row_at(r.pc - !is_exact);
		if (!row || row->cfa == HT_CFA_NONE) {
			ret->end = HT_END_NO_ROW;
			return;
		}
		if (row->cfa == HT_CFA_END) {
			ret->end = HT_END_COMPLETE;
			return;
		}
		is_exact = row->cfa == HT_CFA_SIGNAL;
		if (is_exact) {
			uint64_t uc = r.sp;

			r.bp = load(uc + 120);
			r.sp = load(uc + 160);
			r.pc = load(uc + 168);
			continue;
		}
		if (cfa_of(row, &r, &cfa)) {
			ret->end = HT_END_UNSUPPORTED;
			return;
		}
		r.bp = caller_bp(row, &r, cfa);
		r.pc = load(cfa - 8);
		r.sp = cfa;
	}
}

/* Registers at this very place. */
#define REGS(r)                                                               \
	__asm__ volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2" \
			 : "=r"((r).pc), "=r"((r).sp), "=r"((r).bp))

struct both {
	struct stack ours, theirs;
};

static struct both seen; /* what the function under test saw */

static _Unwind_Reason_Code on_frame(struct _Unwind_Context *context, void *arg)
{
	struct stack *s = arg;
	uint64_t pc = _Unwind_GetIP(context);

	if (s->frame_cnt == FRAMES_CAP)
		return _URC_END_OF_STACK;
	if (pc)
		s->frame[s->frame_cnt++] = pc;
	return _URC_NO_REASON;
}

/* Frame 0 is in the caller. Not backtrace(): sanitizers replace that one. */
static NOINLINE void libgcc_walk(struct stack *ret)
{
	ret->frame_cnt = 0;
	_Unwind_Backtrace(on_frame, ret);
	if (!ret->frame_cnt)
		return;
	ret->frame_cnt--;
	memmove(ret->frame, ret->frame + 1, ret->frame_cnt * sizeof(ret->frame[0]));
}

static NOINLINE void look(void)
{
	struct regs here;

	REGS(here);
	walk(here, true, &seen.ours);
	libgcc_walk(&seen.theirs);
	__asm__ volatile("" ::: "memory"); /* a call, not a jump: this frame must stay */
}

/* Frame 0 is in the same function, at another instruction. */
static void assert_same(const struct both *b, uint32_t min_frames)
{
	uint32_t i;

	for (i = 1; i < b->ours.frame_cnt && i < b->theirs.frame_cnt; i++) {
		if (b->ours.frame[i] != b->theirs.frame[i])
			fail_msg("frame %u: %#lx, libgcc has %#lx", i, b->ours.frame[i],
				 b->theirs.frame[i]);
	}
	assert_int_equal(b->ours.end, HT_END_COMPLETE);
	assert_int_equal(b->ours.frame_cnt, b->theirs.frame_cnt);
	assert_true(b->ours.frame_cnt >= min_frames);
}

static NOINLINE int leaf(int n)
{
	look();
	return n + 1;
}

/* A compiler that saw who is called would make loops of the recursions here. */
static int nested(int depth);
static int (*volatile nested_ptr)(int depth) = nested;

static NOINLINE int nested(int depth)
{
	int n = depth ? nested_ptr(depth - 1) : leaf(0);

	return n + 1;
}

TEST(test_nested)
{
	nested(40);
	assert_same(&seen, 40);
}

static NOINLINE int with_alloca(size_t bytes)
{
	volatile char *p = __builtin_alloca(bytes);
	int n;

	p[0] = 1;
	p[bytes - 1] = 2;
	n = leaf(p[0]);
	return n + p[bytes - 1];
}

TEST(test_alloca)
{
	with_alloca(1000);
	assert_same(&seen, 3);
}

/* gcc makes the CFA an expression here: alignment and a size that only run time knows. */
static NOINLINE int realigned(size_t bytes, int a, int b, int c, int d, int e, int f, int g)
{
	volatile char aligned[128] __attribute__((aligned(128)));
	volatile char *p = __builtin_alloca(bytes);
	int n;

	aligned[0] = p[0] = 1;
	n = with_alloca(bytes + 16);
	return n + aligned[0] + p[0] + a + b + c + d + e + f + g;
}

TEST(test_realigned)
{
	realigned(100, 1, 2, 3, 4, 5, 6, 7);
	assert_same(&seen, 4);
}

static int compare_ints(const void *a, const void *b)
{
	if (!seen.theirs.frame_cnt)
		look();
	return *(const int *)a - *(const int *)b;
}

TEST(test_qsort)
{
	int v[] = { 5, 3, 8, 1, 9, 2, 7 };

	seen.theirs.frame_cnt = 0;
	qsort(v, sizeof(v) / sizeof(v[0]), sizeof(v[0]), compare_ints);
	assert_same(&seen, 4);
}

static void *thread_main(void *arg)
{
	nested(3);
	return NULL;
}

TEST(test_thread)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, thread_main, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_same(&seen, 6);
}

static void on_signal(int sig)
{
	nested(2);
}

static void check_signal(int flags)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = flags }, old;

	assert_int_equal(sigaction(SIGUSR1, &sa, &old), 0);
	raise(SIGUSR1);
	assert_int_equal(sigaction(SIGUSR1, &old, NULL), 0);
	assert_same(&seen, 8);
}

TEST(test_signal)
{
	check_signal(0);
}

TEST(test_signal_stack)
{
	static char memory[128 * 1024];
	stack_t ss = { .ss_sp = memory, .ss_size = sizeof(memory) }, old;

	assert_int_equal(sigaltstack(&ss, &old), 0);
	check_signal(SA_ONSTACK);
	ss.ss_flags = SS_DISABLE;
	assert_int_equal(sigaltstack(&ss, NULL), 0);
}

/*
 * A timer's signal: the interrupted stack, from the registers in the ucontext. What differs is
 * kept, and looked at when the timer is off.
 */
static struct {
	unsigned int cnt, complete, differs;
	unsigned int unsupported, no_row, longer;
	struct both first_difference;
} timer;

/* The handler's own frame and the trampoline come first in libgcc's. */
#define HANDLER_FRAMES 2

/* libgcc ends where there is no frame information, as in lld's PLT: then ours is longer. */
static bool is_same_from(const struct both *b)
{
	uint32_t i;

	if (b->theirs.frame_cnt > b->ours.frame_cnt + HANDLER_FRAMES)
		return false;
	for (i = 0; i + HANDLER_FRAMES < b->theirs.frame_cnt; i++) {
		if (b->ours.frame[i] != b->theirs.frame[i + HANDLER_FRAMES])
			return false;
	}
	return true;
}

static void on_timer(int sig, siginfo_t *info, void *context)
{
	const greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
	struct regs r = { (uint64_t)g[REG_RIP], (uint64_t)g[REG_RSP], (uint64_t)g[REG_RBP] };
	static struct both b;
	int saved = errno;

	walk(r, true, &b.ours);
	libgcc_walk(&b.theirs);
	timer.cnt++;
	if (b.ours.end == HT_END_UNSUPPORTED) {
		timer.unsupported++;
	} else if (b.ours.end == HT_END_NO_ROW) {
		timer.no_row++;
	} else if (b.ours.end == HT_END_COMPLETE && is_same_from(&b)) {
		timer.complete++;
		timer.longer += b.ours.frame_cnt + HANDLER_FRAMES > b.theirs.frame_cnt;
	} else if (!timer.differs++) {
		timer.first_difference = b;
	}
	errno = saved;
}

/* Time in libc, in the vDSO, in prologues and epilogues, and in PLT stubs. */
static unsigned int busy(int depth);
static unsigned int (*volatile busy_ptr)(int depth) = busy;

static NOINLINE unsigned int busy(int depth)
{
	unsigned int sum = (unsigned int)rand();
	struct timespec ts;
	char text[64];
	int v[32], i;

	for (i = 0; i < 32; i++)
		v[i] = rand();
	seen.theirs.frame_cnt = 1; /* the callback is not to look */
	qsort(v, 32, sizeof(v[0]), compare_ints);
	for (i = 0; i < 20; i++)
		sum += (unsigned int)abs(rand()) + (unsigned int)strlen(strchr("some text", 't'));
	clock_gettime(CLOCK_MONOTONIC, &ts);
	sum += (unsigned int)snprintf(text, sizeof(text), "%d %s %f", v[3], "text", 1.5);
	free(malloc((size_t)(v[0] & 0xfff)));
	return depth ? sum + busy_ptr(depth - 1) : sum;
}

TEST(test_anywhere)
{
	struct sigaction sa = { .sa_sigaction = on_timer, .sa_flags = SA_SIGINFO | SA_RESTART },
			 old;
	struct itimerval every = { { 0, 200 }, { 0, 200 } }, off = { { 0, 0 }, { 0, 0 } };
	struct timespec start, now;
	uint32_t i;

	assert_int_equal(sigaction(SIGALRM, &sa, &old), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		busy(5);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - start.tv_sec < 2);
	assert_int_equal(setitimer(ITIMER_REAL, &off, NULL), 0);
	assert_int_equal(sigaction(SIGALRM, &old, NULL), 0);
	print_message(
		"# interrupted %u times: %u complete (%u longer than libgcc's), %u unsupported, "
		"%u without a row, %u different\n",
		timer.cnt, timer.complete, timer.longer, timer.unsupported, timer.no_row,
		timer.differs);
	for (i = 0; timer.differs && i < timer.first_difference.ours.frame_cnt; i++)
		print_message("# %2u: %#lx %#lx\n", i, timer.first_difference.ours.frame[i],
			      timer.first_difference.theirs.frame[i + HANDLER_FRAMES]);
	assert_int_equal(timer.differs, 0);
	assert_true(timer.cnt > 100);
	assert_true(timer.complete >= timer.cnt * 99ULL / 100);
	assert_true(timer.longer <= timer.cnt * 5ULL / 100);
}

static int setup(void **state)
{
	read_mappings();
	return mapping_cnt ? 0 : -1;
}

static int teardown(void **state)
{
	while (mapping_cnt)
		unwind_table_free(mappings[--mapping_cnt].table);
	return 0;
}

RUN_TESTS_WITH(setup, teardown)

#else

TEST(test_other_machine)
{
	skip();
}

RUN_TESTS()

#endif
