/* SPDX-License-Identifier: MIT */
/* test_dynamic_symbol.c - the loader of this program, as it is found and read for a hold at an exec. */
#include "unit.h"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#include "elf/elf_symbols.h"
#include "elf/elf_file.h"
#include "proc/process.h"

/* What the loader has told debuggers: a program's own _r_debug may be a copy. */
static uint64_t loader_debug_addr(void)
{
	for (const ElfW(Dyn) *d = _DYNAMIC; d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_DEBUG)
			return d->d_un.d_ptr;
	return 0;
}

TEST(the_loader_says_where_it_stands)
{
	struct dynamic_symbol symbols[] = { { .name = "_dl_debug_state" },
					    { .name = "_r_debug" },
					    { .name = "_r_debu" },
					    { .name = "ptrace" } };
	struct proc_maps maps;
	const struct proc_map *m;
	struct elf_file *ef;
	uint64_t base;

	assert_int_equal(auxv_value(getpid(), AT_BASE, &base), 0);
	assert_int_equal(base, getauxval(AT_BASE));
	assert_int_equal(auxv_value(getpid(), 12345, &base), -ENOENT);
	assert_int_equal(auxv_value(0x7ffffff0, AT_BASE, &base), -ENOENT);
	base = getauxval(AT_BASE);
	assert_int_equal(proc_maps_read(NULL, getpid(), 0, &maps), 0);
	m = proc_maps_find(&maps, base);
	assert_non_null(m);
	assert_int_equal(elf_file_open(m->path, &ef), 0);
	dynamic_symbols_find(ef, symbols, 4);
	assert_true(symbols[0].is_defined && !symbols[0].is_wanted);
	assert_true(symbols[1].is_defined);
	assert_int_equal(base + symbols[1].vaddr, loader_debug_addr());
	assert_false(symbols[2].is_defined || symbols[2].is_wanted);
	assert_false(symbols[3].is_defined || symbols[3].is_wanted);
	elf_file_close(ef);
	proc_maps_release(&maps);
}

TEST(a_program_says_what_it_wants)
{
	struct dynamic_symbol symbols[] = { { .name = "getpid", .is_defined = true },
					    { .name = "ptrace", .is_wanted = true } };
	struct elf_file *ef;

	assert_int_equal(elf_file_open("/proc/self/exe", &ef), 0);
	dynamic_symbols_find(ef, symbols, 2);
	assert_true(symbols[0].is_wanted && !symbols[0].is_defined);
	assert_false(symbols[1].is_wanted);
	elf_file_close(ef);
}

RUN_TESTS()
