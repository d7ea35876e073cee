/* SPDX-License-Identifier: MIT */
/*
 * test_tap_code.c - the code of a tap, run: this program has a small allocator in assembly, which is found, tapped in
 * place and called.
 */
#include "unit.h"

#include <sys/mman.h>

#include "../lib/find_symbol.h"
#include "alloc/allocators.h"
#include "base/err.h"
#include "elf/elf_file.h"
#include "elf/elf_symbols.h"
#include "heaptap/abi.h"
#include "tap/tap_code.h"

#ifdef __x86_64__

/*
 * The allocator. A block is the next 4096 bytes of a pool; toy_fails: there is none any more. What its functions
 * begin with is what compilers make of real ones; each says in toy_seen what it was asked for.
 */
static uint8_t pool[64 * 4096];
static size_t pool_used;
static bool toy_fails;
static uint64_t toy_seen[4], toy_call_cnt;
uint8_t toy_flag;

void *toy_take(uint64_t a, uint64_t b, uint64_t c, uint64_t d);
void *toy_take(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	memcpy(toy_seen, (const uint64_t[]){ a, b, c, d }, sizeof(toy_seen));
	toy_call_cnt++;
	if (toy_fails)
		return NULL;
	pool_used = (pool_used + 4096) % sizeof(pool);
	return pool + pool_used;
}
int toy_take_out(void **out, uint64_t align, uint64_t size);
int toy_take_out(void **out, uint64_t align, uint64_t size)
{
	void *p = toy_take(align, size, 0, 0);

	if (!p)
		return ENOMEM;
	*out = p;
	return 0;
}
void toy_throw(void);
static uint64_t throw_cnt;
void toy_throw(void)
{
	throw_cnt++;
}

#define FUNCTION(name, body)                                                                \
	__asm__(".text\n.p2align 4\n.globl " name "\n.type " name ",@function\n" name ":\n" \
		".cfi_startproc\n" body ".cfi_endproc\n.size " name ",.-" name "\n")

/* By this name it is known to be jemalloc, whose delete takes what malloc gives. */
FUNCTION("je_mallctl", "ret\n");
/* The site: a rip-relative compare behind saved registers. */
FUNCTION("je_malloc",
	 "push %rbx\n.cfi_adjust_cfa_offset 8\nmov %rdi,%rbx\ncmpb $0,toy_flag(%rip)\njne 1f\n"
	 "1:mov %rbx,%rdi\ncall toy_take\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n");
/* A short one with a gap behind it, of a function whose arguments are a product. */
FUNCTION("je_calloc",
	 "push %r12\nmov %rdi,%r12\nmov %rsi,%rax\nnot %rax\ncall toy_take\npop %r12\nret\n"
	 ".byte 0x0f,0x1f,0x80,0,0,0,0\n");
/* At the entry: a jump. */
FUNCTION("je_realloc", "jmp toy_take\n.byte 0x0f,0x1f,0x80,0,0,0,0\n");
FUNCTION("je_posix_memalign",
	 "sub $8,%rsp\nmovabs $0x1122334455667788,%rax\ncall toy_take_out\nadd $8,%rsp\nret\n");
FUNCTION("je_free",
	 "test %rdi,%rdi\nje 1f\ncmpb $0,toy_flag(%rip)\njne 1f\nsub $8,%rsp\nmov $77,%esi\ncall toy_take\n"
	 "add $8,%rsp\n1:ret\n");
/* Throws when there is nothing: says so, and returns NULL. */
FUNCTION("_Znwm",
	 "push %rbx\nmov %rdi,%rbx\nmovabs $0x1122334455667788,%rax\ncall toy_take\ntest %rax,%rax\njne 1f\n"
	 "call toy_throw\nxor %eax,%eax\n1:pop %rbx\nret\n");
FUNCTION(
	"_ZnwmRKSt9nothrow_t",
	"push %rbx\nmov %rdi,%rbx\nmovabs $0x1122334455667788,%rax\ncall toy_take\npop %rbx\nret\n");

/*
 * Functions that note all registers that they get in toy_got, and return with those of toy_left. Order: rax rcx rdx rsi rdi
 * r8 r9 r10 r11 rbx rbp r12 r13 r14 r15.
 */
#define REGS 15
#define RAX_IDX 0
#define RDI_IDX 4
#define R10_IDX 7
#define R11_IDX 8
#define SCRATCH_CNT 9 /* the first ones, which a function need not keep */
uint64_t toy_got[REGS], toy_left[REGS];
#define NOTE(reg, nr) "mov %" reg ",toy_got+8*" #nr "(%rip)\n"
#define NOTE_ALL       \
	NOTE("rax", 0) \
	NOTE("rcx", 1) \
	NOTE("rdx", 2) \
	NOTE("rsi", 3) \
	NOTE("rdi", 4) \
	NOTE("r8", 5)  \
	NOTE("r9", 6)  \
	NOTE("r10", 7) \
	NOTE("r11", 8) \
	NOTE("rbx", 9) \
	NOTE("rbp", 10) NOTE("r12", 11) NOTE("r13", 12) NOTE("r14", 13) NOTE("r15", 14)
#define LEAVE(reg, nr) "mov toy_left+8*" #nr "(%rip),%" reg "\n"
#define LEAVE_ALL       \
	LEAVE("rax", 0) \
	LEAVE("rcx", 1) \
	LEAVE("rdx", 2) \
	LEAVE("rsi", 3) \
	LEAVE("rdi", 4) LEAVE("r8", 5) LEAVE("r9", 6) LEAVE("r10", 7) LEAVE("r11", 8)
FUNCTION("je_mallocx", "push %rbx\ncmpb $0,toy_flag(%rip)\n" NOTE_ALL LEAVE_ALL "pop %rbx\nret\n");
FUNCTION("je_dallocx", "push %rbx\ncmpb $0,toy_flag(%rip)\n" NOTE_ALL LEAVE_ALL "pop %rbx\nret\n");
/* Flags in use at the spot: a long jump there, and a pair. They return whether the size is larger than the
 * alignment, or 4096. */
FUNCTION("je_aligned_alloc",
	 "push %rbx\nmov %rsi,%rbx\ncmp %rdi,%rbx\nja 2f\n.skip 128,0x90\nxor %eax,%eax\npop %rbx\nret\n"
	 "2:mov $1,%eax\npop %rbx\nret\n");
FUNCTION("je_valloc",
	 "cmp $0x1000,%rdi\nja 2f\nlea toy_flag(%rip),%rdx\n.skip 128,0x90\nmovzbl (%rdx),%eax\nret\n"
	 "2:seta %al\nmovzbl %al,%eax\nret\n");
/* Call fn with the registers of in[]; out[]: what it left; stack: of STACK_BYTES, the last of which is the caller's. */
#define STACK_BYTES 4096
void call_with(const uint64_t *in, uint64_t *out, void *fn, uint8_t *stack_end);
FUNCTION(
	"call_with",
	"push %rbx\npush %rbp\npush %r12\npush %r13\npush %r14\npush %r15\n"
	"mov %rsp,-8(%rcx)\nmov %rsi,-16(%rcx)\nmov %rdx,-24(%rcx)\nlea -32(%rcx),%rsp\n"
	"mov %rdi,%rax\nmov 8(%rax),%rcx\nmov 16(%rax),%rdx\nmov 24(%rax),%rsi\nmov 32(%rax),%rdi\n"
	"mov 40(%rax),%r8\nmov 48(%rax),%r9\nmov 56(%rax),%r10\nmov 64(%rax),%r11\nmov 72(%rax),%rbx\n"
	"mov 80(%rax),%rbp\nmov 88(%rax),%r12\nmov 96(%rax),%r13\nmov 104(%rax),%r14\nmov 112(%rax),%r15\n"
	"mov (%rax),%rax\ncall *8(%rsp)\n"
	"push %rax\nmov 24(%rsp),%rax\npop (%rax)\nmov %rcx,8(%rax)\nmov %rdx,16(%rax)\nmov %rsi,24(%rax)\n"
	"mov %rdi,32(%rax)\nmov %r8,40(%rax)\nmov %r9,48(%rax)\nmov %r10,56(%rax)\nmov %r11,64(%rax)\n"
	"mov %rbx,72(%rax)\nmov %rbp,80(%rax)\nmov %r12,88(%rax)\nmov %r13,96(%rax)\nmov %r14,104(%rax)\n"
	"mov %r15,112(%rax)\nmov 24(%rsp),%rsp\n"
	"pop %r15\npop %r14\npop %r13\npop %r12\npop %rbp\npop %rbx\nret\n");

/* The same with a thread pointer of 0, where nothing is mapped. */
void call_without_tp(const uint64_t *in, uint64_t *out, void *fn, uint8_t *stack_end);
FUNCTION("call_without_tp",
	 "rdfsbase %rax\npush %rax\nxor %eax,%eax\nwrfsbase %rax\ncall call_with\n"
	 "pop %rax\nwrfsbase %rax\nret\n");

void *je_mallocx(size_t n, int flags);
void je_dallocx(void *p, int flags);
uint32_t je_aligned_alloc(size_t align, size_t n);
uint32_t je_valloc(size_t n);
void *je_malloc(size_t n);
void *je_calloc(size_t n, size_t m);
void *je_realloc(void *p, size_t n);
int je_posix_memalign(void **out, size_t align, size_t n);
void je_free(void *p);
void *new_plain(size_t n) __asm__("_Znwm");

static struct tap_data *data;
static struct tap_control *control;
static uint8_t *tap;
static struct tap_code code;
static struct err why;

static const struct tap_header *header(void)
{
	return tap_code_header(&code);
}

static void write_text(uint64_t addr, const uint8_t *bytes, size_t cnt)
{
	uint64_t page = addr & ~4095ULL;

	assert_int_equal(mprotect((void *)page, 2 * 4096, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	memcpy((void *)addr, bytes, cnt);
	assert_int_equal(mprotect((void *)page, 2 * 4096, PROT_READ | PROT_EXEC), 0);
}

static uint64_t own_bias(const struct elf_symbols *syms)
{
	struct elf_symbol s;

	assert_int_equal(find_symbol(syms, "je_malloc", &s), 0);
	return (uint64_t)(uintptr_t)je_malloc - s.vaddr;
}

/* uses_scratch: as for a program; else as for a library whose functions are called from other files. */
static void put_in_as(bool uses_scratch)
{
	const struct alloc_options opts = { 0 };
	struct tap_code_request req = { 0 };
	struct alloc_file *alloc;
	struct elf_symbols *syms;
	struct alloc_site *site;
	struct elf_file *ef;

	assert_int_equal(elf_file_open("/proc/self/exe", &ef), 0);
	assert_int_equal(elf_symbols_load(ef, NULL, &syms), 0);
	assert_int_equal(alloc_file_scan(ef, syms, &opts, &alloc), 0);
	vec_each(&alloc->sites, site) {
		site->tap.uses_scratch = uses_scratch;
		assert_int_equal(site->tap.branch_vaddr != 0, !strcmp(site->symbol, "je_valloc"));
		assert_int_equal(site->tap.flags_insn != 0,
				 !strcmp(site->symbol, "je_valloc") ||
					 !strcmp(site->symbol, "je_aligned_alloc"));
	}
	req.alloc = alloc;
	req.bias = own_bias(syms);
	tap = mmap((void *)(((uintptr_t)je_malloc & ~4095ULL) - (256 << 20)), TAP_BYTES,
		   PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(tap, MAP_FAILED);
	req.code_addr = (uint64_t)(uintptr_t)tap;
	if (tap_code_build(&req, &code, &why))
		fail_msg("%s", why.text);
	memcpy(tap, code.bytes, sizeof(code.bytes));
	control = (struct tap_control *)(tap + TAP_CODE_BYTES);
	data = (struct tap_data *)(tap + TAP_FILE_BYTES);
	for (uint32_t i = 0; i < header()->patch_cnt; i++) {
		const struct tap_patch *p = &header()->patch[i];

		assert_memory_equal((const void *)p->addr, p->original, p->byte_cnt);
		write_text(p->addr, p->patched, p->byte_cnt);
	}
	alloc_file_free(alloc);
	elf_symbols_free(syms);
	elf_file_close(ef);
}

static int put_in(void **state)
{
	put_in_as(true);
	return 0;
}

static int take_out(void **state)
{
	void *p;

	for (uint32_t i = header()->patch_cnt; i-- > 0;)
		write_text(header()->patch[i].addr, header()->patch[i].original,
			   header()->patch[i].byte_cnt);
	p = je_malloc(1);
	assert_ptr_equal(p, pool + pool_used);
	munmap(tap, TAP_BYTES);
	return 0;
}

static size_t kept_cnt(void)
{
	size_t cnt = 0;

	for (size_t i = 0; i < TAP_SET_SLOTS; i++)
		cnt += data->set[i] != 0;
	return cnt;
}

static bool is_kept(const void *p)
{
	for (size_t i = 0; i < TAP_SET_SLOTS; i++)
		if (data->set[i] == (uint64_t)(uintptr_t)p)
			return true;
	return false;
}

static int begin(uint64_t rate_bytes)
{
	memset(data, 0, sizeof(*data));
	memset(control, 0, sizeof(*control));
	data->mark = TAP_MAGIC;
	control->rate_bytes = rate_bytes;
	control->seed = 42;
	toy_fails = false;
	toy_call_cnt = 0;
	return 0;
}

TEST(test_sites)
{
	assert_int_equal(header()->magic, TAP_MAGIC);
	assert_int_equal(header()->version, TAP_VERSION);
	assert_int_equal(header()->header_bytes, sizeof(struct tap_header));
	assert_int_equal(header()->site_cnt, 11);
	assert_true(header()->patch_cnt > header()->site_cnt); /* some by way of a gap */
	/* What the manual says: up to 5 bytes a jump, and 2 where there is a gap; 940 KiB. */
	for (uint32_t i = 0; i < header()->patch_cnt; i++)
		assert_in_range(header()->patch[i].byte_cnt, 1, 5);
	assert_in_range(TAP_BYTES / 1024, 920, 940);
}

/* Without a rate: the functions do what they do, and nothing is kept. */
TEST(test_nothing)
{
	void *p, *out = NULL;

	begin(0);
	for (int i = 0; i < 1000; i++) {
		p = je_malloc(100000);
		assert_ptr_equal(p, pool + pool_used);
		assert_int_equal(toy_seen[0], 100000);
		je_free(p);
		assert_int_equal(toy_seen[1], 77);
	}
	p = je_calloc(3, 5);
	assert_ptr_equal(p, pool + pool_used);
	assert_int_equal(toy_seen[0], 3);
	assert_int_equal(toy_seen[1], 5);
	p = je_realloc(p, 7);
	assert_ptr_equal(p, pool + pool_used);
	assert_int_equal(toy_seen[1], 7);
	assert_int_equal(je_posix_memalign(&out, 64, 9), 0);
	assert_ptr_equal(out, pool + pool_used);
	assert_int_equal(kept_cnt(), 0);
	assert_int_equal(toy_call_cnt, 2003);
}

TEST(test_all)
{
	void *p, *q, *out = NULL;

	begin(1);
	p = je_malloc(100);
	assert_true(is_kept(p));
	q = je_calloc(3, 5);
	assert_true(is_kept(q));
	assert_int_equal(kept_cnt(), 2);
	je_free(p);
	je_free(NULL);
	assert_false(is_kept(p));
	p = je_realloc(q, 50);
	assert_true(is_kept(p));
	assert_false(is_kept(q));
	assert_int_equal(je_posix_memalign(&out, 64, 9), 0);
	assert_true(is_kept(out));
	q = new_plain(5);
	assert_true(is_kept(q));
	assert_int_equal(kept_cnt(), 3);
	je_free(p);
	je_free(out);
	je_free(q);
	assert_int_equal(kept_cnt(), 0);
	for (size_t i = 0; i < TAP_FILTER_CNT; i++)
		assert_int_equal(data->filter[i], 0);
	assert_int_equal(control->dropped_cnt, 0);
}

TEST(test_failures)
{
	void *p, *out = NULL;

	begin(1);
	p = je_malloc(100);
	toy_fails = true;
	assert_null(je_malloc(100));
	assert_null(je_calloc(100, 100));
	assert_int_equal(je_posix_memalign(&out, 64, 9), ENOMEM);
	assert_null(out);
	/* One that cannot but fail leaves the block as it is. */
	assert_null(je_realloc(p, UINT64_MAX / 2));
	assert_true(is_kept(p));
	assert_null(je_realloc(p, 200));
	assert_false(is_kept(p));
	assert_int_equal(control->failed_cnt, 1);
	/* The one that throws is called when the one that does not has failed. */
	throw_cnt = 0;
	assert_null(new_plain(5));
	assert_int_equal(throw_cnt, 1);
	assert_null(new_plain(1ULL << 60));
	assert_int_equal(throw_cnt, 2);
	assert_int_equal(kept_cnt(), 0);
}

/* The lowest byte of the stack that a call has changed: how far it is below rsp at the call. */
static size_t depth(const uint8_t *stack, size_t used)
{
	size_t at = 0;

	while (stack[at] == 0xa5)
		at++;
	return STACK_BYTES - used - at;
}

/* One call with all registers set. Returns how deep it went. */
static size_t check_call(const char *what, void *fn, const uint64_t *in, const uint64_t *left,
			 bool keeps_scratch)
{
	static uint8_t stack[STACK_BYTES] __attribute__((aligned(16)));
	uint64_t out[REGS];

	memset(stack, 0xa5, sizeof(stack));
	memcpy(toy_left, left, sizeof(toy_left));
	memset(toy_got, 0, sizeof(toy_got));
	call_with(in, out, fn, stack + sizeof(stack));
	for (int i = 0; i < REGS; i++) {
		const uint64_t wanted = i < SCRATCH_CNT ? left[i] : in[i];

		if (toy_got[i] != in[i] && (keeps_scratch || (i != R10_IDX && i != R11_IDX)))
			fail_msg("%s: register %d: the function gets %llx", what, i,
				 (unsigned long long)toy_got[i]);
		if (out[i] != wanted)
			fail_msg("%s: register %d: the caller gets %llx", what, i,
				 (unsigned long long)out[i]);
	}
	return depth(stack, 32);
}

/* What the head of tap_code.c says of registers and the stack. */
static void check_registers(bool saves)
{
	const size_t own_bytes = 16; /* of the function: return address, rbx */
	uint64_t in[REGS], left[REGS];

	for (uint64_t i = 0; i < REGS; i++) {
		in[i] = 0x1111111111111111ULL * (i + 1);
		left[i] = 0x2020202020202020ULL + i;
	}
	begin(0);
	in[RDI_IDX] = 100;
	check_call("slow", (void *)je_mallocx, in, left, saves); /* nothing is drawn yet */
	assert_int_equal(check_call("fast", (void *)je_mallocx, in, left, saves),
			 own_bytes + (saves ? 16 : 0));
	assert_int_equal(check_call("fast free", (void *)je_dallocx, in, left, saves),
			 own_bytes + (saves ? 16 : 0));
	begin(1);
	left[RAX_IDX] = (uint64_t)(uintptr_t)pool;
	assert_in_range(check_call("kept", (void *)je_mallocx, in, left, saves), 200, 600);
	assert_true(is_kept(pool));
	in[RDI_IDX] = (uint64_t)(uintptr_t)pool;
	assert_in_range(check_call("kept free", (void *)je_dallocx, in, left, saves), 100, 600);
	assert_false(is_kept(pool));
	assert_int_equal(kept_cnt(), 0);
	left[RAX_IDX] = 0;
	in[RDI_IDX] = 100;
	check_call("failed", (void *)je_mallocx, in, left, saves);
}

/* A thread without one is counted, and sampled, like others. */
TEST(test_no_thread_pointer)
{
	static uint8_t stack[STACK_BYTES] __attribute__((aligned(16)));
	uint64_t in[REGS] = { 0 }, out[REGS];

	for (uint64_t rate = 0; rate <= 1; rate++) {
		begin(rate);
		for (uint64_t i = 0; i < 5; i++) {
			in[RDI_IDX] = 100;
			toy_left[RAX_IDX] = 0x1000 * (i + 1);
			call_without_tp(in, out, (void *)je_mallocx, stack + sizeof(stack));
			assert_int_equal(kept_cnt(), rate);
			in[RDI_IDX] = 0x1000 * (i + 1);
			call_without_tp(in, out, (void *)je_dallocx, stack + sizeof(stack));
			assert_int_equal(kept_cnt(), 0);
		}
	}
	for (size_t i = 0; i < TAP_INSIDE_LINES * TAP_INSIDE_LINE; i++)
		assert_int_equal((&data->inside[0][0])[i].tp, 0);
}

static void check_flags(void)
{
	for (int i = 0; i < 3; i++) {
		assert_int_equal(je_aligned_alloc(4096, 4096), 0);
		assert_int_equal(je_aligned_alloc(4096, 4097), 1);
		assert_int_equal(je_valloc(4096), 0);
		assert_int_equal(je_valloc(4097), 1);
	}
}

static void check_tapped(bool saves)
{
	check_registers(saves);
	for (uint64_t rate = 0; rate <= 1; rate++) {
		begin(rate);
		check_flags();
	}
}

TEST(test_registers)
{
	check_tapped(true);
	take_out(NULL);
	check_flags();
	put_in_as(false);
	check_tapped(false);
}

/* p(n) = 1 - exp(-n / R): of 64 bytes at 1024 one in 16.5. */
TEST(test_share)
{
	const int cnt = 200000;
	size_t kept = 0;

	begin(1024);
	for (int i = 0; i < cnt; i++) {
		void *p = je_malloc(64);

		kept += is_kept(p);
		je_free(p);
		if (i == 1000) /* slow: the rest is counted by what is left */
			break;
	}
	assert_in_range(kept, 30, 100); /* 60.6, standard deviation 7.5 */
	begin(1024);
	kept = 0;
	for (int i = 0; i < cnt; i++) {
		(void)je_malloc(64);
		if (i % 64 == 63) { /* the pool begins again: its blocks are freed first */
			kept += kept_cnt();
			memset(data->set, 0, sizeof(data->set));
			memset(data->filter, 0, sizeof(data->filter));
		}
	}
	assert_in_range(kept, 11600, 12700); /* 12 117, standard deviation 107 */
}

TEST(test_full)
{
	begin(1);
	for (size_t i = 0; i < TAP_SET_SLOTS; i++)
		data->set[i] = 1;
	(void)je_malloc(10);
	assert_int_equal(control->dropped_cnt, 1);
}

/* What is in the way is said. */
TEST(test_refusals)
{
	struct alloc_file alloc = { .family = "toy" };
	static const struct alloc_row row = { .name = "malloc", .op = 1 };
	struct alloc_site site = { .row = &row, .symbol = "malloc", .tap = { .why = "no place" } };

	assert_int_equal(vec_push(&alloc.sites, site), 0);
	assert_int_equal(tap_code_check(&alloc, &why), -ENOTSUP);
	assert_string_equal(why.text, "malloc: no place");
	alloc.sites.data[0].may_nest = true; /* what it calls counts */
	assert_int_equal(tap_code_check(&alloc, &why), 0);
	alloc.sites.data[0].cookie = HT_COOKIE(1, 0, HT_ARG_NONE, HT_ARG_NONE, 0, HT_SITE_THROWS);
	alloc.sites.data[0].tap.vaddr = 1;
	assert_int_equal(tap_code_check(&alloc, &why), -ENOTSUP);
	assert_says(why.text, "may throw");
	vec_release(&alloc.sites);
}

static enum tap_use use_of(const char *symbol, uint8_t op, bool has_spot, bool can_throw)
{
	const struct alloc_row row = { .name = symbol + (!strncmp(symbol, "je_", 3) ? 3 : 0),
				       .op = op };
	struct alloc_site site = {
		.row = &row,
		.tap = { .vaddr = has_spot, .why = "no place" },
		.cookie = HT_COOKIE(1, 0, HT_ARG_NONE, HT_ARG_NONE, 0,
				    can_throw ? HT_SITE_THROWS : 0),
	};

	snprintf(site.symbol, sizeof(site.symbol), "%s", symbol);
	return tap_use_of(&site, &why);
}

/* Blocks that are not sampled are a loss that is told; ones whose free is not seen would be a lie. */
TEST(test_uses)
{
	assert_int_equal(use_of("malloc", HT_OP_ALLOC, true, false), TAP_USE_WHOLE);
	assert_int_equal(use_of("je_malloc", HT_OP_ALLOC, false, false), TAP_USE_REFUSED);
	assert_int_equal(use_of("_Znwm", HT_OP_ALLOC, true, true), TAP_USE_REFUSED);
	assert_int_equal(use_of("aligned_alloc", HT_OP_ALLOC, false, false), TAP_USE_NOTHING);
	assert_int_equal(use_of("mi_new_n", HT_OP_ALLOC, true, true), TAP_USE_NOTHING);
	assert_int_equal(use_of("mi_new_realloc", HT_OP_REALLOC, true, true), TAP_USE_FREES);
	assert_int_equal(use_of("realloc", HT_OP_REALLOC, false, false), TAP_USE_REFUSED);
	assert_int_equal(use_of("free", HT_OP_FREE, false, false), TAP_USE_REFUSED);
}

TEST(test_missed)
{
	struct alloc_file alloc = { .family = "toy" };
	static const struct alloc_row row = { .name = "x", .op = HT_OP_ALLOC };
	static const char *const names[] = { "a", "b", "c", "d", "e" };
	char text[64];

	tap_code_missed(&alloc, text, sizeof(text));
	assert_string_equal(text, "");
	for (size_t i = 0; i < 5; i++) {
		struct alloc_site site = { .row = &row };

		snprintf(site.symbol, sizeof(site.symbol), "%s", names[i]);
		assert_int_equal(vec_push(&alloc.sites, site), 0);
	}
	tap_code_missed(&alloc, text, sizeof(text));
	assert_string_equal(text, "a, b, c and 2 more");
	tap_code_missed(&alloc, text, 6); /* it never writes more */
	assert_string_equal(text, "a, b,");
	vec_release(&alloc.sites);
}

RUN_TESTS_WITH(put_in, take_out)

#else
int main(void)
{
	puts("1..0 # SKIP the tap is for x86-64");
	return 0;
}
#endif
