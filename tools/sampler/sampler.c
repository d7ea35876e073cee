/* SPDX-License-Identifier: MIT */
/* sampler.c - see sampler.h. */
#include "sampler.h"

#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "heaptap/draw.h"

#define DEFAULT_RATE_BYTES (512 << 10)
#define MOST_RATE_BYTES (1ULL << 40)
#define ENV_RATE "HEAPTAP_SAMPLER_RATE" /* 64k, 1m, 524288 */

/*
 * The set: lines of eight addresses. A block has its place in one of two neighbouring lines; when both are
 * full it is not kept. With 512 KiB to a sample half of the set is what 64 GiB in use need.
 */
#define LINE_SLOTS 8
#define LINE_SHIFT 15
#define LINE_CNT (1 << LINE_SHIFT)
#define SATURATED 255

SAMPLER_TLS struct sampler_thread sampler_me;
uint8_t sampler_filter[1 << SAMPLER_FILTER_SHIFT] __attribute__((aligned(64)));
static uintptr_t slots[LINE_CNT * LINE_SLOTS] __attribute__((aligned(64)));
static size_t slot_bytes[LINE_CNT * LINE_SLOTS];
static uint64_t rate_bytes = DEFAULT_RATE_BYTES;

/* The kernel finds a semaphore in the file: not in .bss. */
union sampler_state sampler_state __attribute__((section(".probes"), aligned(64))) = { .both = 0 };

__asm__(".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"
	".weak _.stapsdt.base\n"
	".hidden _.stapsdt.base\n"
	"_.stapsdt.base: .space 1\n"
	".size _.stapsdt.base, 1\n"
	".popsection\n");

#if defined(__x86_64__)
#define ALLOC_ARGS "8@%%rdi 8@%%rsi 8@%%rdx"
#define FREE_ARGS "8@%%rdi"
#define ARG_0 "D"
#define ARG_1 "S"
#define ARG_2 "d"
#elif defined(__aarch64__)
#define ALLOC_ARGS "8@x0 8@x1 8@x2"
#define FREE_ARGS "8@x0"
#define ARG_0 "r"
#define ARG_1 "r"
#define ARG_2 "r"
#else
#error "the sampler knows x86-64 and arm64"
#endif

/* A nop, and the note that says where it is: the format of SystemTap's sdt.h. */
#define PROBE(name, args)                                   \
	"990: nop\n"                                        \
	".pushsection .note.stapsdt,\"\",\"note\"\n"        \
	".balign 4\n"                                       \
	".4byte 8, 992f - 991f, 3\n"                        \
	".asciz \"stapsdt\"\n"                              \
	"991: .8byte 990b, _.stapsdt.base, sampler_state\n" \
	".asciz \"otel_memory\"\n"                          \
	".asciz \"" name "\"\n"                             \
	".asciz \"" args "\"\n"                             \
	"992: .balign 4\n"                                  \
	".popsection\n"

#define INLINE static inline __attribute__((always_inline))

INLINE void heaptap_sampler_tell_alloc(const void *ptr, uint64_t bytes, uint64_t weight)
{
#if defined(__aarch64__)
	register const void *a0 __asm__("x0") = ptr;
	register uint64_t a1 __asm__("x1") = bytes;
	register uint64_t a2 __asm__("x2") = weight;

	__asm__ volatile(PROBE("alloc", ALLOC_ARGS)::ARG_0(a0), ARG_1(a1), ARG_2(a2) : "memory");
#else
	__asm__ volatile(PROBE("alloc", ALLOC_ARGS)::ARG_0(ptr), ARG_1(bytes), ARG_2(weight)
			 : "memory");
#endif
}

INLINE void heaptap_sampler_tell_free(const void *ptr)
{
#if defined(__aarch64__)
	register const void *a0 __asm__("x0") = ptr;

	__asm__ volatile(PROBE("free", FREE_ARGS)::ARG_0(a0) : "memory");
#else
	__asm__ volatile(PROBE("free", FREE_ARGS)::ARG_0(ptr) : "memory");
#endif
}

/* With a rate of 1 every block is kept. */
static uint64_t next_interval(struct sampler_thread *t)
{
	return rate_bytes > 1 ? draw_interval(&t->random, rate_bytes) : 0;
}

static void seed_thread(struct sampler_thread *t)
{
	struct timespec ts = { 0 };
	uint64_t seed = 0;

	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed)) {
		clock_gettime(CLOCK_MONOTONIC, &ts);
		seed = (uint64_t)ts.tv_nsec * 0x9e3779b97f4a7c15ULL ^ (uintptr_t)t;
	}
	t->random = seed | 1;
	t->pid = getpid();
}

bool heaptap_sampler_take(size_t bytes)
{
	struct sampler_thread *t = &sampler_me;

	if (t->is_busy)
		return false; /* a signal handler, or what the allocator does for a block that is kept */
	if (!t->random) {
		seed_thread(t);
		t->left_bytes = next_interval(t);
		if (sampler_passes(bytes))
			return false;
	} else if (t->pid != getpid()) {
		/* A child would draw what its parent draws, and all its brothers. */
		seed_thread(t);
	}
	t->left_bytes = next_interval(t);
	return true;
}

/*
 * The set.
 */

static void filter_add(uint32_t hash)
{
	uint8_t old = __atomic_load_n(&sampler_filter[hash], __ATOMIC_RELAXED);

	while (old != SATURATED &&
	       !__atomic_compare_exchange_n(&sampler_filter[hash], &old, (uint8_t)(old + 1), true,
					    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
}

/* What was full once stays so. */
static void filter_sub(uint32_t hash)
{
	uint8_t old = __atomic_load_n(&sampler_filter[hash], __ATOMIC_RELAXED);

	while (old && old != SATURATED &&
	       !__atomic_compare_exchange_n(&sampler_filter[hash], &old, (uint8_t)(old - 1), true,
					    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
}

void heaptap_sampler_mark(const void *ptr)
{
	sampler_filter[sampler_hash(ptr)] = SATURATED;
	sampler_state.may_have = 1;
}

static size_t first_slot(const void *ptr)
{
	uint64_t hash = ((uint64_t)(uintptr_t)ptr >> 4) * 0xd6e8feb86659fd93ULL;

	return (size_t)(hash >> (64 - LINE_SHIFT)) * LINE_SLOTS;
}

static size_t nth_slot(size_t first, size_t n)
{
	return (first + n) & (LINE_CNT * LINE_SLOTS - 1);
}

static bool insert(void *ptr, size_t bytes)
{
	size_t first = first_slot(ptr);

	for (size_t i = 0; i < 2 * LINE_SLOTS; i++) {
		size_t slot = nth_slot(first, i);
		uintptr_t none = 0;

		if (slots[slot] ||
		    !__atomic_compare_exchange_n(&slots[slot], &none, (uintptr_t)ptr, false,
						 __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			continue;
		slot_bytes[slot] = bytes;
		return true;
	}
	return false;
}

static bool take_out(void *ptr, size_t *ret_bytes)
{
	size_t first = first_slot(ptr);

	for (size_t i = 0; i < 2 * LINE_SLOTS; i++) {
		size_t slot = nth_slot(first, i), bytes = slot_bytes[slot];
		uintptr_t wanted = (uintptr_t)ptr;

		if (slots[slot] != wanted ||
		    !__atomic_compare_exchange_n(&slots[slot], &wanted, 0, false, __ATOMIC_SEQ_CST,
						 __ATOMIC_RELAXED))
			continue;
		*ret_bytes = bytes;
		return true;
	}
	return false;
}

__attribute__((noinline)) void heaptap_sampler_keep(void *ptr, size_t bytes)
{
	uint32_t hash = sampler_hash(ptr);

	sampler_state.may_have = 1;
	filter_add(hash);
	if (!insert(ptr, bytes)) {
		filter_sub(hash);
		return;
	}
	heaptap_sampler_tell_alloc(ptr, bytes, draw_weight(bytes, rate_bytes));
}

__attribute__((noinline)) bool heaptap_sampler_drop(void *ptr, size_t *ret_bytes)
{
	if (!ptr || !take_out(ptr, ret_bytes))
		return false;
	heaptap_sampler_tell_free(ptr);
	filter_sub(sampler_hash(ptr));
	return true;
}

__attribute__((constructor)) static void read_rate(void)
{
	const char *text = getenv(ENV_RATE);
	unsigned long long rate;
	char *end;

	if (!text)
		return;
	rate = strtoull(text, &end, 10);
	if (end == text || rate > MOST_RATE_BYTES)
		return;
	if (*end == 'k' || *end == 'K')
		rate <<= 10;
	else if (*end == 'm' || *end == 'M')
		rate <<= 20;
	if (rate && rate <= MOST_RATE_BYTES)
		rate_bytes = rate;
}
