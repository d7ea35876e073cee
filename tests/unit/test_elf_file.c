/* SPDX-License-Identifier: MIT */
/*
 * test_elf_file.c - the ELF reader on sound, damaged and shrinking files.
 */
#include "unit.h"

#include <elf.h>
#include <sys/resource.h>
#include <zlib.h>
#include <zstd.h>

#include "open_elf.h"

static const uint8_t text[] = { 0x90, 0xc3, 0x55, 0xc3 };
static const uint8_t note[] = { 4,   0,	  0,   0, 5,	0,    0,    0,	  3,	0, 0, 0,
				'G', 'N', 'U', 0, 0xde, 0xad, 0xbe, 0xef, 0x01, 0, 0, 0 };

static struct made_elf plain(void)
{
	static const struct made_section secs[] = {
		{ .name = ".text",
		  .type = SHT_PROGBITS,
		  .flags = SHF_ALLOC | SHF_EXECINSTR,
		  .data = text,
		  .bytes = sizeof(text) },
		{ .name = ".note.gnu.build-id",
		  .type = SHT_NOTE,
		  .flags = SHF_ALLOC,
		  .data = note,
		  .bytes = sizeof(note) },
		{ .name = ".bss",
		  .type = SHT_NOBITS,
		  .flags = SHF_ALLOC | SHF_WRITE,
		  .bytes = 1 << 30 },
	};

	return keep_elf(made_elf_new(secs, 3));
}

TEST(test_sound)
{
	struct made_elf m = plain();
	char hex[2 * BUILD_ID_BYTES_CAP + 1];
	struct elf_section sec;
	struct elf_file *ef;
	const uint8_t *p;
	size_t bytes;

	ef = open_elf(&m);
	assert_true(elf_file_is_64(ef));
	assert_int_equal(elf_file_ehdr(ef)->e_machine, EM_X86_64);
	assert_int_equal(elf_file_ehdr(ef)->e_type, ET_DYN);
	elf_file_build_id_hex(ef, hex);
	assert_string_equal(hex, "deadbeef01");
	assert_null(elf_file_interp(ef));
	assert_null(elf_file_soname(ef));
	assert_false(elf_file_is_go(ef));
	elf_file_segments(ef, &bytes);
	assert_int_equal(bytes, 1);
	assert_int_equal(elf_file_section(ef, ".text", &sec), 0);
	assert_int_equal(sec.bytes, sizeof(text));
	assert_memory_equal(sec.data, text, sizeof(text));
	assert_int_equal(sec.vaddr, made_elf_vaddr(&m, 1));
	assert_int_equal(elf_file_section(ef, ".bss", &sec), -ENOENT);
	assert_int_equal(elf_file_section(ef, ".data", &sec), -ENOENT);
	p = elf_file_at(ef, sec.vaddr + 2, 9, &bytes);
	assert_int_equal(bytes, 2);
	assert_int_equal(*p, 0x55);
	assert_null(elf_file_at(ef, sec.vaddr + 4, 9, &bytes));
	assert_int_equal(bytes, 0);
	assert_non_null(elf_file_read(ef, sec.vaddr, 4));
	assert_null(elf_file_read(ef, sec.vaddr, 5));
	elf_file_close(NULL);
}

static void set_byte(struct made_elf *m, size_t off, uint8_t v)
{
	m->data[off] = v;
}

/* Damage to headers: what is changed, and what open says. */
TEST(test_damaged_headers)
{
	static const struct {
		const char *what;
		size_t off;
		uint64_t value;
		size_t bytes;
		int want;
	} cases[] = {
		{ "magic", 0, 0x7e, 1, -ENOEXEC },
		{ "class 0", EI_CLASS, 0, 1, -ENOEXEC },
		{ "class 3", EI_CLASS, 3, 1, -ENOEXEC },
		{ "other byte order", EI_DATA, ELFDATA2MSB, 1, -ENOEXEC },
		{ "program headers behind the end", offsetof(Elf64_Ehdr, e_phoff), 1ULL << 40, 8,
		  -ENOEXEC },
		{ "program headers wrap", offsetof(Elf64_Ehdr, e_phoff), UINT64_MAX - 8, 8,
		  -ENOEXEC },
		{ "program headers too many", offsetof(Elf64_Ehdr, e_phnum), 0xfffe, 2, -ENOEXEC },
		{ "program header too small", offsetof(Elf64_Ehdr, e_phentsize), 8, 2, -ENOEXEC },
		{ "segment wraps the file", sizeof(Elf64_Ehdr) + offsetof(Elf64_Phdr, p_filesz),
		  UINT64_MAX, 8, -ENOEXEC },
		{ "segment wraps memory", sizeof(Elf64_Ehdr) + offsetof(Elf64_Phdr, p_memsz),
		  UINT64_MAX, 8, -ENOEXEC },
		{ "no program headers", offsetof(Elf64_Ehdr, e_phnum), 0, 2, 0 },
		{ "section headers behind the end", offsetof(Elf64_Ehdr, e_shoff), 1ULL << 40, 8,
		  0 },
		{ "section headers too many", offsetof(Elf64_Ehdr, e_shnum), 0xfeff, 2, 0 },
		{ "section names nowhere", offsetof(Elf64_Ehdr, e_shstrndx), 0x7000, 2, 0 },
		{ "section header too small", offsetof(Elf64_Ehdr, e_shentsize), 8, 2, 0 },
	};
	size_t b;

	each_case(c, cases) {
		struct made_elf m = plain();
		struct elf_section sec;
		struct elf_file *ef = NULL;
		int err;

		for (b = 0; b < c->bytes; b++)
			set_byte(&m, c->off + b, (uint8_t)(c->value >> 8 * b));
		err = elf_file_open_mem(m.data, m.bytes, &ef);
		if (err != c->want)
			fail_msg("%s: %d", c->what, err);
		if (!err && strncmp(c->what, "section", 7) == 0)
			assert_int_equal(elf_file_section(ef, ".text", &sec), -ENOENT);
		elf_file_close(ef);
	}
}

/* Every prefix of a sound file, and every single byte set to 0xff: no crash. */
TEST(test_every_cut)
{
	struct made_elf m = plain();
	size_t i, bytes;
	Elf_Scn *scn;
	char hex[2 * BUILD_ID_BYTES_CAP + 1];

	for (i = 0; i < 2 * m.bytes; i++) {
		size_t len = i < m.bytes ? i : m.bytes;
		struct elf_section sec;
		uint8_t saved = 0;
		struct elf_file *ef;

		if (i >= m.bytes) {
			saved = m.data[i - m.bytes];
			m.data[i - m.bytes] = 0xff;
		}
		if (!elf_file_open_mem(m.data, len, &ef)) {
			elf_file_build_id_hex(ef, hex);
			for (scn = NULL; (scn = elf_nextscn(elf_file_elf(ef), scn));) {
				elf_file_data(ef, scn);
				elf_file_section(ef, elf_file_section_name(ef, scn), &sec);
			}
			elf_file_at(ef, made_elf_vaddr(&m, 1), 4096, &bytes);
			elf_file_close(ef);
		}
		if (i >= m.bytes)
			m.data[i - m.bytes] = saved;
	}
}

TEST(test_addresses)
{
	struct made_elf m = plain();
	uint64_t off = m.shdrs[1].sh_offset, v, o;
	struct elf_file *ef;

	/* Text at an offset inside a page, as lld lays it out, with zero-filled memory behind. */
	m.phdrs[0].p_vaddr = 0x7000 + off;
	m.phdrs[0].p_memsz = 0x5000;
	ef = open_elf(&m);
	assert_int_equal(elf_file_off_to_vaddr(ef, off + 3, &v), 0);
	assert_int_equal(v, 0x7000 + off + 3);
	assert_int_equal(elf_file_off_to_vaddr(ef, 0, &v), 0);
	assert_int_equal(v, 0x7000);
	assert_int_equal(elf_file_off_to_vaddr(ef, off + 4, &v), -ENOENT);
	assert_int_equal(elf_file_vaddr_to_off(ef, 0x7000 + off + 3, &o), 0);
	assert_int_equal(o, off + 3);
	assert_int_equal(elf_file_vaddr_to_off(ef, 0x7000 + off + 4, &o), -ENOENT);
	assert_int_equal(elf_file_vaddr_to_off(ef, 0, &o), -ENOENT);
}

/* Build ids: {where the note is damaged, hex that is left}. */
TEST(test_build_id_notes)
{
	static const struct {
		size_t off;
		uint8_t value;
		const char *want;
	} cases[] = {
		{ 0, 4, "deadbeef01" }, { 0, 5, "" }, { 0, 0xff, "" }, { 4, 0xff, "" },
		{ 4, 0, "" },		{ 8, 1, "" }, { 12, 'X', "" }, { 4, 4, "deadbeef" },
	};

	each_case(c, cases) {
		struct made_elf m = plain();
		char hex[2 * BUILD_ID_BYTES_CAP + 1];
		struct elf_file *ef;

		m.data[m.shdrs[2].sh_offset + c->off] = c->value;
		ef = open_elf(&m);
		elf_file_build_id_hex(ef, hex);
		assert_string_equal(hex, c->want);
		/* The same from the segment alone. */
		m.ehdr->e_shoff = 0;
		ef = open_elf(&m);
		elf_file_build_id_hex(ef, hex);
		assert_string_equal(hex, c->want);
	}
}

/* A compressed section: header (claimed size and type) and stream. */
static size_t pack(uint8_t *out, size_t cap, uint32_t type, uint64_t claim, const char *plain_text)
{
	Elf64_Chdr ch = { .ch_type = type, .ch_size = claim };
	size_t len = strlen(plain_text) + 1;

	memcpy(out, &ch, sizeof(ch));
	if (type == ELFCOMPRESS_ZLIB) {
		uLongf n = cap - sizeof(ch);

		assert_int_equal(compress(out + sizeof(ch), &n, (const Bytef *)plain_text, len),
				 Z_OK);
		return sizeof(ch) + n;
	}
	return sizeof(ch) + ZSTD_compress(out + sizeof(ch), cap - sizeof(ch), plain_text, len, 3);
}

TEST(test_compressed)
{
	static const char words[] = "so that it is worth packing, packing, packing, packing";
	static const struct {
		uint32_t type;
		uint64_t claim;
		int cut;
		int want;
	} cases[] = {
		{ ELFCOMPRESS_ZLIB, sizeof(words), 0, 0 },
		{ 2, sizeof(words), 0, 0 },
		{ ELFCOMPRESS_ZLIB, sizeof(words) + 1, 0, -ENOEXEC },
		{ ELFCOMPRESS_ZLIB, sizeof(words) - 1, 0, -ENOEXEC },
		{ 2, sizeof(words) + 1, 0, -ENOEXEC },
		{ 2, sizeof(words) - 1, 0, -ENOEXEC },
		{ ELFCOMPRESS_ZLIB, 1ULL << 29, 0, -ENOEXEC },
		{ ELFCOMPRESS_ZLIB, 1ULL << 40, 0, -EFBIG },
		{ 2, 1ULL << 40, 0, -EFBIG },
		{ 7, sizeof(words), 0, -ENOEXEC },
		{ ELFCOMPRESS_ZLIB, sizeof(words), 4, -ENOEXEC },
		{ 2, sizeof(words), 4, -ENOEXEC },
	};

	each_case(c, cases) {
		uint8_t buf[512];
		struct made_section s = { .name = ".debug_info",
					  .type = SHT_PROGBITS,
					  .flags = SHF_COMPRESSED,
					  .data = buf };
		struct elf_section sec, again;
		struct elf_file *ef;
		struct made_elf m;
		int err;

		s.bytes = pack(buf, sizeof(buf), c->type, c->claim, words) - (size_t)c->cut;
		m = keep_elf(made_elf_new(&s, 1));
		ef = open_elf(&m);
		err = elf_file_section(ef, ".debug_info", &sec);
		if (err != c->want)
			fail_msg("case %zu: %d", (size_t)(c - cases), err);
		if (!err) {
			assert_int_equal(sec.bytes, sizeof(words));
			assert_string_equal((const char *)sec.data, words);
			assert_int_equal(elf_file_section(ef, ".debug_info", &again), 0);
			assert_ptr_equal(again.data, sec.data);
		}
	}
}

TEST(test_32bit)
{
	Elf32_Ehdr h = { .e_type = ET_EXEC, .e_machine = EM_386 };
	struct elf_file *ef;

	memcpy(h.e_ident, ELFMAG, SELFMAG);
	h.e_ident[EI_CLASS] = ELFCLASS32;
	h.e_ident[EI_DATA] = ELFDATA2LSB;
	assert_int_equal(elf_file_open_mem(&h, sizeof(h), &ef), 0);
	assert_false(elf_file_is_64(ef));
	assert_int_equal(elf_file_ehdr(ef)->e_machine, EM_386);
	elf_file_close(ef);
	assert_int_equal(elf_file_open_mem(&h, sizeof(h) - 1, &ef), -ENOEXEC);
}

static int temp_file(char *path)
{
	memcpy(path, "/tmp/heaptap-test-XXXXXX", sizeof("/tmp/heaptap-test-XXXXXX"));
	return mkstemp(path);
}

/* A file that is cut while it is open: what was not read before is zeros, and nothing faults. */
TEST(test_shrinking_file)
{
	static uint8_t big[512 * 1024];
	struct made_section s[] = {
		{ .name = ".text",
		  .type = SHT_PROGBITS,
		  .flags = SHF_ALLOC | SHF_EXECINSTR,
		  .data = text,
		  .bytes = sizeof(text) },
		{ .name = ".far", .type = SHT_PROGBITS, .data = big, .bytes = sizeof(big) },
	};
	struct elf_section sec;
	struct elf_file *ef;
	struct made_elf m;
	char path[32];
	size_t i;
	int fd;

	memset(big, 0x41, sizeof(big));
	m = keep_elf(made_elf_new(s, 2));
	fd = keep_fd(temp_file(path));
	assert_true(fd >= 0);
	assert_int_equal(write(fd, m.data, m.bytes), (ssize_t)m.bytes);
	assert_int_equal(elf_file_open(path, &ef), 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(elf_file_section(ef, ".text", &sec), 0);
	assert_memory_equal(sec.data, text, sizeof(text));
	assert_int_equal(elf_file_section(ef, ".far", &sec), 0);
	for (i = 128 * 1024; i < sec.bytes - 128 * 1024; i++)
		assert_int_equal(sec.data[i], 0);
	elf_file_close(ef);
	assert_int_equal(elf_file_open(path, &ef), -ENOEXEC);
	unlink(path);
}

/* A file that is rewritten while it is open: libelf works with the headers that were checked. */
TEST(test_rewritten_file)
{
	struct made_elf m = plain();
	uint8_t *other = unit_keep(malloc(m.bytes), free);
	struct elf_section sec;
	struct elf_file *ef;
	char path[32];
	int fd = keep_fd(temp_file(path));

	assert_true(fd >= 0);
	memset(other, 0xff, m.bytes);
	assert_int_equal(write(fd, m.data, m.bytes), (ssize_t)m.bytes);
	assert_int_equal(elf_file_open(path, &ef), 0);
	assert_int_equal(pwrite(fd, other, m.bytes, 0), (ssize_t)m.bytes);
	assert_int_equal(elf_file_section(ef, ".text", &sec), 0);
	assert_int_equal(sec.bytes, sizeof(text));
	assert_string_equal(elf_file_section_name(ef, elf_getscn(elf_file_elf(ef), 3)), ".bss");
	elf_file_close(ef);
	unlink(path);
}

/* The number of sections stands in section 0 when it does not fit into the header. */
TEST(test_many_sections)
{
	struct made_elf m = plain();
	struct elf_section sec;
	struct elf_file *ef;

	m.shdrs[0].sh_size = m.ehdr->e_shnum;
	m.shdrs[0].sh_link = m.ehdr->e_shstrndx;
	m.ehdr->e_shnum = 0;
	m.ehdr->e_shstrndx = SHN_XINDEX;
	ef = open_elf(&m);
	assert_int_equal(elf_file_section(ef, ".text", &sec), 0);
	/* More than the file has room for; more than can be paid for. */
	m.shdrs[0].sh_size = 1ULL << 33;
	ef = open_elf(&m);
	assert_int_equal(elf_file_section(ef, ".text", &sec), -ENOENT);
}

/* libelf would unpack a compressed table of strings, whatever it claims to be. */
TEST(test_packed_names)
{
	struct made_elf m = plain();
	Elf64_Chdr ch = { .ch_type = ELFCOMPRESS_ZLIB, .ch_size = 1 << 20 };
	uLongf bytes = 4096;
	uint8_t *zeros = unit_keep(calloc(1, ch.ch_size), free);
	struct elf_section sec;
	struct elf_file *ef;
	Elf64_Shdr *names = &m.shdrs[m.ehdr->e_shstrndx];

	memcpy(zeros, "\0.text", 7);
	memcpy(m.data + names->sh_offset, &ch, sizeof(ch));
	assert_int_equal(compress2(m.data + names->sh_offset + sizeof(ch), &bytes, zeros,
				   ch.ch_size, 9),
			 Z_OK);
	names->sh_size = sizeof(ch) + bytes;
	names->sh_flags = SHF_COMPRESSED;
	m.bytes = names->sh_offset + names->sh_size;
	ef = open_elf(&m);
	assert_int_equal(elf_file_section(ef, ".text", &sec), -ENOENT);
	assert_string_equal(elf_file_section_name(ef, elf_getscn(elf_file_elf(ef), 1)), "");
}

/* Not files: an error, and no waiting. */
TEST(test_not_regular)
{
	char path[] = "/tmp/heaptap-fifo-XXXXXX";
	struct elf_file *ef;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(elf_file_open(path, &ef), -ENOEXEC);
	unlink(path);
	assert_int_equal(elf_file_open(path, &ef), -ENOENT);
	assert_int_equal(elf_file_open("/tmp", &ef), -ENOEXEC);
	assert_int_equal(elf_file_open("/dev/null", &ef), -ENOEXEC);
	assert_int_equal(elf_file_open_fd(-1, &ef), -EBADF);
}

/* Opening costs what is read, not what the file holds. */
TEST(test_large_file)
{
	struct made_elf m = plain();
	struct rusage before, after;
	struct elf_section sec;
	struct elf_file *ef;
	char path[32];
	int fd = keep_fd(temp_file(path));

	assert_true(fd >= 0);
	assert_int_equal(write(fd, m.data, m.bytes), (ssize_t)m.bytes);
	assert_int_equal(ftruncate(fd, 4LL << 30), 0);
	getrusage(RUSAGE_SELF, &before);
	assert_int_equal(elf_file_open(path, &ef), 0);
	assert_int_equal(elf_file_section(ef, ".text", &sec), 0);
	getrusage(RUSAGE_SELF, &after);
	assert_true(after.ru_maxrss - before.ru_maxrss < 64 * 1024);
	elf_file_close(ef);
	unlink(path);
}

TEST(test_own_program)
{
	struct elf_file *ef;
	size_t cnt;

	assert_int_equal(elf_file_open("/proc/self/exe", &ef), 0);
	assert_non_null(elf_file_interp(ef));
	assert_says(elf_file_interp(ef), "ld");
	assert_null(elf_file_soname(ef));
	assert_int_equal(elf_getshdrnum(elf_file_elf(ef), &cnt), 0);
	assert_true(cnt > 10);
	elf_file_close(ef);
}

RUN_TESTS()
