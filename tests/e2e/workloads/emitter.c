/* SPDX-License-Identifier: MIT */
/*
 * emitter.c - a sampler made from the texts of the contracts (user/alloc/file_sampler.h), with <sys/sdt.h>'s
 * way to say where arguments are: in whatever place the compiler has them. EMIT is the provider.
 *
 * It keeps each allocation of some sites and tells that it stands for several of that size; of site_silent it
 * tells nothing. EMITTER_OFF in the
 * environment: it tells of nothing. EMITTER_BAD: of weights that are none, too.
 */
#include "ledger.h"

#ifndef EMIT
#define EMIT "otel_memory"
#endif

#ifdef SEMAPHORE
static volatile unsigned short semaphore __attribute__((section(".probes"), used));
#define IS_ON (semaphore != 0)
#define SEMAPHORE_TEXT "semaphore"
#else
#define IS_ON (!getenv("EMITTER_OFF"))
#define SEMAPHORE_TEXT "0"
#endif

#define NOTE(name, args)                             \
	"990: nop\n"                                 \
	".pushsection .note.stapsdt,\"\",\"note\"\n" \
	".balign 4\n"                                \
	".4byte 8, 992f - 991f, 3\n"                 \
	".asciz \"stapsdt\"\n"                       \
	"991: .8byte 990b, 0, " SEMAPHORE_TEXT "\n"  \
	".asciz \"" EMIT "\"\n"                      \
	".asciz \"" name "\"\n"                      \
	".ascii \"" args "\"\n"                      \
	".byte 0\n"                                  \
	"992: .balign 4\n"                           \
	".popsection\n"

/* Registers, memory, constants: "nor" is what sdt.h lets the compiler choose from. */
#define TELL_ALLOC(ptr, size, weight) \
	__asm__ volatile(NOTE("alloc", "8@%0 8@%1 8@%2")::"nor"(ptr), "nor"(size), "nor"(weight))
#define TELL_ALLOC_SHORT(ptr, size, weight)                                                     \
	__asm__ volatile(NOTE("alloc", "8@%0 4@%1 -4@%2")::"nor"(ptr), "nor"((uint32_t)(size)), \
			 "nor"((int32_t)(weight)))
#define TELL_FREE(ptr) __asm__ volatile(NOTE("free", "8@%0")::"nor"(ptr))

SITE void *site_memory(size_t size)
{
	struct {
		uint64_t weight, size;
		void *ptr;
	} volatile at[2] = { 0 };
	int i = OPAQUE(1);

	at[i].ptr = malloc(size);
	at[i].size = size;
	at[i].weight = 4 * size;
	if (IS_ON)
		TELL_ALLOC(at[i].ptr, at[i].size, at[i].weight);
	led_bulk(__func__, (int64_t)size, 4, 4);
	return at[i].ptr;
}

SITE void *site_constant(void)
{
	void *p = malloc(1024);

	if (IS_ON)
		TELL_ALLOC(p, (uint64_t)1024, (uint64_t)8192);
	led_bulk(__func__, 1024, 8, 8);
	return p;
}

SITE void *site_short(size_t size)
{
	void *p = malloc(size);

	if (IS_ON)
		TELL_ALLOC_SHORT(p, size, 2 * size);
	led_bulk(__func__, (int64_t)size, 2, 2);
	return p;
}

/* A block of 3 000 bytes in which an interval of 1 000 went by twice. */
SITE void *site_counted(void)
{
	void *p = malloc(3000);

	if (IS_ON)
		TELL_ALLOC(p, (uint64_t)3000, (uint64_t)2000);
	led_bulk(__func__, 2000, 1, 1);
	return p;
}

SITE void *site_silent(void)
{
	return malloc(5000);
}

SITE void tell_nonsense(void)
{
	void *p = malloc(100);

	TELL_ALLOC(p, (uint64_t)100, (uint64_t)0);
	TELL_ALLOC(p, (uint64_t)100, OPAQUE(UINT64_MAX));
	TELL_ALLOC((void *)0, (uint64_t)100, (uint64_t)100);
}

static void let_go(void *p, const char *site, int64_t size, int64_t cnt)
{
	led_bulk(site, size, 0, -cnt);
	if (IS_ON)
		TELL_FREE(p);
	free(p);
}

int main(void)
{
	e2e_ready();
	for (int i = 0; i < 100; i++) {
		void *p = site_memory(1000), *q = site_constant();

		site_counted();
		site_silent();
		if (i % 2)
			let_go(p, "site_memory", 1000, 4);
		if (i % 4)
			let_go(q, "site_constant", 1024, 8);
		site_short(512);
	}
	if (getenv("EMITTER_BAD"))
		tell_nonsense();
	e2e_done();
	return 0;
}
