/* SPDX-License-Identifier: MIT */
/* test_debug_only.c - ELF files reduced to names and lines: what stays, what goes, damage. */
#include "unit.h"

#include <elf.h>
#include <sys/mman.h>

#include "../lib/find_symbol.h"
#include "elf/debug_only.h"
#include "open_elf.h"

static const uint8_t note[] = { 4,   0,	  0,   0, 5,	0,    0,    0,	  3,	0, 0, 0,
				'G', 'N', 'U', 0, 0xde, 0xad, 0xbe, 0xef, 0x01, 0, 0, 0 };
static const char code[] = "the code of the program, which is nobody's business";
static const char data[] = "a password in the data of the program";
static const char other[] = "bitcode, metadata and the like";
static const char dwarf[] = "not really DWARF, but all of it stays";

enum { TEXT = 1, NOTE, DATA, BSS, OTHER, INFO, SYMTAB, STRTAB, SECTION_CNT };

static struct made_elf program(size_t section_cnt)
{
	static struct made_symtab symbols;
	static struct made_section secs[] = {
		{ ".text", SHT_PROGBITS, 0, 0, SHF_ALLOC | SHF_EXECINSTR, code, sizeof(code), 0 },
		{ ".note.gnu.build-id", SHT_NOTE, 0, 0, SHF_ALLOC, note, sizeof(note), 0 },
		{ ".data", SHT_PROGBITS, 0, 0, SHF_ALLOC | SHF_WRITE, data, sizeof(data), 0 },
		{ ".bss", SHT_NOBITS, 0, 0, SHF_ALLOC | SHF_WRITE, NULL, 4096, 0 },
		{ ".llvmbc", SHT_PROGBITS, 0, 0, 0, other, sizeof(other), 0 },
		{ ".debug_info", SHT_PROGBITS, 0, 0, 0, dwarf, sizeof(dwarf), 0 },
		{ ".symtab", SHT_SYMTAB, STRTAB, 1, 0, symbols.syms, 0, sizeof(Elf64_Sym) },
		{ ".strtab", SHT_STRTAB, 0, 0, 0, symbols.strs, 0, 0 },
	};

	memset(&symbols, 0, sizeof(symbols));
	made_symtab_add(&symbols, "allocate", STB_GLOBAL, STT_FUNC, MADE_BIAS + 16, 8, TEXT);
	secs[SYMTAB - 1].bytes = symbols.cnt * sizeof(Elf64_Sym);
	secs[STRTAB - 1].bytes = symbols.str_bytes;
	return keep_elf(made_elf_new(secs, section_cnt));
}

static int fd_of(const void *bytes, size_t n)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), (ssize_t)n);
	return fd;
}

/* The reduced file, read in pieces of `step`. */
static uint8_t *read_all(const struct debug_only *d, int fd, size_t step)
{
	uint64_t total = debug_only_bytes(d);
	uint8_t *out = malloc(total);

	assert_non_null(out);
	for (uint64_t at = 0; at < total;) {
		ssize_t n = debug_only_read(d, fd, at, out + at, step);

		assert_true(n > 0);
		at += (uint64_t)n;
		assert_true(at <= total);
	}
	assert_int_equal(debug_only_read(d, fd, total, out, 1), 0);
	return out;
}

static bool contains(const uint8_t *p, size_t bytes, const char *what)
{
	return memmem(p, bytes, what, strlen(what));
}

TEST(what_stays_and_what_goes)
{
	struct made_elf m = program(SECTION_CNT - 1);
	int fd = keep_fd(fd_of(m.data, m.bytes));
	struct elf_file *ef, *reduced;
	char id[2 * BUILD_ID_BYTES_CAP + 1];
	struct elf_section sec;
	struct debug_only *d;
	uint8_t *bytes;
	GElf_Shdr sh;
	size_t cnt;
	Elf *elf;

	assert_int_equal(elf_file_open_fd(fd, &ef), 0);
	assert_int_equal(debug_only_new(ef, &d), 0);
	elf_file_close(ef);
	bytes = read_all(d, fd, 1 << 16);
	assert_false(contains(bytes, debug_only_bytes(d), "password"));
	assert_false(contains(bytes, debug_only_bytes(d), "business"));
	assert_false(contains(bytes, debug_only_bytes(d), "bitcode"));
	assert_int_equal(elf_file_open_mem(bytes, debug_only_bytes(d), &reduced), 0);
	elf_file_build_id_hex(reduced, id);
	assert_string_equal(id, "deadbeef01");
	assert_int_equal(elf_file_section(reduced, ".debug_info", &sec), 0);
	assert_int_equal(sec.bytes, sizeof(dwarf));
	assert_memory_equal(sec.data, dwarf, sizeof(dwarf));
	assert_int_equal(elf_file_section(reduced, ".text", &sec), -ENOENT);
	elf = elf_file_elf(reduced);
	assert_int_equal(elf_getshdrnum(elf, &cnt), 0);
	assert_int_equal(cnt, SECTION_CNT + 1); /* the null section, and .shstrtab behind */
	assert_string_equal(elf_file_section_name(reduced, elf_getscn(elf, TEXT)), ".text");
	assert_non_null(gelf_getshdr(elf_getscn(elf, TEXT), &sh));
	assert_int_equal(sh.sh_type, SHT_NOBITS);
	assert_int_equal(sh.sh_size, sizeof(code));
	assert_int_equal(sh.sh_addr, made_elf_vaddr(&m, TEXT));
	assert_non_null(gelf_getshdr(elf_getscn(elf, DATA), &sh));
	assert_int_equal(sh.sh_type, SHT_NOBITS);
	assert_non_null(gelf_getshdr(elf_getscn(elf, BSS), &sh));
	assert_int_equal(sh.sh_size, 4096);
	assert_non_null(gelf_getshdr(elf_getscn(elf, SYMTAB), &sh));
	assert_int_equal(sh.sh_type, SHT_SYMTAB);
	assert_int_equal(sh.sh_link, STRTAB);
	elf_file_close(reduced);
	free(bytes);
	debug_only_free(d);
}

TEST(pieces_of_any_size_are_the_same)
{
	static const size_t steps[] = { 1, 7, 64, 100, 4096 };
	struct made_elf m = program(SECTION_CNT - 1);
	int fd = keep_fd(fd_of(m.data, m.bytes));
	struct elf_file *ef;
	struct debug_only *d;
	uint8_t *whole;

	assert_int_equal(elf_file_open_fd(fd, &ef), 0);
	assert_int_equal(debug_only_new(ef, &d), 0);
	elf_file_close(ef);
	whole = read_all(d, fd, 1 << 20);
	each_case(c, steps) {
		uint8_t *again = read_all(d, fd, *c);

		assert_memory_equal(again, whole, debug_only_bytes(d));
		free(again);
	}
	assert_int_equal(ftruncate(fd, 100), 0);
	assert_int_equal(debug_only_read(d, fd, 0, whole, debug_only_bytes(d)), -EIO);
	free(whole);
	debug_only_free(d);
}

TEST(without_names_there_is_nothing_to_send)
{
	struct made_elf m = program(OTHER);
	struct debug_only *d = NULL;
	struct elf_file *ef;

	assert_int_equal(elf_file_open_mem(m.data, m.bytes, &ef), 0);
	assert_int_equal(debug_only_new(ef, &d), -ENODATA);
	assert_null(d);
	elf_file_close(ef);
	m.data[EI_CLASS] = ELFCLASS32;
	if (!elf_file_open_mem(m.data, m.bytes, &ef)) {
		assert_int_equal(debug_only_new(ef, &d), -ENOTSUP);
		elf_file_close(ef);
	}
}

static int reduce_mem(const struct made_elf *m)
{
	struct debug_only *d = NULL;
	struct elf_file *ef;
	int err = elf_file_open_mem(m->data, m->bytes, &ef);

	assert_int_equal(err, 0);
	err = debug_only_new(ef, &d);
	elf_file_close(ef);
	debug_only_free(d);
	return err;
}

TEST(damage_is_refused)
{
	struct made_elf m = program(SECTION_CNT - 1);
	Elf64_Shdr good = m.shdrs[INFO];

	m.shdrs[INFO].sh_offset = m.bytes - 1;
	assert_int_equal(reduce_mem(&m), -ENOEXEC);
	m.shdrs[INFO].sh_offset = UINT64_MAX - 8;
	assert_int_equal(reduce_mem(&m), -ENOEXEC);
	m.shdrs[INFO] = good;
	assert_int_equal(reduce_mem(&m), 0);
	/* The same bytes again and again would make a large file out of a small one. */
	for (size_t i = INFO; i < SECTION_CNT; i++) {
		m.shdrs[i].sh_type = SHT_SYMTAB;
		m.shdrs[i].sh_offset = 0;
		m.shdrs[i].sh_size = m.bytes;
	}
	assert_int_equal(reduce_mem(&m), -ENOEXEC);
}

/* A real program: this one. */
TEST(symbols_of_a_real_program)
{
	int fd = keep_fd(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
	struct elf_symbols *before, *after;
	struct elf_symbol was, is;
	struct elf_file *ef, *reduced;
	struct debug_only *d;
	uint8_t *bytes;

	assert_int_equal(elf_file_open_fd(fd, &ef), 0);
	assert_int_equal(debug_only_new(ef, &d), 0);
	bytes = read_all(d, fd, 1 << 20);
	assert_true(debug_only_bytes(d) < (uint64_t)lseek(fd, 0, SEEK_END));
	assert_int_equal(elf_file_open_mem(bytes, debug_only_bytes(d), &reduced), 0);
	before = load_symbols(ef, NULL);
	after = load_symbols(reduced, NULL);
	assert_int_equal(find_symbol(before, "debug_only_new", &was), 0);
	assert_int_equal(find_symbol(after, "debug_only_new", &is), 0);
	assert_int_equal(is.vaddr, was.vaddr);
	elf_file_close(reduced);
	elf_file_close(ef);
	free(bytes);
	debug_only_free(d);
}

RUN_TESTS()
