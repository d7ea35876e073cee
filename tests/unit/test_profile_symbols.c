/* SPDX-License-Identifier: MIT */
/* test_profile_symbols.c - names for addresses of this very program, and what gets none. */
#include "unit.h"

#include "elf/elf_file.h"
#include "profile/profile.h"
#include "symbol/symbol.h"

int named_in_this_test(int n);
int another_in_this_test(int n);

/* Long enough that an address some bytes in is theirs. */
__attribute__((noinline)) int named_in_this_test(int n)
{
	return n * n + (n << 7) - n / 3;
}

__attribute__((noinline)) int another_in_this_test(int n)
{
	return n * 5 + (n << 3) - n / 7;
}

static char self[4096];
static const struct symbol_options opts = { .demangle = true };

/* The mapping of this program that holds address. */
static struct profile_mapping mapping_of(struct profile *p, const void *address)
{
	struct profile_mapping m = { 0 };
	unsigned long long start, limit, offset;
	char line[4400];
	FILE *f = fopen("/proc/self/maps", "r");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx-%llx %*s %llx", &start, &limit, &offset) != 3)
			continue;
		if ((uintptr_t)address < start || (uintptr_t)address >= limit)
			continue;
		m.start = start;
		m.limit = limit;
		m.offset = offset;
	}
	fclose(f);
	assert_true(m.start);
	m.filename_str = profile_str(p, self);
	return m;
}

static struct profile *new_profile(void)
{
	struct profile *p;

	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(profile_set_heap_types(p, 1), 0);
	return p;
}

static void add_location(struct profile *p, uint32_t mapping, uint64_t address)
{
	struct profile_location l = { mapping, address, 0, 0, false };

	assert_int_equal(vec_push(&p->locations, l), 0);
}

static const char *name_of(const struct profile *p, size_t location)
{
	const struct profile_location *l = &p->locations.data[location];

	if (!l->line_cnt)
		return "";
	return profile_text(p, p->functions.data[p->lines.data[l->line_first].function].name_str);
}

/* A dump's mapping, and one from 0 on, whose addresses are the file's. */
TEST(names_addresses_of_both_kinds)
{
	struct profile *p = new_profile();
	struct profile_mapping m = mapping_of(p, named_in_this_test);
	uint64_t a = (uintptr_t)named_in_this_test + 4, b = (uintptr_t)another_in_this_test + 4;
	struct elf_file *ef;
	uint64_t vaddr;
	size_t missing = 7;

	assert_int_equal(elf_file_open(self, &ef), 0);
	assert_int_equal(elf_file_off_to_vaddr(ef, a - m.start + m.offset, &vaddr), 0);
	elf_file_close(ef);
	assert_int_equal(vec_push(&p->mappings, m), 0);
	m = (struct profile_mapping){ .limit = UINT64_MAX, .filename_str = m.filename_str };
	assert_int_equal(vec_push(&p->mappings, m), 0);
	add_location(p, 0, b);
	add_location(p, 0, a);
	add_location(p, 0, a); /* the same again shares the lines */
	add_location(p, 1, vaddr);
	add_location(p, HT_NO_INDEX, a);
	assert_int_equal(profile_symbolize(p, &opts, &missing), 0);
	assert_int_equal(missing, 0);
	assert_string_equal(name_of(p, 0), "another_in_this_test");
	assert_string_equal(name_of(p, 1), "named_in_this_test");
	assert_int_equal(p->locations.data[2].line_first, p->locations.data[1].line_first);
	assert_string_equal(name_of(p, 3), "named_in_this_test");
	assert_string_equal(name_of(p, 4), "");
	assert_int_equal(p->functions.cnt, 2);
	assert_true(p->mappings.data[0].has_functions);
	profile_free(p);
}

/* Not the file of the profile, none at all, no regular file: counted, and nothing hangs. */
TEST(leaves_what_is_not_the_file)
{
	char folder[] = "/tmp/heaptap-symbols-XXXXXX", fifo[64];
	const char *paths[] = { self, "/nonexistent/file", "/", fifo, "[vdso]" };
	struct profile *p = new_profile();
	struct profile_mapping m = mapping_of(p, named_in_this_test);
	size_t missing = 0, cnt = sizeof(paths) / sizeof(*paths);

	assert_non_null(mkdtemp(folder));
	snprintf(fifo, sizeof(fifo), "%s/fifo", folder);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	m.build_id_str = profile_str(p, "0123456789abcdef");
	for (size_t i = 0; i < cnt; i++) {
		m.filename_str = profile_str(p, paths[i]);
		assert_int_equal(vec_push(&p->mappings, m), 0);
		add_location(p, i, (uintptr_t)named_in_this_test + 4);
	}
	assert_int_equal(profile_symbolize(p, &opts, &missing), 0);
	assert_int_equal(missing, 4); /* nobody expects a file [vdso] */
	for (size_t i = 0; i < cnt; i++)
		assert_string_equal(name_of(p, i), "");
	unlink(fifo);
	rmdir(folder);
	profile_free(p);
}

static void add_named(struct profile *p, uint32_t mapping, const char *const *names)
{
	struct profile_location l = { mapping, 1, p->lines.cnt, 0, false };

	for (; *names; names++, l.line_cnt++) {
		struct profile_function f = { .name_str = profile_str(p, *names) };

		assert_int_equal(vec_push(&p->functions, f), 0);
		assert_int_equal(
			vec_push(&p->lines, (struct profile_line){ p->functions.cnt - 1, 0 }), 0);
	}
	assert_int_equal(vec_push(&p->locations, l), 0);
}

TEST(takes_the_allocator_off_the_leaf)
{
	static const char *const profiler[] = { "je_prof_backtrace", NULL };
	static const char *const inlined[] = { "malloc", "load", NULL };
	static const char *const callback[] = { "on_malloc", NULL };
	struct profile *p = new_profile();
	struct profile_mapping m = mapping_of(p, named_in_this_test);
	struct profile_mapping je = { .start = 1,
				      .limit = 2,
				      .filename_str = profile_str(p, "/lib/libjemalloc.so.2") };
	int64_t values[PROFILE_VALUE_CNT] = { 0 };
	const struct profile_sample *s;

	assert_int_equal(vec_push(&p->mappings, m), 0);
	assert_int_equal(vec_push(&p->mappings, je), 0);
	add_location(p, 0, (uintptr_t)named_in_this_test + 4); /* 0 */
	add_location(p, 1, 1); /* 1: no name, in the allocator's library */
	add_named(p, 0, profiler); /* 2 */
	add_named(p, 0, inlined); /* 3 */
	add_named(p, 0, callback); /* 4 */
	assert_int_equal(
		profile_add_sample(p, (uint32_t[]){ 1, 2, 3, 0 }, 4, values, NULL, 0, NULL), 0);
	assert_int_equal(profile_add_sample(p, (uint32_t[]){ 2, 1 }, 2, values, NULL, 0, NULL), 0);
	assert_int_equal(profile_add_sample(p, (uint32_t[]){ 4, 2, 0 }, 3, values, NULL, 0, NULL),
			 0);
	assert_int_equal(profile_symbolize(p, &opts, NULL), 0);
	s = &p->samples.data[0];
	assert_int_equal(s->loc_cnt, 2);
	assert_string_equal(name_of(p, p->sample_locs.data[s->loc_first]), "load");
	assert_string_equal(name_of(p, p->sample_locs.data[s->loc_first + 1]),
			    "named_in_this_test");
	assert_string_equal(name_of(p, 3), "malloc"); /* where it is no leaf */
	assert_int_equal(p->samples.data[1].loc_cnt, 2); /* nothing else: stays */
	assert_int_equal(p->samples.data[2].loc_cnt, 3);
	profile_free(p);
}

struct seen {
	size_t file_cnt, wanted_cnt, named_cnt, missing_cnt;
};

static void see_file(void *ctx, const struct profile_symbol_file *file)
{
	struct seen *seen = ctx;

	seen->file_cnt++;
	seen->wanted_cnt += file->wanted_cnt;
	seen->named_cnt += file->named_cnt;
	seen->missing_cnt += !file->is_found;
}

static uint64_t vaddr_in_self(struct profile_mapping m, const void *address, char *ret_build_id)
{
	struct elf_file *ef;
	uint64_t vaddr;

	assert_int_equal(elf_file_open(self, &ef), 0);
	assert_int_equal(elf_file_off_to_vaddr(ef, (uintptr_t)address - m.start + m.offset, &vaddr),
			 0);
	elf_file_build_id_hex(ef, ret_build_id);
	elf_file_close(ef);
	return vaddr;
}

/* A place gets a name, a name without a line a line; what has a line, and what is another build's, stays. */
TEST(fills_in_what_was_recorded_elsewhere)
{
	static const struct symbol_options with_lines = { .demangle = true, .lines = true };
	static const char *const place[] = { "self+0x1234", NULL };
	static const char *const old[] = { "old_name", NULL };
	char build_id[2 * BUILD_ID_BYTES_CAP + 1];
	struct profile *p = new_profile();
	struct profile_mapping m = mapping_of(p, named_in_this_test);
	uint64_t vaddr = vaddr_in_self(m, (const char *)named_in_this_test + 4, build_id);
	struct seen seen = { 0 };
	struct profile_symbol_places places = { .on_file = see_file, .ctx = &seen };

	if (!build_id[0])
		skip();
	m = (struct profile_mapping){ .limit = UINT64_MAX,
				      .filename_str = profile_str(p, self),
				      .build_id_str = profile_str(p, build_id) };
	assert_int_equal(vec_push(&p->mappings, m), 0);
	m.build_id_str = profile_str(p, "0123456789abcdef");
	assert_int_equal(vec_push(&p->mappings, m), 0);
	m.build_id_str = profile_str(p, "../../etc/passwd");
	assert_int_equal(vec_push(&p->mappings, m), 0);
	add_named(p, 0, place);
	add_named(p, 0, old);
	add_named(p, 0, old);
	add_named(p, 1, place);
	add_named(p, 2, place);
	for (uint32_t i = 0; i < p->locations.cnt; i++)
		p->locations.data[i].address = vaddr;
	p->lines.data[2].line = 7;
	assert_int_equal(profile_symbolize_elsewhere(p, &with_lines, &places), 0);
	assert_string_equal(name_of(p, 0), "named_in_this_test");
	assert_string_equal(name_of(p, 1), "named_in_this_test");
	assert_int_not_equal(p->lines.data[p->locations.data[1].line_first].line, 0);
	assert_string_equal(name_of(p, 2), "old_name");
	assert_string_equal(name_of(p, 3), "self+0x1234");
	assert_string_equal(name_of(p, 4), "self+0x1234");
	assert_int_equal(seen.file_cnt, 3);
	assert_int_equal(seen.wanted_cnt, 4);
	assert_int_equal(seen.named_cnt, 2);
	assert_int_equal(seen.missing_cnt, 2);
	/* what no location has any more is gone: one function, the old name, two places */
	assert_int_equal(p->functions.cnt, 4);
	profile_free(p);
}

int main(void)
{
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return 1;
	return unit_main(__FILE__, NULL, NULL);
}
