/* SPDX-License-Identifier: MIT */
/*
 * usdt_notes.h - the statically defined probes (USDT) that a file lists in .note.stapsdt.
 *
 * The format is SystemTap's: a note named "stapsdt" of type 3 for each probe site. It has the addresses of the site, of
 * .stapsdt.base as linked, and of the probe's semaphore, then the strings provider, name and arguments.
 */
#ifndef HT_ELF_USDT_NOTES_H
#define HT_ELF_USDT_NOTES_H

#include "base/std.h"
#include "heaptap/abi.h"

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

/*
 * The places of the arguments of a statically defined probe.
 *
 * A note describes them as the assembler wrote them, "8@%rdi -4@$5 8@-16(%rbp)": for each argument its size in bytes,
 * negative if it is signed, and an operand in the syntax of the machine. The source of the format is SystemTap's
 * <sys/sdt.h>. The size may be missing: then it is the machine's word.
 *
 * Parse the first cnt operands of a note's arguments, in order; there may be more. -EINVAL: there are fewer, or one is
 * not understood. -ENOTSUP: an argument is in a place that heaptap does not read (a float, a symbol).
 */
int usdt_operands_parse(const char *args, struct ht_operand *ret, size_t cnt);

#endif
