/* SPDX-License-Identifier: MIT */
/*
 * test_usdt_notes.c - probes announced in .note.stapsdt, in made files and in compiled ones.
 */
#include <elf.h>

#include "elf/usdt_notes.h"
#include "made_elf.h"
#include "symbol_programs.h"

/* Notes under construction. */
struct notes {
	uint8_t data[512 * 1024];
	size_t bytes;
};

static void add_words(struct notes *n, const void *p, size_t bytes)
{
	assert_true(n->bytes + bytes + 4 < sizeof(n->data));
	memcpy(n->data + n->bytes, p, bytes);
	n->bytes += (bytes + 3) & ~(size_t)3;
}

/* strings: provider, name, args with their zeroes */
static void add_note(struct notes *n, const char *owner, uint32_t type, uint64_t location,
		     uint64_t base, uint64_t semaphore, const char *strings, size_t string_bytes)
{
	uint64_t addr[3] = { location, base, semaphore };
	uint8_t desc[512];
	Elf64_Nhdr nh = { .n_namesz = (Elf64_Word)strlen(owner) + 1,
			  .n_descsz = (Elf64_Word)(sizeof(addr) + string_bytes),
			  .n_type = type };

	assert_true(string_bytes + sizeof(addr) <= sizeof(desc));
	memcpy(desc, addr, sizeof(addr));
	memcpy(desc + sizeof(addr), strings, string_bytes);
	add_words(n, &nh, sizeof(nh));
	add_words(n, owner, nh.n_namesz);
	add_words(n, desc, nh.n_descsz);
}
#define ADD(n, location, base, semaphore, strings) \
	add_note(n, "stapsdt", 3, location, base, semaphore, strings, sizeof(strings))

static const uint8_t text[64] = { 0x90 };
static const uint8_t data[64];

/* Text, data that the file holds (executable only to get a segment), base, notes. */
static struct made_elf make(const struct notes *n, const char *section, uint32_t type)
{
	const struct made_section secs[] = {
		{ .name = ".text",
		  .type = SHT_PROGBITS,
		  .flags = SHF_ALLOC | SHF_EXECINSTR,
		  .data = text,
		  .bytes = sizeof(text) },
		{ .name = ".probes",
		  .type = SHT_PROGBITS,
		  .flags = SHF_ALLOC | SHF_EXECINSTR,
		  .data = data,
		  .bytes = sizeof(data) },
		{ .name = ".stapsdt.base",
		  .type = SHT_PROGBITS,
		  .flags = SHF_ALLOC,
		  .data = data,
		  .bytes = 1 },
		{ .name = section,
		  .type = type,
		  .flags = SHF_ALLOC | (type == SHT_NOTE ? SHF_EXECINSTR : 0),
		  .data = n->data,
		  .bytes = n->bytes },
	};
	struct made_elf m = made_elf_new(secs, 4);

	return m;
}

/* A file that is made, and what is found in it. */
struct made {
	struct notes n;
	uint64_t t, d, b; /* where text, data and base are */
	struct made_elf m;
	struct elf_file *ef;
	struct usdt_note *notes;
	size_t cnt;
};

static int new_made(void **state)
{
	struct made *f = calloc(1, sizeof(*f));

	/* Where the sections are does not depend on the notes. */
	f->m = make(&f->n, ".note.stapsdt", SHT_NOTE);
	f->t = made_elf_vaddr(&f->m, 1);
	f->d = made_elf_vaddr(&f->m, 2);
	f->b = made_elf_vaddr(&f->m, 3);
	*state = f;
	return 0;
}

static int free_made(void **state)
{
	struct made *f = *state;

	free(f->m.data);
	free(f);
	return 0;
}

static void remake(struct made *f)
{
	free(f->m.data);
	f->m = make(&f->n, ".note.stapsdt", SHT_NOTE);
}

/* What usdt_notes_find() says of the first `bytes` bytes of the file; -ENOEXEC: they are no ELF file.
 * To be closed with close_made(). */
static int find_in(struct made *f, size_t bytes)
{
	f->ef = NULL;
	f->notes = NULL;
	if (elf_file_open_mem(f->m.data, bytes, &f->ef))
		return -ENOEXEC;
	return usdt_notes_find(f->ef, "heaptap", &f->notes, &f->cnt);
}

static void close_made(struct made *f)
{
	free(f->notes);
	elf_file_close(f->ef);
}

TEST_WITH(test_made, new_made, free_made)
{
	struct made *f = *state;
	uint64_t t = f->t, d = f->d, b = f->b;
	struct notes *n = &f->n;
	const struct usdt_note *notes;

	add_note(n, "GNU", 3, t, b, d, "heaptap\0x\0", 11); /* somebody else's note */
	ADD(n, t + 4, b, d, "heaptap\0tls_v1\0008@%rdi");
	ADD(n, t + 5, b, 0, "libc\0setjmp\0");
	add_note(n, "stapsdt", 4, t, b, d, "heaptap\0x\0", 11); /* another type */
	ADD(n, t + 6, b, 0, "heaptap\0bare\0"); /* no arguments, no semaphore */
	ADD(n, t + 8, b - 0x1000, d + 2, "heaptap\0moved\0"); /* moved by 0x1000: not in text */
	ADD(n, t + 8 - 0x1000, b - 0x1000, d + 2 - 0x1000, "heaptap\0moved\0001@$0");
	ADD(n, t + 9, 0, d, "heaptap\0nobase\0");
	ADD(n, t + 10, b, 0x10, "heaptap\0bss\0"); /* a semaphore without a byte of the file */
	remake(f);
	assert_int_equal(find_in(f, f->m.bytes), 0);
	assert_int_equal(f->cnt, 5);
	notes = f->notes;
	assert_string_equal(notes[0].provider, "heaptap");
	assert_string_equal(notes[0].name, "tls_v1");
	assert_string_equal(notes[0].args, "8@%rdi");
	assert_int_equal(notes[0].location_vaddr, t + 4);
	assert_int_equal(notes[0].location_off, t + 4 - MADE_BIAS);
	assert_int_equal(notes[0].semaphore_vaddr, d);
	assert_int_equal(notes[0].semaphore_off, d - MADE_BIAS);
	assert_string_equal(notes[1].name, "bare");
	assert_string_equal(notes[1].args, "");
	assert_int_equal(notes[1].semaphore_vaddr, 0);
	assert_int_equal(notes[1].semaphore_off, 0);
	assert_string_equal(notes[2].name, "moved");
	assert_string_equal(notes[2].args, "1@$0");
	assert_int_equal(notes[2].location_vaddr, t + 8);
	assert_int_equal(notes[2].semaphore_vaddr, d + 2);
	assert_string_equal(notes[3].name, "nobase");
	assert_int_equal(notes[3].location_vaddr, t + 9);
	assert_string_equal(notes[4].name, "bss");
	assert_int_equal(notes[4].semaphore_vaddr, 0x10);
	assert_int_equal(notes[4].semaphore_off, 0);
	free(f->notes);
	f->notes = NULL;
	assert_int_equal(usdt_notes_find(f->ef, "nobody", &f->notes, &f->cnt), -ENOENT);
	assert_int_equal(usdt_notes_find(f->ef, "heapta", &f->notes, &f->cnt), -ENOENT);
	close_made(f);
}

/* No section of that name: what a program header of type PT_NOTE covers is looked at. */
TEST_WITH(test_without_sections, new_made, free_made)
{
	struct made *f = *state;
	struct made_elf *m = &f->m;

	ADD(&f->n, f->t, f->b, f->d, "heaptap\0tls_v1\0008@x0");
	remake(f);
	/* the note must be mapped, or nobody knows where it is */
	for (size_t i = 0; i < m->ehdr->e_phnum; i++)
		if (m->phdrs[i].p_type == PT_NOTE)
			m->phdrs[m->ehdr->e_phnum] = m->phdrs[i];
	m->phdrs[m->ehdr->e_phnum++].p_type = PT_LOAD;
	m->ehdr->e_shnum = 0;
	m->ehdr->e_shoff = 0;
	assert_int_equal(find_in(f, m->bytes), 0);
	assert_int_equal(f->cnt, 1);
	assert_string_equal(f->notes[0].args, "8@x0");
	assert_int_equal(f->notes[0].location_vaddr, f->t);
	assert_int_equal(f->notes[0].semaphore_vaddr, f->d);
	close_made(f);
}

/* Sizes that lie, strings that do not end, a file cut anywhere: never a read outside. */
TEST_WITH(test_damaged, new_made, free_made)
{
	struct made *f = *state;
	uint64_t t = f->t, d = f->d, b = f->b;
	struct notes *n = &f->n;
	static const char endless[] = { 'h', 'e', 'a', 'p', 't', 'a', 'p', 0, 'x', 0, 'y' };
	uint8_t *note;
	size_t i;

	add_note(n, "stapsdt", 3, t, b, d, endless, sizeof(endless));
	add_note(n, "stapsdt", 3, t, b, d, endless, 8);
	add_note(n, "stapsdt", 3, t, b, d, endless, 0);
	remake(f);
	assert_int_equal(find_in(f, f->m.bytes), -ENOENT);
	close_made(f);

	n->bytes = 0;
	ADD(n, t, b, d, "heaptap\0tls_v1\0");
	remake(f);
	note = f->m.data + f->m.shdrs[4].sh_offset;
	for (i = 0; i < 3 * 8; i++) {
		static const uint32_t lies[] = {
			0, 1, 7, 8, 9, 24, 25, 0xffff, 0x7fffffff, 0xfffffff0, 0xffffffff,
		};
		Elf64_Nhdr nh, good;

		memcpy(&good, note, sizeof(good));
		nh = good;
		if (i % 2)
			nh.n_namesz = lies[i / 2 % 11];
		else
			nh.n_descsz = lies[i / 2 % 11];
		memcpy(note, &nh, sizeof(nh));
		assert_int_not_equal(find_in(f, f->m.bytes), -ENOEXEC);
		close_made(f);
		memcpy(note, &good, sizeof(good));
	}
	for (i = 0; i < f->m.bytes; i++) {
		find_in(f, i);
		close_made(f);
	}
}

TEST_WITH(test_too_many, new_made, free_made)
{
	struct made *f = *state;

	for (size_t i = 0; i < USDT_NOTES_CAP + 10; i++)
		ADD(&f->n, f->t, f->b, f->d, "heaptap\0tls_v1\0");
	remake(f);
	assert_int_equal(find_in(f, f->m.bytes), 0);
	assert_int_equal(f->cnt, USDT_NOTES_CAP);
	close_made(f);
}

static const char probe_c[] =
	"struct { unsigned short semaphore; char rest[638]; } desc\n"
	"	__attribute__((section(\".probes\"), aligned(64), used)) = { 0, { 1 } };\n"
	"__attribute__((noinline, used)) void announce(void *p)\n"
	"{\n"
	"	__asm__ volatile(\"990: nop\\n\"\n"
	"		\".pushsection .note.stapsdt,\\\"?\\\",\\\"note\\\"\\n.balign 4\\n\"\n"
	"		\".4byte 992f-991f, 994f-993f, 3\\n991: .asciz \\\"stapsdt\\\"\\n\"\n"
	"		\"992: .balign 4\\n993: .8byte 990b, _.stapsdt.base, desc\\n\"\n"
	"		\".asciz \\\"heaptap\\\"\\n.asciz \\\"tls_v1\\\"\\n.asciz \\\"8@%%rdi\\\"\\n\"\n"
	"		\"994: .balign 4\\n.popsection\\n\"\n"
	"		\".ifndef _.stapsdt.base\\n\"\n"
	"		\".pushsection .stapsdt.base,\\\"aG\\\",\\\"progbits\\\",.stapsdt.base,comdat\\n\"\n"
	"		\".weak _.stapsdt.base\\n.hidden _.stapsdt.base\\n_.stapsdt.base: .space 1\\n\"\n"
	"		\".size _.stapsdt.base, 1\\n.popsection\\n.endif\\n\" :: \"D\"(p));\n"
	"}\n"
	"#ifndef LIBRARY\n"
	"int main(void) { announce(&desc); }\n"
	"#endif\n";

/* What linkers make of it, stripped: the site is a nop, the semaphore the data that was named. */
TEST_WITH(test_compiled, programs_setup, programs_teardown)
{
	static const char *const builds[] = {
		"gcc -O2",
		"gcc -O2 -no-pie",
		"gcc -O2 -static",
		"gcc -O2 -static-pie",
		"gcc -O2 -DLIBRARY -fPIC -shared -Wl,-Bsymbolic",
		"gcc -O2 -flto -ffunction-sections -Wl,--gc-sections",
		"gcc -O2 -fuse-ld=lld",
		"clang -O2 -fuse-ld=lld -fPIC -DLIBRARY -shared -Wl,-Bsymbolic",
	};
	const char *dir = *state;
	size_t tried = 0, cnt;

	write_file(dir, "probe.c", probe_c);
	each_case(one, builds) {
		struct usdt_note *notes;
		struct elf_file *ef;
		const uint8_t *p;
		int fd;

		if (!shell("cd '%s' && %s -o probe probe.c && strip probe", dir, *one)) {
			print_message("not built: %s\n", *one);
			continue;
		}
		tried++;
		fd = open_in(dir, "probe");
		assert_int_equal(elf_file_open_fd(fd, &ef), 0);
		close(fd);
		assert_int_equal(usdt_notes_find(ef, "heaptap", &notes, &cnt), 0);
		assert_int_equal(cnt, 1);
		assert_string_equal(notes[0].name, "tls_v1");
		assert_string_equal(notes[0].args, "8@%rdi");
		p = elf_file_read(ef, notes[0].location_vaddr, 1);
		assert_non_null(p);
		assert_int_equal(p[0], 0x90);
		p = elf_file_read(ef, notes[0].semaphore_vaddr, 3);
		assert_non_null(p);
		assert_int_equal(p[2], 1);
		assert_int_equal(notes[0].semaphore_vaddr % 64, 0);
		assert_true(notes[0].semaphore_off != 0);
		free(notes);
		elf_file_close(ef);
	}
	if (!have("gcc"))
		skip();
	assert_true(tried >= 4);
}

RUN_TESTS()
