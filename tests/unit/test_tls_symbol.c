/* SPDX-License-Identifier: MIT */
/*
 * test_tls_symbol.c - where a thread-local variable is: what executables compute themselves, and
 * the slots of libraries of every TLS model. (What the slots hold at run time is test_tag_sources.)
 */
#include <elf.h>

#include "elf/elf_symbols.h"
#include "made_elf.h"
#include "symbol_programs.h"

static struct elf_file *open_elf(const char *dir, const char *name)
{
	struct elf_file *ef;
	int fd = open_in(dir, name);

	assert_int_equal(elf_file_open_fd(fd, &ef), 0);
	close(fd);
	return ef;
}

/* Blocks of several sizes and alignments around the variable; the program says where it is. */
static const char program_tls_c[] =
	"#include <stdio.h>\n"
	"#ifndef BEFORE\n"
	"#define BEFORE 1\n"
	"#endif\n"
	"#ifndef ALIGN\n"
	"#define ALIGN 1\n"
	"#endif\n"
	"__thread char before[BEFORE] __attribute__((aligned(ALIGN))) = { 1 };\n"
	"__thread void *the_variable;\n"
	"__thread char after[7];\n"
	"__attribute__((used)) unsigned the_version = 1;\n"
	"int main(void)\n"
	"{\n"
	"	char *tp;\n"
	"#ifdef __x86_64__\n"
	"	__asm__(\"mov %%fs:0, %0\" : \"=r\"(tp));\n"
	"#else\n"
	"	__asm__(\"mrs %0, tpidr_el0\" : \"=r\"(tp));\n"
	"#endif\n"
	"	before[0] = after[0] = 2;\n"
	"	printf(\"%ld\\n\", (long)((char *)&the_variable - tp));\n"
	"}\n";

static long said_offset(const char *dir, const char *name)
{
	char cmd[400], line[64] = "";
	FILE *p;

	snprintf(cmd, sizeof(cmd), "timeout 20 '%s/%s'", dir, name);
	p = popen(cmd, "r");
	assert_non_null(p);
	assert_non_null(fgets(line, sizeof(line), p));
	pclose(p);
	return strtol(line, NULL, 10);
}

TEST_WITH(test_executables, programs_setup, programs_teardown)
{
	static const char *const builds[] = {
		"gcc",
		"gcc -no-pie",
		"gcc -static",
		"gcc -static-pie",
		"gcc -fuse-ld=lld",
		"gcc -fuse-ld=lld -no-pie -static",
		"clang -fuse-ld=lld -O2 -flto",
		"musl-gcc",
		"musl-gcc -static",
		"musl-gcc -static-pie",
	};
	static const char *const blocks[] = {
		"",
		"-DBEFORE=3",
		"-DBEFORE=100 -DALIGN=64",
		"-DBEFORE=4000 -DALIGN=512",
		"-DBEFORE=70000 -DALIGN=16",
	};
	const char *dir = *state;
	size_t i, tried = 0;

	write_file(dir, "t.c", program_tls_c);
	for (i = 0; i < sizeof(builds) / sizeof(builds[0]); i++)
		each_case(one, blocks) {
			struct tls_symbol sym;
			struct elf_file *ef;
			uint32_t version = 0;
			long said;

			if (!shell("cd '%s' && %s %s -o t t.c", dir, builds[i], *one)) {
				print_message("not built: %s\n", builds[i]);
				break;
			}
			tried++;
			said = said_offset(dir, "t");
			ef = open_elf(dir, "t");
			assert_int_equal(tls_symbol_find(ef, "the_variable", &sym), 0);
			assert_int_equal(sym.place, TLS_PLACE_OFFSET);
			if (sym.off != said)
				print_error("%s %s\n", builds[i], *one);
			assert_int_equal(sym.off, said);
			assert_int_equal(tls_symbol_find(ef, "the_variabl", &sym), -ENOENT);
			assert_int_equal(tls_symbol_find(ef, "main", &sym), -ENOENT);
			assert_int_equal(elf_data_symbol_u32(ef, "the_version", &version), 0);
			assert_int_equal(version, 1);
			assert_int_equal(elf_data_symbol_u32(ef, "the_versions", &version),
					 -ENOENT);
			elf_file_close(ef);
		}
	if (!have("gcc"))
		skip();
	assert_true(tried >= 20);
}

/* Exported from a program and stripped; not exported and stripped is gone. */
TEST_WITH(test_stripped, programs_setup, programs_teardown)
{
	const char *dir = *state;
	struct tls_symbol sym;
	struct elf_file *ef;
	uint32_t version;
	long said;

	write_file(dir, "t.c", program_tls_c);
	if (!shell("cd '%s' && gcc -rdynamic -o t t.c && strip t && gcc -o u t.c && strip u", dir))
		skip();
	said = said_offset(dir, "t");
	ef = open_elf(dir, "t");
	assert_int_equal(tls_symbol_find(ef, "the_variable", &sym), 0);
	assert_int_equal(sym.off, said);
	assert_int_equal(elf_data_symbol_u32(ef, "the_version", &version), 0);
	elf_file_close(ef);
	ef = open_elf(dir, "u");
	assert_int_equal(tls_symbol_find(ef, "the_variable", &sym), -ENOENT);
	assert_int_equal(elf_data_symbol_u32(ef, "the_version", &version), -ENOENT);
	elf_file_close(ef);
}

static const char library_c[] = "__thread int first = 3;\n"
				"#ifdef HIDDEN\n"
				"__attribute__((visibility(\"hidden\")))\n"
				"#endif\n"
				"__thread long other;\n"
				"#ifdef PROTECTED\n"
				"__attribute__((visibility(\"protected\")))\n"
				"#endif\n"
				"__thread void *the_variable;\n"
				"#ifdef USE_OWN\n"
				"void **where(void) { return &the_variable; }\n"
				"#endif\n"
				"#ifdef USE_OTHER\n"
				"long *where_other(void) { return &other; }\n"
				"#endif\n"
				"#ifdef USE_FIRST\n"
				"int *where_first(void) { return &first; }\n"
				"#endif\n";

TEST_WITH(test_libraries, programs_setup, programs_teardown)
{
	static const struct {
		const char *flags;
		int err;
		enum tls_place place;
		bool is_own;
	} cases[] = {
		{ "-DUSE_OWN", 0, TLS_PLACE_MODULE_SLOT, true },
		{ "-DUSE_OWN -mtls-dialect=gnu2", 0, TLS_PLACE_DESC_SLOT, true },
		{ "-DUSE_OWN -ftls-model=initial-exec", 0, TLS_PLACE_OFFSET_SLOT, true },
		{ "-DUSE_OWN -Wl,-Bsymbolic", 0, TLS_PLACE_MODULE_SLOT, true },
		{ "-DUSE_OTHER -DHIDDEN", 0, TLS_PLACE_MODULE_SLOT, false },
		{ "-DUSE_OWN -DPROTECTED -mtls-dialect=gnu2", 0, TLS_PLACE_DESC_SLOT, true },
		{ "-DUSE_OWN -DPROTECTED -ftls-model=initial-exec", 0, TLS_PLACE_OFFSET_SLOT,
		  true },
		{ "-DUSE_OTHER", 0, TLS_PLACE_MODULE_SLOT, false },
		{ "-DUSE_OTHER -mtls-dialect=gnu2", 0, TLS_PLACE_DESC_SLOT, false },
		{ "-DUSE_OTHER -ftls-model=initial-exec", 0, TLS_PLACE_OFFSET_SLOT, false },
		{ "-DUSE_OTHER -DHIDDEN -DUSE_FIRST -mtls-dialect=gnu2", 0, TLS_PLACE_DESC_SLOT,
		  false },
		{ "-DUSE_OWN -DUSE_OTHER -DUSE_FIRST -mtls-dialect=gnu2", 0, TLS_PLACE_DESC_SLOT,
		  true },
		{ "-DUSE_OWN -fuse-ld=lld", 0, TLS_PLACE_MODULE_SLOT, true },
		{ "", -ENODATA, TLS_PLACE_OFFSET, false },
	};
	const char *dir = *state;

	write_file(dir, "l.c", library_c);
	each_case(one, cases) {
		struct tls_symbol sym = { 0 };
		struct elf_file *ef;

		if (!shell("cd '%s' && gcc -O2 -fPIC -shared %s -o l.so l.c && strip l.so", dir,
			   one->flags)) {
			print_message("not built: %s\n", one->flags);
			continue;
		}
		ef = open_elf(dir, "l.so");
		if (tls_symbol_find(ef, "the_variable", &sym) != one->err ||
		    (!one->err && (sym.place != one->place || sym.is_own_slot != one->is_own)))
			print_error("%s: place %d, own %d\n", one->flags, sym.place,
				    sym.is_own_slot);
		assert_int_equal(tls_symbol_find(ef, "the_variable", &sym), one->err);
		if (!one->err) {
			assert_int_equal(sym.place, one->place);
			assert_int_equal(sym.is_own_slot, one->is_own);
			assert_true(sym.slot_vaddr != 0);
			assert_int_equal(sym.block_off % 8, 0);
			if (sym.is_own_slot)
				assert_int_equal(sym.block_off, sym.slot_block_off);
		}
		elf_file_close(ef);
	}
}

/* arm64 has no machine here to ask: the formula, by hand, on a file of the cross compiler. */
TEST_WITH(test_arm64, programs_setup, programs_teardown)
{
	const char *dir = *state;
	struct tls_symbol sym;
	struct elf_file *ef;

	write_file(dir, "l.c", library_c);
	write_file(dir, "t.c", program_tls_c);
	if (!shell("cd '%s' && aarch64-linux-gnu-gcc -DBEFORE=64 -DALIGN=64 -o t t.c", dir) ||
	    !shell("cd '%s' && aarch64-linux-gnu-gcc -shared -fPIC -DUSE_OWN -o l.so l.c", dir))
		skip();
	ef = open_elf(dir, "t");
	assert_int_equal(tls_symbol_find(ef, "the_variable", &sym), 0);
	assert_int_equal(sym.place, TLS_PLACE_OFFSET);
	/* 16 bytes of thread control block, rounded up to the block's alignment of 64 */
	assert_int_equal(sym.off, 64 + sym.block_off);
	elf_file_close(ef);
	ef = open_elf(dir, "l.so");
	assert_int_equal(tls_symbol_find(ef, "the_variable", &sym), 0);
	assert_int_equal(sym.place, TLS_PLACE_DESC_SLOT);
	assert_true(sym.is_own_slot);
	elf_file_close(ef);
}

/* A program cut and damaged at many places: an answer or an error, never a read outside. */
TEST_WITH(test_damaged, programs_setup, programs_teardown)
{
	const char *dir = *state;
	struct tls_symbol sym;
	struct elf_file *ef;
	size_t bytes, i;
	uint8_t *image;
	uint32_t version;
	FILE *f;
	char path[300];

	write_file(dir, "l.c", library_c);
	if (!shell("cd '%s' && gcc -O2 -fPIC -shared -DUSE_OWN -nostdlib -o l.so l.c", dir))
		skip();
	snprintf(path, sizeof(path), "%s/l.so", dir);
	f = fopen(path, "r");
	assert_non_null(f);
	image = malloc(1 << 20);
	bytes = fread(image, 1, 1 << 20, f);
	fclose(f);
	assert_true(bytes > 1000);
	for (i = 0; i < bytes; i += 7) {
		uint8_t old = image[i];

		if (!elf_file_open_mem(image, i, &ef)) {
			tls_symbol_find(ef, "the_variable", &sym);
			elf_file_close(ef);
		}
		image[i] = (uint8_t)(0xff - old);
		if (!elf_file_open_mem(image, bytes, &ef)) {
			tls_symbol_find(ef, "the_variable", &sym);
			elf_data_symbol_u32(ef, "the_variable", &version);
			elf_file_close(ef);
		}
		image[i] = old;
	}
	free(image);
}

RUN_TESTS()
