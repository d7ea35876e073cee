/* SPDX-License-Identifier: MIT */
/* alloc_unseen.c - see allocators.h. */

#include "alloc/allocators_priv.h"
#include "elf/elf_file.h"

/*
 * The texts of an allocator's messages, which a stripped file still has.
 *
 * A family's texts are in the order of likelihood: the first is in nearly every file that has the second, but programs
 * that read an allocator's output have it, too. So both must be there. heaptap itself has none of them in one piece.
 */
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

void alloc_unseen_find(struct elf_file *ef, const struct alloc_file *af, struct alloc_unseen *ret)
{
	const char *family = "jemalloc";

	memset(ret, 0, sizeof(*ret));
	if (af && af->inlined) {
		family = af->inlined;
		ret->kind = ALLOC_UNSEEN_INLINED;
	} else if (af && af->plain != ALLOC_PLAIN_NOT) {
		ret->kind =
			af->plain == ALLOC_PLAIN_FREED ? ALLOC_UNSEEN_PARTS : ALLOC_UNSEEN_FREES;
	} else {
		family = alloc_contents(ef, af ? af->family_bits : 0);
		ret->kind = family ? ALLOC_UNSEEN_ALL : ALLOC_UNSEEN_NONE;
	}
	snprintf(ret->family, sizeof(ret->family), "%s", family ? family : "");
}

const char *alloc_unseen_words(const struct alloc_unseen *u, char buf[ALLOC_UNSEEN_WORDS])
{
	static const char *const words[ALLOC_UNSEEN_CNT] = {
		[ALLOC_UNSEEN_NONE] = "",
		[ALLOC_UNSEEN_ALL] =
			"contains %s, whose functions have no names: its allocations are not seen",
		[ALLOC_UNSEEN_PARTS] =
			"contains %s, of which only malloc and free have names: aligned blocks are "
			"not seen",
		[ALLOC_UNSEEN_FREES] =
			"contains %s, of which only malloc and free have names: other frees are not "
			"seen",
		[ALLOC_UNSEEN_INLINED] =
			"contains %s, inlined into its callers: their allocations are not seen",
		[ALLOC_UNSEEN_FOREIGN] =
			"contains %s, but is on a file system that another user serves (FUSE) and "
			"is not probed: its allocations are not seen",
	};

	/* NOLINTNEXTLINE(clang-diagnostic-format-nonliteral) */
	snprintf(buf, ALLOC_UNSEEN_WORDS, words[u->kind < ALLOC_UNSEEN_CNT ? u->kind : 0],
		 u->family);
	return buf;
}
