/* SPDX-License-Identifier: MIT */
/*
 * alloc_inlined.c - finds an allocator that was inlined into its callers.
 *
 * The code is searched for direct branches to a slow way or to its PLT stub, byte by byte: that a branch is found where
 * there is none takes four bytes that are the right distance by chance. What is near belongs to the allocator, none of
 * which is larger than that.
 */
#include "alloc/allocators_priv.h"

#include "elf/elf_file.h"

#define NEAR_BYTES (512 << 10)
#define TARGETS_CAP (2 * ALLOC_SLOW_WAYS_CAP)
/* A byte takes about a ns. */
#define BYTES_PER_STEP 8
#define PIECE_BYTES (1 << 20) /* read at once */

static const struct {
	const char *suffix;
	uint32_t is;
} suffixes[] = {
	/* jemalloc 5.2 and later, with its prefix and its private one: je_je_, duckdb_je_ */
	{ "je_malloc_default", ALLOC_INLINED_ALLOCS },
	{ "je_free_default", ALLOC_INLINED_FREES },
	{ "je_sdallocx_default", ALLOC_INLINED_FREES },
	{ "_mi_malloc_generic", ALLOC_INLINED_ALLOCS },
	{ "_mi_theap_malloc_generic", ALLOC_INLINED_ALLOCS },
	{ "mi_free_generic_local", ALLOC_INLINED_FREES },
};

void alloc_slow_note(struct alloc_slow_ways *sw, const struct elf_symbol *sym)
{
	size_t bytes;

	if (sym->name[0] == '_' && (sym->name[1] == 'Z' || sym->name[1] == 'R'))
		return;
	bytes = strlen(sym->name);
	for (size_t i = 0; i < ARRAY_CNT(suffixes); i++) {
		size_t len = strlen(suffixes[i].suffix);

		if (bytes < len || bytes >= sizeof(sw->way[0].name) ||
		    strcmp(sym->name + bytes - len, suffixes[i].suffix) != 0 ||
		    sw->cnt == ALLOC_SLOW_WAYS_CAP)
			continue;
		sw->way[sw->cnt].vaddr = sym->vaddr;
		memcpy(sw->way[sw->cnt].name, sym->name, bytes + 1);
		sw->way[sw->cnt++].is = suffixes[i].is;
		return;
	}
}

struct target {
	uint64_t vaddr, of; /* the slow way, or its stub; the slow way */
	uint32_t is;
};

static size_t list_targets(const struct plt_stubs *plt, const struct alloc_slow_ways *sw,
			   struct target targets[static TARGETS_CAP])
{
	const struct plt_stub *stub;
	size_t cnt = 0;

	for (size_t i = 0; i < sw->cnt; i++)
		targets[cnt++] =
			(struct target){ sw->way[i].vaddr, sw->way[i].vaddr, sw->way[i].is };
	vec_each(&plt->stubs, stub)
		for (size_t i = 0; i < sw->cnt && cnt < TARGETS_CAP; i++)
			if (stub->name && !strcmp(stub->name, sw->way[i].name))
				targets[cnt++] = (struct target){ stub->vaddr, sw->way[i].vaddr,
								  sw->way[i].is };
	return cnt;
}

static uint32_t search(const uint8_t *p, size_t bytes, uint64_t vaddr, const struct target *targets,
		       size_t cnt)
{
	uint32_t found = 0;
	int32_t disp;

	for (size_t i = 0; i + 5 <= bytes; i++) {
		uint64_t to;

		if ((p[i] & 0xfe) != 0xe8)
			continue;
		memcpy(&disp, p + i + 1, sizeof(disp));
		to = vaddr + i + 5 + (uint64_t)(int64_t)disp;
		for (size_t k = 0; k < cnt; k++) {
			uint64_t far = vaddr + i - targets[k].of;

			if (to == targets[k].vaddr && far + NEAR_BYTES > 2ULL * NEAR_BYTES)
				found |= targets[k].is;
		}
	}
	return found;
}

uint32_t alloc_inlined_find(const struct elf_file *ef, const struct plt_stubs *plt,
			    const struct alloc_slow_ways *sw)
{
	const uint32_t all = ALLOC_INLINED_ALLOCS | ALLOC_INLINED_FREES;
	struct target targets[TARGETS_CAP];
	size_t cnt = list_targets(plt, sw, targets), seg_cnt;
	const struct elf_segment *segs = elf_file_segments(ef, &seg_cnt);
	uint32_t found = 0;

	for (size_t i = 0; cnt && i < seg_cnt; i++) {
		uint64_t vaddr = segs[i].vaddr, end = vaddr + segs[i].file_bytes;

		while (segs[i].is_exec && vaddr < end && found != all) {
			size_t bytes;
			const uint8_t *p = elf_file_at(ef, vaddr, PIECE_BYTES, &bytes);

			if (!p || !elf_file_step(ef, bytes / BYTES_PER_STEP))
				return found;
			bytes = bytes < end - vaddr ? bytes : end - vaddr;
			found |= search(p, bytes, vaddr, targets, cnt);
			/* a branch may lie on the edge of two pieces */
			vaddr += bytes > 4 && vaddr + bytes < end ? bytes - 4 : bytes;
		}
	}
	return found;
}
