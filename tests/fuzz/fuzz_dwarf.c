/* SPDX-License-Identifier: MIT */
/*
 * fuzz_dwarf.c - ELF files with damaged DWARF, through the unpacking of sections and the lookup.
 *
 * The input is a whole file. The addresses asked are those where the seeds have their code, and
 * some that no file has. In real life all this happens in the helper process; here it must not
 * crash at all.
 */
#include "fuzz.h"

#include <sys/mman.h>

#include "symbol/dwarf_lookup.h"

#define INPUT_CAP (256 << 10)
#define SEED_TEXT_VADDR 0x1000
#define ADDR_CNT 72

/* Each string is read, each address answered at most once. */
static int check(void *ctx, size_t addr_idx, const struct dwarf_frame *frames, size_t frame_cnt)
{
	uint8_t *seen = ctx;
	size_t length = 0;

	if (addr_idx >= ADDR_CNT || seen[addr_idx]++ || frame_cnt < 1 ||
	    frame_cnt > DWARF_FRAMES_CAP)
		abort();
	for (size_t i = 0; i < frame_cnt; i++) {
		const char *const strings[] = { frames[i].name, frames[i].qualified_name,
						frames[i].linkage_name, frames[i].file };

		for (size_t k = 0; k < 4; k++)
			for (const char *p = strings[k]; p && *p; p++)
				length++;
	}
	return length > (1u << 30);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	uint64_t vaddr[ADDR_CNT];
	uint8_t seen[ADDR_CNT] = { 0 };
	struct dwarf_lookup *dl;
	int fd;

	if (bytes > INPUT_CAP)
		return 0;
	for (size_t i = 0; i < ADDR_CNT; i++)
		vaddr[i] = SEED_TEXT_VADDR + 3 * i;
	vaddr[ADDR_CNT - 2] = 1ULL << 47;
	vaddr[ADDR_CNT - 1] = UINT64_MAX;
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes)
		abort();
	/* a bound of one byte: the handle is opened again after every unit */
	if (dwarf_lookup_open(fd, -1, bytes % 2 ? 1 : 64 << 20, &dl) == 0) {
		(void)dwarf_lookup_run(dl, vaddr, ADDR_CNT, check, seen);
		dwarf_lookup_free(dl);
	}
	close(fd);
	return 0;
}
