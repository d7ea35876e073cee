/* SPDX-License-Identifier: MIT */
/*
 * elf_budget.h - a limit on the cost of reading one file.
 *
 * A file is somebody else's: a few kilobytes can demand any amount of work, by overlapping sections or by a compressed
 * section that holds nothing but zeros. The readers are linear in what a sound file holds; this budget is the last
 * guard, for files that are not sound. It counts
 *   steps: a record that is looked at (section, note, symbol, relocation, frame description), or an equal
 *          amount of work: 5 to 10 ns;
 *   bytes: memory that is filled, by reading, by unpacking, or by lists of what was found.
 * Both are linear in the file's size:
 *   steps <= ELF_BASE_STEPS + size / ELF_BYTES_PER_STEP, at most ELF_STEPS_CAP
 *   bytes <= ELF_BASE_BYTES + ELF_BYTES_PER_BYTE * size, at most ELF_BYTES_CAP
 * Of 4 456 real files none takes more than two fifths, and most a hundredth (test_elf_cost has some of them). When
 * either is spent, no more of the file is read, and what was found until then is used: the file is partly read.
 */
#ifndef HT_ELF_BUDGET_H
#define HT_ELF_BUDGET_H

#include "base/std.h"

#define ELF_BASE_STEPS (8ULL << 20)
#define ELF_BYTES_PER_STEP 2
#define ELF_STEPS_CAP (1ULL << 27)
#define ELF_BASE_BYTES (32ULL << 20)
#define ELF_BYTES_PER_BYTE 2
#define ELF_BYTES_CAP (1ULL << 30)

struct elf_budget {
	uint64_t steps, steps_cap;
	uint64_t bytes, bytes_cap;
	bool is_over; /* never reset */
};

static inline void elf_budget_init(struct elf_budget *b, uint64_t file_bytes)
{
	*b = (struct elf_budget){
		.steps_cap = ELF_BASE_STEPS + file_bytes / ELF_BYTES_PER_STEP,
		.bytes_cap = ELF_BASE_BYTES + file_bytes * ELF_BYTES_PER_BYTE,
	};
	if (b->steps_cap > ELF_STEPS_CAP)
		b->steps_cap = ELF_STEPS_CAP;
	if (b->bytes_cap > ELF_BYTES_CAP)
		b->bytes_cap = ELF_BYTES_CAP;
}

/* Pay for steps. false: it is too much, and so are all later ones. Refused steps are not counted. */
static inline bool elf_budget_step(struct elf_budget *b, uint64_t cnt)
{
	if (cnt > b->steps_cap - b->steps)
		b->is_over = true;
	if (b->is_over)
		return false;
	b->steps += cnt;
	return true;
}

static inline bool elf_budget_fill(struct elf_budget *b, uint64_t bytes)
{
	if (bytes > b->bytes_cap - b->bytes)
		b->is_over = true;
	if (b->is_over)
		return false;
	b->bytes += bytes;
	return true;
}

#endif
