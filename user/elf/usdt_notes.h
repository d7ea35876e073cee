/* SPDX-License-Identifier: MIT */
/*
 * usdt_notes.h - the statically defined probes (USDT) that a file lists in .note.stapsdt.
 *
 * The format is SystemTap's: a note named "stapsdt" of type 3 for each probe site. It has the addresses of the site, of
 * .stapsdt.base as linked, and of the probe's semaphore, then the strings provider, name and arguments.
 */
#ifndef HT_ELF_USDT_NOTES_H
#define HT_ELF_USDT_NOTES_H

#include <stddef.h>
#include <stdint.h>

struct elf_file;

/* At most this many sites of one provider are returned, even if the file has more. */
#define USDT_NOTES_CAP 4096

struct usdt_note {
	const char *provider, *name, *args; /* owned by the file */
	uint64_t location_vaddr;
	uint64_t location_off;
	uint64_t semaphore_vaddr; /* 0: the probe has none */
	uint64_t semaphore_off; /* 0: none, or no byte of the file belongs to it (.bss) */
};

/*
 * All sites of a provider, in file order; the caller frees *ret. A site outside the code that the file maps
 * is left out. -ENOENT: none.
 */
int usdt_notes_find(struct elf_file *ef, const char *provider, struct usdt_note **ret,
		    size_t *ret_cnt);

#endif
