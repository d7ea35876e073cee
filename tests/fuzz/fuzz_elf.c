/* SPDX-License-Identifier: MIT */
/* fuzz_elf.c - the ELF reader on files of any content. */
#include "fuzz.h"

#include "cost.h"
#include "elf/debug_only.h"
#include "elf/elf_file.h"
#include "elf/unwind_table.h"
#include "elf/elf_symbols.h"

/* Read every byte that was promised, so that the sanitizer sees a promise that does not hold. */
static unsigned int touch(const uint8_t *p, size_t bytes)
{
	unsigned int sum = 0;
	size_t i;

	for (i = 0; i<bytes; i += bytes> 4096 ? 509 : 1)
		sum += p[i];
	return bytes ? sum + p[bytes - 1] : sum;
}

static unsigned int touch_symbols(const struct elf_file *ef, uint32_t type)
{
	struct elf_symtab t;
	unsigned int sum = 0;
	GElf_Sym sym;

	if (!elf_file_symtab(ef, type, &t))
		return 0;
	for (size_t i = 0; i < t.cnt && i < 1024; i++) {
		const char *name = elf_symtab_get(&t, i, &sym);

		sum += name ? (unsigned int)strlen(name) : 0;
	}
	return sum;
}

static unsigned int touch_sections(struct elf_file *ef)
{
	unsigned int sum = 0;
	struct elf_section sec;
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;

	for (int i = 0; i < 256 && (scn = elf_nextscn(elf_file_elf(ef), scn)); i++) {
		const char *name = elf_file_section_name(ef, scn);
		Elf_Data *data;

		sum += (unsigned int)strlen(name);
		/* Large claims are tested, but not every time: they only cost memory. */
		if (!gelf_getshdr(scn, &sh) || sh.sh_size >= 1 << 20)
			continue;
		data = elf_file_data(ef, scn);
		if (data)
			sum += touch(data->d_buf, data->d_size);
		if (!elf_file_section(ef, name, &sec))
			sum += touch(sec.data, sec.bytes);
	}
	return sum;
}

static int touch_note(void *ctx, const GElf_Nhdr *note, const char *name, const uint8_t *desc)
{
	unsigned int *sum = ctx;

	*sum += touch((const uint8_t *)name, note->n_namesz) + touch(desc, note->n_descsz);
	return 0;
}

static unsigned int touch_segments(const struct elf_file *ef)
{
	const struct elf_segment *segs;
	unsigned int sum = 0;
	size_t cnt, i, follow;
	uint64_t off, vaddr;

	segs = elf_file_segments(ef, &cnt);
	for (i = 0; i < cnt && i < 256; i++) {
		const uint8_t *p = elf_file_at(ef, segs[i].vaddr, 1 << 20, &follow);

		if (p)
			sum += touch(p, follow);
		if (!elf_file_vaddr_to_off(ef, segs[i].vaddr, &off) &&
		    elf_file_off_to_vaddr(ef, off, &vaddr))
			abort();
		if (elf_file_read(ef, segs[i].vaddr, segs[i].file_bytes) &&
		    segs[i].file_bytes > 1ULL << 30)
			abort();
	}
	return sum;
}

/* The reduced file is never much larger than the file; nothing is read but what is there. */
static void reduce(struct elf_file *ef, size_t bytes)
{
	struct debug_only *d;
	uint8_t piece[256];

	if (debug_only_new(ef, &d))
		return;
	if (debug_only_bytes(d) > 64ULL * bytes + 65536)
		abort();
	/* Without the file: -EBADF where one would be read. */
	for (uint64_t off = 0; off < debug_only_bytes(d) && off < 1 << 16; off += sizeof(piece))
		if (debug_only_read(d, -1, off, piece, sizeof(piece)) == 0)
			abort();
	debug_only_free(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char hex[2 * BUILD_ID_BYTES_CAP + 1];
	struct plt_stubs plt = { 0 };
	struct fde_index fdes;
	struct elf_file *ef;
	unsigned int sum = 0;
	uint64_t start, end, start_ns = cost_now_ns();

	if (elf_file_open_mem(data, bytes, &ef))
		return 0;
	elf_file_build_id_hex(ef, hex);
	sum += (unsigned int)strlen(hex);
	if (elf_file_soname(ef))
		sum += (unsigned int)strlen(elf_file_soname(ef));
	if (elf_file_interp(ef))
		sum += (unsigned int)strlen(elf_file_interp(ef));
	sum += touch_sections(ef);
	sum += touch_segments(ef);
	sum += touch_symbols(ef, SHT_DYNSYM) + touch_symbols(ef, SHT_SYMTAB);
	elf_file_each_note(ef, false, touch_note, &sum);
	elf_file_each_note(ef, true, touch_note, &sum);
	reduce(ef, bytes);
	fde_index_init(ef, &fdes);
	fde_index_find(&fdes, bytes, &start, &end);
	if (!plt_names_read(ef, &plt) && plt.stubs.cnt &&
	    !plt_names_at(&plt, plt.stubs.data[0].vaddr))
		abort();
	plt_names_release(&plt);
	cost_check(ef, start_ns, bytes);
	elf_file_close(ef);
	__asm__ volatile("" : : "r"(sum)); /* so that no read is optimised away */
	return 0;
}
