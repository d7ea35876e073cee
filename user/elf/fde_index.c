/* SPDX-License-Identifier: MIT */
/*
 * fde_index.c - the beginnings of functions, from .eh_frame_hdr.
 *
 * The linker writes this table so that an exception finds its frame description by binary search; each entry holds the
 * beginning of a function (or of the cold part of one). Only the form that all linkers write is read: 32-bit offsets
 * from the section's own address.
 */
#include "elf/unwind_table.h"

#include "elf/elf_file.h"

#define ENC_UDATA4 0x03
#define ENC_DATAREL_SDATA4 0x3b
#define HEAD_BYTES 12 /* version, three encodings, eh_frame pointer, count */

void fde_index_init(struct elf_file *ef, struct fde_index *ret)
{
	struct elf_section sec;
	uint32_t cnt;

	memset(ret, 0, sizeof(*ret));
	if (elf_file_section(ef, ".eh_frame_hdr", &sec) || sec.bytes < HEAD_BYTES ||
	    sec.data[0] != 1 || sec.data[2] != ENC_UDATA4 || sec.data[3] != ENC_DATAREL_SDATA4)
		return;
	/* The encoding of the pointer decides its width: 4 bytes in every encoding in use. */
	if ((sec.data[1] & 0x07) != 0x03)
		return;
	memcpy(&cnt, sec.data + 8, sizeof(cnt));
	if (cnt > (sec.bytes - HEAD_BYTES) / 8)
		cnt = (uint32_t)((sec.bytes - HEAD_BYTES) / 8);
	ret->table = sec.data + HEAD_BYTES;
	ret->cnt = cnt;
	ret->base = sec.vaddr;
}

static uint64_t start_at(const struct fde_index *ix, size_t i)
{
	int32_t off;

	memcpy(&off, ix->table + 8 * i, sizeof(off));
	return ix->base + (uint64_t)(int64_t)off;
}

bool fde_index_find(const struct fde_index *ix, uint64_t vaddr, uint64_t *ret_start,
		    uint64_t *ret_end)
{
	size_t lo = 0, hi = ix->cnt;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (start_at(ix, mid) <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || lo == ix->cnt)
		return false;
	*ret_start = start_at(ix, lo - 1);
	*ret_end = start_at(ix, lo);
	return true;
}
