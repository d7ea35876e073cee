/* SPDX-License-Identifier: MIT */
/*
 * test_elf_symbols.c - address -> symbol: which name wins, what a gap is, where names come from.
 */
#include "unit.h"

#include <elf.h>
#include <lzma.h>
#include <sys/mman.h>

#include "../lib/find_symbol.h"
#include "open_elf.h"

#define TEXT_BYTES 0x8000

static const uint8_t text[TEXT_BYTES];

/* .text is section 1, so its address is the same in every file made here. */
static struct made_elf with_table(const struct made_symtab *t, uint32_t type, const void *packed,
				  size_t packed_bytes)
{
	struct made_section s[] = {
		{ .name = ".text",
		  .type = SHT_PROGBITS,
		  .flags = SHF_ALLOC | SHF_EXECINSTR,
		  .data = text,
		  .bytes = sizeof(text) },
		{ .name = ".symtab",
		  .type = type,
		  .link = 3,
		  .data = t ? t->syms : NULL,
		  .bytes = t ? t->cnt * sizeof(Elf64_Sym) : 0,
		  .entry_bytes = sizeof(Elf64_Sym) },
		{ .name = ".strtab",
		  .type = SHT_STRTAB,
		  .data = t ? t->strs : NULL,
		  .bytes = t ? t->str_bytes : 0 },
		{ .name = ".gnu_debugdata",
		  .type = SHT_PROGBITS,
		  .data = packed,
		  .bytes = packed_bytes },
	};

	return keep_elf(made_elf_new(s, 4)); /* always four: .text must not move */
}

static uint64_t text_vaddr(void)
{
	struct made_elf m = with_table(NULL, SHT_SYMTAB, NULL, 0);
	uint64_t v = made_elf_vaddr(&m, 1);

	return v;
}

#define FN STT_FUNC
#define NOTYPE STT_NOTYPE
#define G STB_GLOBAL
#define W STB_WEAK
#define L STB_LOCAL
#define UNDEF SHN_UNDEF

TEST(test_which_name)
{
	static const struct {
		const char *name;
		int bind, type;
		uint64_t off, bytes;
		uint16_t shndx;
	} syms[] = {
		{ "local", L, FN, 0x100, 16, 1 },
		{ "weak", W, FN, 0x100, 16, 1 },
		{ "global", G, FN, 0x100, 16, 1 },
		{ "label", G, NOTYPE, 0x100, 0, 1 },
		{ "longer_name", G, FN, 0x200, 8, 1 },
		{ "short", G, FN, 0x200, 8, 1 },
		{ "bb", G, FN, 0x210, 8, 1 },
		{ "aa", G, FN, 0x210, 8, 1 },
		{ "only_label", G, NOTYPE, 0x300, 0, 1 },
		{ "object", G, STT_OBJECT, 0x310, 8, 1 },
		{ "file", L, STT_FILE, 0x318, 0, SHN_ABS },
		{ "import", G, FN, 0x320, 8, UNDEF },
		{ "outer", G, FN, 0x400, 0x100, 1 },
		{ "inner_label", L, NOTYPE, 0x440, 0, 1 },
		{ "inner_fn", L, FN, 0x480, 0x20, 1 },
		{ "versioned@@V_1", G, FN, 0x600, 8, 1 },
		{ "unsized", L, FN, 0x608, 0, 1 },
		{ "after", G, FN, 0x700, 8, 1 },
		{ "outside", G, FN, 1ULL << 40, 8, 1 },
		{ "alias_with_size", L, FN, 0x800, 32, 1 },
		{ "alias", G, FN, 0x800, 0, 1 },
		{ "ifunc", G, STT_GNU_IFUNC, 0x900, 8, 1 },
		{ "last", G, FN, TEXT_BYTES - 16, 0, 1 },
	};
	static const struct {
		uint64_t off;
		const char *want;
	} finds[] = {
		{ 0xff, NULL },		 { 0x100, "global" },	     { 0x10f, "global" },
		{ 0x110, NULL },	 { 0x200, "short" },	     { 0x210, "aa" },
		{ 0x300, "only_label" }, { 0x318, "only_label" },    { 0x320, "only_label" },
		{ 0x440, "outer" },	 { 0x4ff, "outer" },	     { 0x480, "inner_fn" },
		{ 0x49f, "inner_fn" },	 { 0x4a0, "outer" },	     { 0x500, NULL },
		{ 0x600, "versioned" },	 { 0x607, "versioned" },     { 0x608, "unsized" },
		{ 0x6ff, "unsized" },	 { 0x700, "after" },	     { 0x708, NULL },
		{ 0x800, "alias" },	 { 0x81f, "alias" },	     { 0x820, NULL },
		{ 0x900, "ifunc" },	 { TEXT_BYTES - 1, "last" }, { TEXT_BYTES, NULL },
		{ 1ULL << 40, NULL },
	};
	struct made_symtab *t = unit_keep(calloc(1, sizeof(*t)), free);
	uint64_t base = text_vaddr();
	const struct elf_symbol *all;
	struct elf_symbols *s;
	struct elf_file *ef;
	struct made_elf m;
	size_t i, cnt;

	for (i = 0; i < sizeof(syms) / sizeof(syms[0]); i++)
		made_symtab_add(t, syms[i].name, syms[i].bind, syms[i].type, base + syms[i].off,
				syms[i].bytes, syms[i].shndx);
	m = with_table(t, SHT_SYMTAB, NULL, 0);
	ef = open_elf(&m);
	s = load_symbols(ef, NULL);
	for (i = 0; i < sizeof(finds) / sizeof(finds[0]); i++) {
		const struct elf_symbol *sym = elf_symbols_find(s, base + finds[i].off);

		if (!sym != !finds[i].want || (sym && strcmp(sym->name, finds[i].want)))
			fail_msg("+%llx is %s, not %s", (unsigned long long)finds[i].off,
				 sym ? sym->name : "nothing",
				 finds[i].want ? finds[i].want : "nothing");
	}
	all = elf_symbols_all(s, &cnt);
	for (i = 1; i < cnt; i++)
		assert_true(all[i - 1].vaddr < all[i].vaddr);
	elf_symbols_free(NULL);
}

struct seen {
	int functions, locals, import, outer;
};

static int count(void *ctx, const struct elf_symbol *sym)
{
	struct seen *seen = ctx;

	seen->functions++;
	seen->locals += sym->is_local;
	seen->import += !strcmp(sym->name, "import");
	seen->outer += !strcmp(sym->name, "alias_two");
	return 0;
}

TEST(test_by_name)
{
	struct made_symtab *t = unit_keep(calloc(1, sizeof(*t)), free);
	uint64_t base = text_vaddr();
	struct seen seen = { 0 };
	struct elf_symbol sym;
	struct elf_symbols *s;
	struct elf_file *ef;
	struct made_elf m;

	made_symtab_add(t, "alias_one", G, FN, base + 16, 4, 1);
	made_symtab_add(t, "alias_two@V_1", G, FN, base + 16, 4, 1);
	made_symtab_add(t, "hidden", L, FN, base + 32, 4, 1);
	made_symtab_add(t, "import", G, FN, 0, 0, UNDEF);
	made_symtab_add(t, "data", G, STT_OBJECT, base + 64, 4, 1);
	m = with_table(t, SHT_DYNSYM, NULL, 0);
	ef = open_elf(&m);
	s = load_symbols(ef, NULL);
	assert_int_equal(find_symbol(s, "alias_two", &sym), 0);
	assert_int_equal(sym.vaddr, base + 16);
	assert_int_equal(sym.bytes, 4);
	assert_string_equal(sym.name, "alias_two");
	assert_int_equal(find_symbol(s, "alias_one", &sym), 0);
	assert_int_equal(find_symbol(s, "hidden", &sym), 0);
	assert_true(sym.is_local);
	assert_int_equal(find_symbol(s, "import", &sym), -ENOENT);
	assert_int_equal(find_symbol(s, "data", &sym), -ENOENT);
	assert_int_equal(find_symbol(s, "alias", &sym), -ENOENT);
	assert_int_equal(elf_symbols_each(s, count, &seen), 0);
	assert_int_equal(seen.functions, 3);
	assert_int_equal(seen.locals, 1);
	assert_int_equal(seen.import, 0);
	assert_int_equal(seen.outer, 1);
}

/* Names from a separate debug file and from .gnu_debugdata, with the text's addresses. */
TEST(test_other_sources)
{
	struct made_symtab *own = unit_keep(calloc(1, sizeof(*own)), free),
			   *other = unit_keep(calloc(1, sizeof(*other)), free);
	uint8_t *packed = unit_keep(malloc(MADE_BYTES_CAP), free);
	uint64_t base = text_vaddr();
	struct elf_file *ef, *debug;
	struct made_elf m, om, zm;
	struct elf_symbols *s;
	size_t packed_bytes = 0;

	made_symtab_add(own, "own", G, FN, base, 16, 1);
	made_symtab_add(other, "other", L, FN, base + 64, 16, 1);
	om = with_table(other, SHT_SYMTAB, NULL, 0);
	assert_int_equal(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, NULL, om.data, om.bytes,
						 packed, &packed_bytes, MADE_BYTES_CAP),
			 LZMA_OK);
	m = with_table(own, SHT_DYNSYM, NULL, 0);
	zm = with_table(own, SHT_DYNSYM, packed, packed_bytes);

	ef = open_elf(&m);
	debug = open_elf(&om);
	s = load_symbols(ef, debug);
	assert_string_equal(elf_symbols_find(s, base)->name, "own");
	assert_string_equal(elf_symbols_find(s, base + 70)->name, "other");

	ef = open_elf(&zm);
	s = load_symbols(ef, NULL);
	assert_string_equal(elf_symbols_find(s, base + 70)->name, "other");

	/* A damaged .gnu_debugdata is no reason to lose the rest. */
	zm.data[zm.shdrs[4].sh_offset + packed_bytes / 2] ^= 0xff;
	ef = open_elf(&zm);
	s = load_symbols(ef, NULL);
	assert_string_equal(elf_symbols_find(s, base)->name, "own");
	assert_null(elf_symbols_find(s, base + 70));
}

/* Thousands of symbols in random order against a linear search. */
TEST(test_against_linear_search)
{
	struct made_symtab *t = unit_keep(calloc(1, sizeof(*t)), free);
	uint64_t base = text_vaddr(), seed = 1;
	struct elf_symbols *s;
	struct elf_file *ef;
	struct made_elf m;
	char name[16];
	size_t i, k;

	for (i = 0; i < 3000; i++) {
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		snprintf(name, sizeof(name), "f%zu", i);
		made_symtab_add(t, name, L, FN, base + (i * 7919 % 4096) * 8, 1 + (seed >> 60) % 8,
				1);
	}
	m = with_table(t, SHT_SYMTAB, NULL, 0);
	ef = open_elf(&m);
	s = load_symbols(ef, NULL);
	for (i = 0; i < TEXT_BYTES; i++) {
		const struct elf_symbol *sym = elf_symbols_find(s, base + i);
		const char *want = NULL;

		for (k = 1; k < t->cnt && !want; k++)
			if (base + i - t->syms[k].st_value < t->syms[k].st_size)
				want = t->strs + t->syms[k].st_name;
		assert_int_equal(!sym, !want);
		if (sym)
			assert_string_equal(sym->name, want);
	}
}

/* Damage: string table without end, name offsets and links that lead nowhere. */
TEST(test_damaged_tables)
{
	struct made_symtab *t = unit_keep(calloc(1, sizeof(*t)), free);
	uint64_t base = text_vaddr();
	int what;

	made_symtab_add(t, "f", G, FN, base, 4, 1);
	made_symtab_add(t, "g", G, FN, base + 16, 4, 1);
	for (what = 0; what < 7; what++) {
		struct made_elf m = with_table(t, SHT_SYMTAB, NULL, 0);
		Elf64_Sym *syms = (Elf64_Sym *)(m.data + m.shdrs[2].sh_offset);
		const struct elf_symbol *sym;
		struct elf_symbols *s;
		struct elf_file *ef;

		switch (what) {
		case 0:
			m.shdrs[3].sh_size--; /* "g" has no end any more */
			break;
		case 1:
			syms[2].st_name = UINT32_MAX;
			break;
		case 2:
			m.shdrs[2].sh_link = 4000;
			break;
		case 3:
			m.shdrs[2].sh_size = 1ULL << 50;
			break;
		case 4:
			m.shdrs[3].sh_size = 0;
			break;
		case 5:
			syms[2].st_size = UINT64_MAX;
			break;
		case 6:
			syms[2].st_name = 2; /* the end of "f": a name without characters */
			break;
		}
		ef = open_elf(&m);
		s = load_symbols(ef, NULL);
		sym = elf_symbols_find(s, base);
		if (what < 2 || what > 4)
			assert_string_equal(sym->name, "f");
		else
			assert_null(sym);
		sym = elf_symbols_find(s, base + 16);
		if (what == 5)
			assert_string_equal(sym->name, "g");
		else
			assert_null(sym);
	}
}

/* A file of any size costs nothing to make: names that would take too much memory are not read. */
TEST(test_sparse_names)
{
	const uint64_t names_off = 1 << 21, names_bytes = 1ULL << 30;
	struct made_symtab *t = unit_keep(calloc(1, sizeof(*t)), free);
	int fd = keep_fd(memfd_create("sparse", MFD_CLOEXEC));
	uint64_t base = text_vaddr();
	struct elf_symbols *s;
	struct made_elf m;
	struct elf_file *ef;

	made_symtab_add(t, "f", G, FN, base, 4, 1);
	m = with_table(t, SHT_SYMTAB, NULL, 0);
	m.shdrs[3].sh_offset = names_off;
	m.shdrs[3].sh_size = names_bytes;
	assert_int_equal(ftruncate(fd, (off_t)(names_off + names_bytes)), 0);
	assert_int_equal(pwrite(fd, m.data, m.bytes, 0), m.bytes);
	assert_int_equal(pwrite(fd, t->strs, t->str_bytes, names_off), t->str_bytes);
	assert_int_equal(elf_file_open_fd(fd, &ef), 0);
	s = load_symbols(ef, NULL);
	assert_null(elf_symbols_find(s, base));
	elf_file_close(ef);
}

/* This program's own PLT: an imported function is found by its stub, and only there. */
TEST(test_plt)
{
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	static const char *const paths[] = { "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
					     "/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6",
					     "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2" };
	int found = 0, files = 0;
	size_t k, cnt, bytes;

	each_case(c, paths) {
		const struct elf_symbol *all;
		struct elf_symbols *s;
		struct elf_file *ef;

		if (elf_file_open(*c, &ef))
			continue;
		files++;
		s = load_symbols(ef, NULL);
		all = elf_symbols_all(s, &cnt);
		for (k = 0; k < cnt; k++) {
			const uint8_t *code = elf_file_at(ef, all[k].vaddr, 64, &bytes);
			size_t len = strlen(all[k].name);
			bool named = len > 4 && !strcmp(all[k].name + len - 4, "@plt");

			assert_int_equal(named, all[k].is_plt);
			if (!named)
				continue;
			found++;
			if (bytes >= 4 && !memcmp(code, endbr, 4))
				code += 4;
			if (code[0] == 0xf2)
				code++;
			assert_int_equal(code[0], 0xff);
			assert_int_equal(code[1], 0x25);
			assert_ptr_equal(elf_symbols_find(s, all[k].vaddr + 3), &all[k]);
		}
		elf_file_close(ef);
	}
	if (!files)
		skip();
	assert_true(found > 0);
}

/* 5 000 look-ups in a library of more than 100 MB, from opening it. */
TEST(test_large_library)
{
	static const char *const paths[] = { "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1",
					     "/usr/lib/x86_64-linux-gnu/libLLVM-15.so.1" };
	struct timespec a, b;
	struct elf_symbols *s;
	struct elf_file *ef;
	const struct elf_segment *segs;
	uint64_t start = 0, bytes = 0;
	size_t i, cnt, hits = 0;
	double took;

	/* CPU time: other tests run at the same time */
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
	if (elf_file_open(paths[0], &ef) && elf_file_open(paths[1], &ef))
		skip();
	s = load_symbols(ef, NULL);
	segs = elf_file_segments(ef, &cnt);
	for (i = 0; i < cnt; i++)
		if (segs[i].is_exec) {
			start = segs[i].vaddr;
			bytes = segs[i].mem_bytes;
		}
	for (i = 0; i < 5000; i++)
		hits += elf_symbols_find(s, start + bytes / 5000 * i) != NULL;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
	took = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
	assert_true(hits > 100);
	if (took > 0.3)
		fail_msg("%.3f s", took);
	elf_file_close(ef);
}

RUN_TESTS()
