/* SPDX-License-Identifier: MIT */
/*
 * usdt_notes.c - the statically defined probes of a file.
 *
 * The section name is tried first, because the notes are usually not loaded: strip keeps the section, and no program
 * header covers it. A file without a section table has notes only if its maker put the section into the image; then
 * PT_NOTE tells where.
 *
 * The addresses in a note are those of link time. A tool that moves a finished file (prelink) does not know the notes,
 * but it does move the section .stapsdt.base, whose old address is in every note: the difference is added to the site
 * and to the semaphore. Without that section there is nothing to correct by.
 */
#include "elf/usdt_notes.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "elf/elf_file.h"

#define NOTE_NAME "stapsdt"
#define NOTE_TYPE 3
#define ADDRESSES_BYTES 24 /* site, base, semaphore */

struct search {
	const struct elf_file *ef;
	const char *provider;
	uint64_t base_vaddr; /* vaddr of .stapsdt.base; 0: no such section */
	uint32_t seen_cnt; /* notes of the provider, returned or not: bounds the work */
	VEC(struct usdt_note) notes;
};

static bool is_code(const struct elf_file *ef, uint64_t vaddr)
{
	const struct elf_segment *seg = elf_file_segment_at(ef, vaddr);

	return seg && seg->is_exec && vaddr - seg->vaddr < seg->file_bytes;
}

/* Take the string at *pos and move *pos behind it. NULL: it does not end before end. */
static const char *take_string(const uint8_t **pos, const uint8_t *end)
{
	const uint8_t *zero = memchr(*pos, 0, (size_t)(end - *pos));
	const char *str = (const char *)*pos;

	if (!zero)
		return NULL;
	*pos = zero + 1;
	return str;
}

/* Add a stapsdt note; desc[0, bytes) is its description. */
static int add_note(struct search *s, const uint8_t *desc, size_t bytes)
{
	const uint8_t *pos = desc + ADDRESSES_BYTES, *end = desc + bytes;
	struct usdt_note note = { 0 };
	uint64_t addr[3]; /* site, base, semaphore */

	if (bytes < ADDRESSES_BYTES || s->seen_cnt == USDT_NOTES_CAP)
		return 0;
	memcpy(addr, desc, sizeof(addr));
	note.provider = take_string(&pos, end);
	note.name = note.provider ? take_string(&pos, end) : NULL;
	note.args = note.name ? take_string(&pos, end) : NULL;
	if (!note.args || strcmp(note.provider, s->provider))
		return 0;
	s->seen_cnt++;
	note.location_vaddr = addr[0];
	note.semaphore_vaddr = addr[2];
	if (s->base_vaddr && addr[1]) {
		note.location_vaddr += s->base_vaddr - addr[1];
		if (addr[2])
			note.semaphore_vaddr += s->base_vaddr - addr[1];
	}
	if (!is_code(s->ef, note.location_vaddr) ||
	    elf_file_vaddr_to_off(s->ef, note.location_vaddr, &note.location_off))
		return 0;
	if (note.semaphore_vaddr &&
	    elf_file_vaddr_to_off(s->ef, note.semaphore_vaddr, &note.semaphore_off))
		note.semaphore_off = 0;
	return vec_push(&s->notes, note);
}

static int on_note(void *ctx, const GElf_Nhdr *note, const char *name, const uint8_t *desc)
{
	if (note->n_type != NOTE_TYPE || note->n_namesz != sizeof(NOTE_NAME) ||
	    memcmp(name, NOTE_NAME, sizeof(NOTE_NAME)) != 0)
		return 0;
	return add_note(ctx, desc, note->n_descsz);
}

int usdt_notes_find(struct elf_file *ef, const char *provider, struct usdt_note **ret,
		    size_t *ret_cnt)
{
	struct search s = { .ef = ef, .provider = provider };
	GElf_Shdr sh;
	int err;

	if (!elf_file_is_64(ef))
		return -ENOENT;
	if (gelf_getshdr(elf_file_find(ef, ".stapsdt.base"), &sh))
		s.base_vaddr = sh.sh_addr;
	err = elf_file_each_note(ef, false, on_note, &s);
	if (!err && !s.notes.cnt)
		err = elf_file_each_note(ef, true, on_note, &s);
	if (!err && !s.notes.cnt)
		err = -ENOENT;
	if (err) {
		vec_release(&s.notes);
		return err;
	}
	*ret = s.notes.data;
	*ret_cnt = s.notes.cnt;
	return 0;
}
