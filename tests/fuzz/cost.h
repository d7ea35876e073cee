/* SPDX-License-Identifier: MIT */
/*
 * cost.h - what an input may cost: an oracle beside "does not crash".
 *
 * What is counted (elf_budget.h) must stay within what the file's size allows, and the processor's time within
 * what that many steps take under sanitizers: work that nobody counts is found by its time.
 */
#ifndef HT_FUZZ_COST_H
#define HT_FUZZ_COST_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "elf/elf_budget.h"
#include "elf/elf_file.h"

/* Under sanitizers, and several times what is seen. */
#define COST_BASE_NS 4000000000ULL
#define COST_NS_PER_BYTE 1000ULL

static inline uint64_t cost_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* At the end of what is done with a file of so many bytes. */
static inline void cost_check(const struct elf_file *ef, uint64_t start_ns, uint64_t bytes)
{
	const struct elf_budget *b = elf_file_budget(ef);
	uint64_t ns = cost_now_ns() - start_ns;

	if (b->steps <= ELF_BASE_STEPS + bytes / ELF_BYTES_PER_STEP &&
	    b->bytes <= ELF_BASE_BYTES + bytes * ELF_BYTES_PER_BYTE &&
	    ns <= COST_BASE_NS + bytes * COST_NS_PER_BYTE)
		return;
	fprintf(stderr, "too costly: %llu bytes took %llu steps, %llu bytes, %llu ms\n",
		(unsigned long long)bytes, (unsigned long long)b->steps,
		(unsigned long long)b->bytes, (unsigned long long)ns / 1000000);
	abort();
}

#endif
