/* SPDX-License-Identifier: MIT */
/* find_row.c - see find_row.h. */
#include "find_row.h"

/*
 * The search that BPF does: without a branch on what was compared, and never outside of the
 * page's rows without having to check. pos is a row that begins at or below lo (row 0 does, by
 * construction); the first probe is made so that afterwards the answer is among the `step` rows
 * from pos on, and each round halves them.
 */
const struct ht_row *find_row(const struct unwind_table *t, uint64_t vaddr)
{
	uint64_t page_idx = (vaddr >> HT_PAGE_SHIFT) - t->first_page;
	int64_t lo = (int64_t)(vaddr % (1U << HT_PAGE_SHIFT));
	const struct unwind_page *page;
	const struct ht_row *rows;
	uint32_t pos, step;

	if (page_idx >= t->page_cnt)
		return NULL;
	page = &t->pages[page_idx];
	if (!page->row_cnt)
		return NULL;
	rows = t->rows + page->first;
	step = 1U << (31 - __builtin_clz(page->row_cnt));
	pos = page->row_cnt - step;
	pos &= ~(uint32_t)((lo - rows[pos].pc_lo) >> 63);
	for (step >>= 1; step; step >>= 1)
		pos += step & ~(uint32_t)((lo - rows[pos + step].pc_lo) >> 63);
	return &rows[pos];
}
