/* SPDX-License-Identifier: MIT */
/* sampler.c - see sampler.h. */
#include "sampler.h"

#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#define DEFAULT_RATE_BYTES (512 << 10)
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
static double rate_bytes = DEFAULT_RATE_BYTES;

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

/*
 * Numbers. libm is not asked, for a program need not have it.
 */

/* ln(x) for x in (0, 1]: 2 artanh((m - 1) / (m + 1)) of the mantissa, which converges fast near 1. */
static double natural_log(double x)
{
	int exponent = 0;
	double s, square, term, sum = 0;

	while (x < 0.70710678118654752) {
		x *= 2;
		exponent--;
	}
	s = (x - 1) / (x + 1);
	square = s * s;
	term = s;
	for (int i = 1; i < 20; i += 2, term *= square)
		sum += term / i;
	return 2 * sum + exponent * 0.69314718055994531;
}

/* 1 - exp(-x) for x >= 0, as exact for small x: halved until the series is short, doubled back. */
static double complement_of_exp(double x)
{
	double term, sum = 0;
	int halvings = 0;

	if (x > 40)
		return 1;
	while (x > 0.5) {
		x /= 2;
		halvings++;
	}
	term = x;
	for (int i = 2; i < 18; i++) {
		sum += term;
		term *= -x / i;
	}
	while (halvings--)
		sum = sum * (2 - sum);
	return sum;
}

static uint64_t next_random(struct sampler_thread *t)
{
	uint64_t z = t->random += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static uint64_t next_interval(struct sampler_thread *t)
{
	double u;

	if (rate_bytes <= 1)
		return 0; /* every block */
	u = ((double)(next_random(t) >> 11) + 0.5) * 0x1p-53;

	return (uint64_t)(-natural_log(u) * rate_bytes);
}

static void begin_thread(struct sampler_thread *t)
{
	struct timespec ts = { 0 };
	uint64_t seed = 0;

	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed)) {
		clock_gettime(CLOCK_MONOTONIC, &ts);
		seed = (uint64_t)ts.tv_nsec * 0x9e3779b97f4a7c15ULL ^ (uintptr_t)t;
	}
	t->random = seed | 1;
	t->left_bytes = next_interval(t);
}

bool heaptap_sampler_take(size_t bytes)
{
	struct sampler_thread *t = &sampler_me;

	if (t->is_busy)
		return false; /* a signal handler, or what the allocator does for a block that is kept */
	if (!t->random) {
		begin_thread(t);
		if (sampler_passes(bytes))
			return false;
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
	double size = bytes ? (double)bytes : 1;

	sampler_state.may_have = 1;
	filter_add(hash);
	if (!insert(ptr, bytes)) {
		filter_sub(hash);
		return;
	}
	if (rate_bytes > 1)
		size /= complement_of_exp(size / rate_bytes);
	heaptap_sampler_tell_alloc(ptr, bytes, (uint64_t)(size + 0.5));
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
	char *end;
	double rate;

	if (!text)
		return;
	rate = strtod(text, &end);
	if (*end == 'k' || *end == 'K')
		rate *= 1 << 10;
	else if (*end == 'm' || *end == 'M')
		rate *= 1 << 20;
	if (end != text && rate >= 1 && rate <= 0x1p40)
		rate_bytes = rate;
}
