/* SPDX-License-Identifier: MIT */
/*
 * alloc_contents.c - see alloc_contents.h.
 *
 * A family's texts are in the order of likelihood: the first is in nearly every file that has the second, but programs
 * that read an allocator's output have it, too. So both must be there. heaptap itself has none of them in one piece.
 */
#include "alloc/alloc_contents.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "alloc/alloc_table.h"
#include "elf/elf_file.h"

#define ARRAY_CNT(a) (sizeof(a) / sizeof((a)[0]))
#define TEXT_BYTES 64
/* memmem() looks at some bytes in a ns. */
#define BYTES_PER_STEP 16

static const struct {
	const char *family;
	const char *text[2][2]; /* two texts, each in two pieces */
} families[] = {
	{ "jemalloc", { { "<jemal", "loc>: " }, { "arenas.", "narenas" } } },
	{ "mimalloc", { { "mimal", "loc: error: " }, { "mimal", "loc: warning: " } } },
	{ "tcmalloc", { { "tcmal", "loc: large alloc" }, { "TCMALLOC", "_" } } },
	{ "tcmalloc", { { "tcmal", "loc.max_total_thread" }, { "TCMALLOC", "_" } } },
};

static bool has_text(const struct elf_section *s, const char *const piece[2])
{
	char text[TEXT_BYTES];
	int bytes = snprintf(text, sizeof(text), "%s%s", piece[0], piece[1]);

	return memmem(s->data, s->bytes, text, (size_t)bytes) != NULL;
}

const char *alloc_contents(struct elf_file *ef, uint32_t known_bits)
{
	struct elf_section s;

	if (elf_file_section(ef, ".rodata", &s))
		return NULL;
	for (size_t i = 0; i < ARRAY_CNT(families); i++) {
		if (alloc_family_bit(families[i].family) & known_bits)
			continue;
		if (!elf_file_step(ef, s.bytes / BYTES_PER_STEP))
			return NULL;
		if (has_text(&s, families[i].text[0]) && has_text(&s, families[i].text[1]))
			return families[i].family;
	}
	return NULL;
}
