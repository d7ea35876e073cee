/* SPDX-License-Identifier: MIT */
/*
 * elf_segments.c - the program headers of an ELF file, and the memory addresses of its bytes.
 *
 * An address is looked up for each symbol and each function, so the loadable segments are sorted by address. In a sound
 * file they do not overlap, and one comparison is enough. Where they overlap, the segment that begins nearest below the
 * address is taken, and each segment that is passed on the way costs a step.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/decompress.h"
#include "elf/elf_file_priv.h"

/* The kernel starts no program with more than 64 KiB of program headers; linkers make a dozen. */
#define PHDRS_CAP (65536 / sizeof(Elf64_Phdr))
#define PAGE_BYTES 4096ULL

static bool read_phdr(const struct elf_file *ef, uint64_t i, Elf64_Phdr *ret)
{
	size_t bytes = elf_file_is_64(ef) ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
	const void *p;
	Elf32_Phdr h;

	if (ef->eh.e_phentsize < bytes || ef->eh.e_phoff > elf_image_bytes(ef->im))
		return false;
	p = elf_bytes(ef, ef->eh.e_phoff + i * ef->eh.e_phentsize, bytes);
	if (!p)
		return false;
	if (elf_file_is_64(ef)) {
		memcpy(ret, p, sizeof(*ret));
		return true;
	}
	memcpy(&h, p, sizeof(h));
	*ret = (Elf64_Phdr){ .p_type = h.p_type,
			     .p_flags = h.p_flags,
			     .p_offset = h.p_offset,
			     .p_vaddr = h.p_vaddr,
			     .p_filesz = h.p_filesz,
			     .p_memsz = h.p_memsz,
			     .p_align = h.p_align };
	return true;
}

static uint64_t extent(const struct elf_segment *s)
{
	return s->mem_bytes > s->file_bytes ? s->mem_bytes : s->file_bytes;
}

static int by_vaddr(const void *a, const void *b)
{
	const struct elf_segment_key *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	/* searched from the end, so of those that begin together the first is found */
	return x->idx > y->idx ? -1 : x->idx < y->idx;
}

static int sort_segments(struct elf_file *ef)
{
	uint64_t end, reach = 0;

	ef->segment_keys = calloc(ef->segment_cnt + 1, sizeof(*ef->segment_keys));
	if (!ef->segment_keys)
		return -ENOMEM;
	for (size_t i = 0; i < ef->segment_cnt; i++)
		ef->segment_keys[i] = (struct elf_segment_key){ .vaddr = ef->segments[i].vaddr,
								.idx = (uint32_t)i };
	qsort(ef->segment_keys, ef->segment_cnt, sizeof(*ef->segment_keys), by_vaddr);
	for (size_t i = 0; i < ef->segment_cnt; i++) {
		const struct elf_segment *s = &ef->segments[ef->segment_keys[i].idx];

		end = s->vaddr + extent(s) < s->vaddr ? UINT64_MAX : s->vaddr + extent(s);
		reach = end > reach ? end : reach;
		ef->segment_keys[i].reach_vaddr = reach;
	}
	return 0;
}

int elf_read_segments(struct elf_file *ef)
{
	uint64_t cnt = ef->eh.e_phnum, i;
	Elf64_Shdr first;

	if (cnt == PN_XNUM && elf_read_shdr(ef, 0, &first))
		cnt = first.sh_info;
	if (cnt > PHDRS_CAP) {
		ef->is_cut = true;
		cnt = PHDRS_CAP;
	}
	ef->phdrs = calloc(cnt + 1, sizeof(*ef->phdrs));
	ef->segments = calloc(cnt + 1, sizeof(*ef->segments));
	if (!ef->phdrs || !ef->segments)
		return -ENOMEM;
	for (i = 0; i < cnt; i++) {
		Elf64_Phdr *ph = &ef->phdrs[i];

		if (!read_phdr(ef, i, ph))
			return -ENOEXEC;
		ef->phdr_cnt++;
		/* Not compared with the file's size: in a split-off debug file the segments
		 * are those of the program. */
		if (ph->p_offset + ph->p_filesz < ph->p_offset ||
		    ph->p_vaddr + ph->p_memsz < ph->p_vaddr)
			return -ENOEXEC;
		if (ph->p_type != PT_LOAD)
			continue;
		ef->segments[ef->segment_cnt++] =
			(struct elf_segment){ .vaddr = ph->p_vaddr,
					      .off = ph->p_offset,
					      .file_bytes = ph->p_filesz,
					      .mem_bytes = ph->p_memsz,
					      .is_exec = ph->p_flags & PF_X,
					      .is_write = ph->p_flags & PF_W };
	}
	return sort_segments(ef);
}

const struct elf_segment *elf_file_segments(const struct elf_file *ef, size_t *ret_cnt)
{
	*ret_cnt = ef->segment_cnt;
	return ef->segments;
}

int elf_file_program_head(const struct elf_file *ef, uint32_t type, size_t nth,
			  struct elf_program_head *ret)
{
	size_t i;

	for (i = 0; i < ef->phdr_cnt; i++) {
		const Elf64_Phdr *ph = &ef->phdrs[i];

		if (ph->p_type != type || nth--)
			continue;
		*ret = (struct elf_program_head){ .vaddr = ph->p_vaddr,
						  .off = ph->p_offset,
						  .file_bytes = ph->p_filesz,
						  .mem_bytes = ph->p_memsz,
						  .align = ph->p_align };
		return 0;
	}
	return -ENOENT;
}

/* The number of segments, in order of address, that begin at or below vaddr. */
static size_t segments_up_to(const struct elf_file *ef, uint64_t vaddr)
{
	size_t low = 0, high = ef->segment_cnt;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (ef->segment_keys[mid].vaddr <= vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/*
 * The next segment below *pos that contains vaddr: in its memory bytes or (in_file) in its file bytes. *pos starts as
 * segments_up_to(vaddr). NULL: no more.
 */
static const struct elf_segment *next_segment(const struct elf_file *ef, uint64_t vaddr,
					      bool in_file, size_t *pos)
{
	while (*pos && ef->segment_keys[*pos - 1].reach_vaddr > vaddr) {
		const struct elf_segment *s = &ef->segments[ef->segment_keys[--*pos].idx];

		if (vaddr - s->vaddr < (in_file ? s->file_bytes : s->mem_bytes))
			return s;
		if (!elf_file_step(ef, 1))
			break;
	}
	return NULL;
}

const struct elf_segment *elf_file_segment_at(const struct elf_file *ef, uint64_t vaddr)
{
	size_t pos = segments_up_to(ef, vaddr);

	return next_segment(ef, vaddr, false, &pos);
}

int elf_file_off_to_vaddr(const struct elf_file *ef, uint64_t off, uint64_t *ret_vaddr)
{
	const struct elf_segment *page = NULL;
	size_t i;

	for (i = 0; i < ef->segment_cnt; i++) {
		const struct elf_segment *s = &ef->segments[i];

		if (off >= s->off && off - s->off < s->file_bytes) {
			*ret_vaddr = s->vaddr + (off - s->off);
			return 0;
		}
		if (off < s->off && s->file_bytes && off / PAGE_BYTES == s->off / PAGE_BYTES &&
		    s->vaddr >= s->off - off && (!page || s->is_exec))
			page = s;
	}
	if (!page)
		return -ENOENT;
	*ret_vaddr = page->vaddr - (page->off - off);
	return 0;
}

int elf_file_code_vaddr(const struct elf_file *ef, uint64_t off, uint64_t *ret_vaddr)
{
	for (size_t i = 0; i < ef->segment_cnt; i++) {
		const struct elf_segment *s = &ef->segments[i];

		if (s->is_exec && off + PAGE_BYTES > s->off && off < s->off + s->file_bytes &&
		    s->vaddr + off >= s->off) {
			*ret_vaddr = s->vaddr + off - s->off;
			return 0;
		}
	}
	return -ENOENT;
}

int elf_file_vaddr_to_off(const struct elf_file *ef, uint64_t vaddr, uint64_t *ret_off)
{
	size_t pos = segments_up_to(ef, vaddr);
	const struct elf_segment *s = next_segment(ef, vaddr, true, &pos);

	if (!s)
		return -ENOENT;
	*ret_off = s->off + (vaddr - s->vaddr);
	return 0;
}

const uint8_t *elf_file_at(const struct elf_file *ef, uint64_t vaddr, size_t *ret_bytes)
{
	size_t image_bytes = elf_image_bytes(ef->im), pos = segments_up_to(ef, vaddr);
	const struct elf_segment *s;
	const uint8_t *p;

	*ret_bytes = 0;
	while ((s = next_segment(ef, vaddr, true, &pos))) {
		uint64_t off = s->off + (vaddr - s->vaddr);
		uint64_t bytes = s->file_bytes - (vaddr - s->vaddr);

		if (off >= image_bytes)
			continue;
		if (bytes > image_bytes - off)
			bytes = image_bytes - off;
		if (bytes > ELF_AT_BYTES)
			bytes = ELF_AT_BYTES;
		p = elf_bytes(ef, off, bytes);
		*ret_bytes = p ? bytes : 0;
		return p;
	}
	return NULL;
}

const uint8_t *elf_file_read(const struct elf_file *ef, uint64_t vaddr, uint64_t bytes)
{
	size_t pos = segments_up_to(ef, vaddr);
	const struct elf_segment *s;

	if (bytes > DECOMPRESS_BYTES_CAP)
		return NULL;
	while ((s = next_segment(ef, vaddr, true, &pos)))
		if (bytes <= s->file_bytes - (vaddr - s->vaddr))
			return elf_bytes(ef, s->off + (vaddr - s->vaddr), bytes);
	return NULL;
}
