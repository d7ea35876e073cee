/* SPDX-License-Identifier: MIT */
/*
 * test_dwarf.c - functions, inlines and lines at places whose answer is known from the source,
 * from what different compilers, versions and packings make of it.
 */
#include "symbol_programs.h"

#include "symbol/debug_files.h"
#include "symbol/dwarf_lookup.h"

struct found {
	size_t frame_cnt, call_cnt;
	struct {
		char name[64], file[256];
		uint32_t line, start_line;
	} frame[8];
};

static int remember(void *ctx, size_t addr_idx, const struct dwarf_frame *frames, size_t cnt)
{
	struct found *f = (struct found *)ctx + addr_idx;

	f->call_cnt++;
	f->frame_cnt = cnt;
	for (size_t i = 0; i < cnt && i < 8; i++) {
		snprintf(f->frame[i].name, sizeof(f->frame[i].name), "%s",
			 frames[i].name ? frames[i].name : "");
		snprintf(f->frame[i].file, sizeof(f->frame[i].file), "%s",
			 frames[i].file ? frames[i].file : "");
		f->frame[i].line = frames[i].line;
		f->frame[i].start_line = frames[i].start_line;
	}
	return 0;
}

struct expected {
	const char *mark;
	struct {
		const char *name, *at, *declared;
	} frame[4];
};

static const struct expected expected[] = {
	{ "mark_inner",
	  { { "inner", "/* at inner */", "void inner(" },
	    { "middle", "/* at middle */", "void middle(" },
	    { "outer", "/* at outer */", "void outer(" } } },
	{ "mark_outer", { { "outer", "/* at outer itself */", "void outer(" } } },
	{ "mark_plain", { { "plain", "/* at plain */", "int plain(" } } },
};

#define MARK_CNT (sizeof(expected) / sizeof(expected[0]))

static void check_mark(const struct expected *want, const struct found *got)
{
	size_t cnt = 0;

	assert_int_equal(got->call_cnt, 1);
	for (; cnt < 4 && want->frame[cnt].name; cnt++) {
		if (cnt >= got->frame_cnt)
			fail_msg("%s: only %zu frames", want->mark, got->frame_cnt);
		assert_string_equal(got->frame[cnt].name, want->frame[cnt].name);
		assert_int_equal(got->frame[cnt].line, line_of(program_c, want->frame[cnt].at));
		assert_int_equal(got->frame[cnt].start_line,
				 line_of(program_c, want->frame[cnt].declared));
		assert_says(got->frame[cnt].file, "/p.c");
		assert_int_equal(got->frame[cnt].file[0], '/');
	}
	assert_int_equal(got->frame_cnt, cnt);
}

/* symbols: the file with the marks; debug: the one with the DWARF; alt: -1 or the dwz file. */
static void check_marks(int symbols_fd, int debug_fd, int alt_fd, uint64_t memory_bound)
{
	uint64_t vaddr[MARK_CNT];
	const struct expected *want[MARK_CNT];
	struct found got[MARK_CNT];
	struct dwarf_lookup *dl;

	memset(got, 0, sizeof(got));
	for (size_t i = 0; i < MARK_CNT; i++) {
		uint64_t v = address_of(symbols_fd, expected[i].mark);
		size_t k = i;

		for (; k > 0 && vaddr[k - 1] > v; k--) {
			vaddr[k] = vaddr[k - 1];
			want[k] = want[k - 1];
		}
		vaddr[k] = v;
		want[k] = &expected[i];
	}
	assert_int_equal(dwarf_lookup_open(debug_fd, alt_fd, memory_bound, &dl), 0);
	assert_int_equal(dwarf_lookup_run(dl, vaddr, MARK_CNT, remember, got), 0);
	dwarf_lookup_free(dl);
	for (size_t i = 0; i < MARK_CNT; i++)
		check_mark(want[i], &got[i]);
}

/* Compiler, flags and what is done to the file afterwards ($f is the file). */
static const struct {
	const char *tool, *compile, *after;
} builds[] = {
	{ "gcc", "gcc -O2 -gdwarf-5", NULL },
	{ "gcc", "gcc -O2 -gdwarf-4", NULL },
	{ "gcc", "gcc -O2 -gdwarf-3 -gstrict-dwarf", NULL },
	{ "gcc", "gcc -O0 -gdwarf-5", NULL },
	{ "gcc", "gcc -O2 -g -static", NULL },
	{ "gcc", "gcc -O2 -g -no-pie", NULL },
	{ "gcc", "gcc -O2 -g -ffunction-sections -Wl,--gc-sections", NULL },
	{ "gcc", "gcc -O2 -g -flto", NULL },
	{ "clang", "clang -O2 -gdwarf-5", NULL },
	{ "clang", "clang -O2 -gdwarf-4", NULL },
	{ "clang", "clang -O0 -gdwarf-5", NULL },
	{ "clang", "clang -O2 -g -ffunction-sections -fuse-ld=lld", NULL },
	{ "objcopy", "gcc -O2 -g", "objcopy --compress-debug-sections=zlib" },
	{ "objcopy", "gcc -O2 -g", "objcopy --compress-debug-sections=zlib-gnu" },
	{ "objcopy", "gcc -O2 -g", "objcopy --compress-debug-sections=zstd" },
	{ "objcopy", "clang -O2 -g", "objcopy --compress-debug-sections=zstd" },
	{ "dwz", "gcc -O2 -gdwarf-4", "dwz" },
};

TEST(places_are_found_whatever_built_them)
{
	const char *dir = *state;
	size_t done = 0;

	each_case(one, builds) {
		int fd;

		if (!have(one->tool) ||
		    !shell("cd '%s' && rm -f p && %s -o p p.c", dir, one->compile) ||
		    (one->after && !shell("cd '%s' && %s p", dir, one->after))) {
			print_message("# not here: %s\n", one->compile);
			continue;
		}
		fd = open_in(dir, "p");
		assert_true(fd >= 0);
		print_message("# %s %s\n", one->compile, one->after ? one->after : "");
		check_marks(fd, fd, -1, 64 << 20);
		/* with a handle that is opened again after every unit */
		check_marks(fd, fd, -1, 1);
		close(fd);
		done++;
	}
	if (!done)
		skip();
}

TEST(separate_debug_file)
{
	const char *dir = *state;
	int fd, debug_fd;

	if (!shell("cd '%s' && gcc -O2 -g -o p p.c && objcopy --only-keep-debug "
		   "--compress-debug-sections=zstd p p.debug && objcopy --strip-debug p",
		   dir))
		skip();
	fd = keep_fd(open_in(dir, "p"));
	debug_fd = keep_fd(open_in(dir, "p.debug"));
	check_marks(fd, debug_fd, -1, 64 << 20);
}

/* dwz -m moves what two files share into a third. */
TEST(shared_debug_file)
{
	const char *dir = *state;
	char path[PATH_MAX];
	struct elf_file *ef;
	int fd, alt_fd;

	if (!shell("cd '%s' && gcc -O2 -gdwarf-4 -o p p.c && gcc -O2 -gdwarf-4 -DX -o q p.c && "
		   "dwz -m shared.debug p q && readelf -S p | grep gnu_debugaltlink",
		   dir))
		skip();
	fd = keep_fd(open_in(dir, "p"));
	snprintf(path, sizeof(path), "%s/p", dir);
	assert_int_equal(elf_file_open_fd(fd, &ef), 0);
	alt_fd = keep_fd(debug_files_open_alt(ef, path, ""));
	elf_file_close(ef);
	assert_true(alt_fd >= 0);
	check_marks(fd, fd, alt_fd, 64 << 20);
}

/* Names are in the .dwo files, which are not read; lines are here. */
TEST(split_dwarf_gives_lines)
{
	const char *dir = *state;
	struct found got = { 0 };
	struct dwarf_lookup *dl;
	uint64_t vaddr;
	int fd;

	if (!shell("cd '%s' && gcc -O2 -g -gsplit-dwarf -c p.c && gcc -o p p.o", dir))
		skip();
	fd = open_in(dir, "p");
	vaddr = address_of(fd, "mark_inner");
	assert_int_equal(dwarf_lookup_open(fd, -1, 64 << 20, &dl), 0);
	assert_int_equal(dwarf_lookup_run(dl, &vaddr, 1, remember, &got), 0);
	assert_true(dwarf_lookup_is_split(dl));
	dwarf_lookup_free(dl);
	close(fd);
	assert_int_equal(got.frame_cnt, 1);
	assert_string_equal(got.frame[0].name, "");
	assert_int_equal(got.frame[0].line, line_of(program_c, "/* at inner */"));
}

TEST(addresses_that_nothing_covers)
{
	static const uint64_t vaddr[] = { 0, 1, 16, 0x7fffffffffffffff, UINT64_MAX };
	struct found got[5];
	struct dwarf_lookup *dl;
	int fd;

	if (!shell("cd '%s' && gcc -O2 -g -o p p.c", (char *)*state))
		skip();
	memset(got, 0, sizeof(got));
	fd = open_in(*state, "p");
	assert_int_equal(dwarf_lookup_open(fd, -1, 64 << 20, &dl), 0);
	assert_int_equal(dwarf_lookup_run(dl, vaddr, 5, remember, got), 0);
	assert_int_equal(dwarf_lookup_run(dl, vaddr, 0, remember, got), 0);
	dwarf_lookup_free(dl);
	close(fd);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(got[i].call_cnt, 0);
}

TEST(files_without_dwarf)
{
	struct dwarf_lookup *dl;
	int fd;

	fd = open_in(*state, "p.c");
	assert_int_equal(dwarf_lookup_open(fd, -1, 64 << 20, &dl), -ENOEXEC);
	close(fd);
	if (!shell("cd '%s' && gcc -O2 -s -o p p.c", (char *)*state))
		skip();
	fd = open_in(*state, "p");
	assert_int_equal(dwarf_lookup_open(fd, -1, 64 << 20, &dl), -ENOENT);
	close(fd);
}

RUN_TESTS_WITH(programs_setup, programs_teardown)
