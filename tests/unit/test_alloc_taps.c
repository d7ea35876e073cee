/* SPDX-License-Identifier: MIT */
/*
 * test_alloc_taps.c - where the installed allocators are tapped. Of each that is here: no byte changes on which another
 * tool's breakpoint may be, nothing that is needed is left out, and malloc is counted in the fast way. Prints a table.
 */
#include "unit.h"

#include "alloc/allocators.h"
#include "base/err.h"
#include "elf/elf_file.h"
#include "elf/elf_symbols.h"
#include "heaptap/abi.h"
#include "tap/tap_code.h"

#define LIB "/usr/lib/x86_64-linux-gnu/"

static const struct {
	const char *path;
	const char *refused; /* the beginning of the reason; NULL: it can be tapped */
	const char *missed; /* as tap_code_missed() says */
} files[] = {
	{ LIB "libc.so.6", NULL, "" },
	{ LIB "libjemalloc.so.2", NULL, "" },
	{ LIB "libtcmalloc_minimal.so.4", NULL, "" },
	{ LIB "libtcmalloc.so.4", NULL, "" },
	{ LIB "libmimalloc.so.2", NULL, "mi_new_realloc, mi_new_reallocn" },
	{ "/lib/ld-musl-x86_64.so.1", NULL, "" },
	/* Its delete checks by which function a block was made. */
	{ LIB "libtcmalloc_minimal_debug.so.4", "_Zn", "" },
	{ LIB "libtcmalloc_debug.so.4", "_Zn", "" },
};

static bool changes(uint64_t vaddr, uint8_t off, uint8_t cnt, uint64_t what)
{
	return what >= vaddr + off && what < vaddr + off + cnt;
}

/* Where somebody's breakpoint may be: at the first byte, or where heaptap puts its probe. */
static void check_site(const char *path, const struct alloc_site *s)
{
	const struct tap_spot *t = &s->tap;
	const uint64_t watched[] = { s->fn_vaddr, s->placement.vaddr, t->fn_vaddr };
	uint8_t off, cnt;

	if (!tap_spot_is_sound(t))
		fail_msg("%s, %s: not sound", path, s->symbol);
	for (size_t i = 0; t->vaddr && i < 3; i++) {
		tap_spot_changed(t, &off, &cnt);
		if (changes(t->vaddr, off, cnt, watched[i]))
			fail_msg("%s, %s: its byte %zu changes", path, s->symbol, i);
		tap_branch_changed(t, &off, &cnt);
		if (t->branch_vaddr && changes(t->branch_vaddr, off, cnt, watched[i]))
			fail_msg("%s, %s: its byte %zu changes, by the branch", path, s->symbol, i);
	}
	if (!strcmp(s->symbol, "malloc") && (s->may_nest || s->may_forward))
		fail_msg("%s: malloc is slow", path);
}

static void print_site(const struct alloc_site *s)
{
	const struct tap_spot *t = &s->tap;
	char gap[24] = "-", branch[24] = "-", at[24] = "none";

	if (t->vaddr)
		snprintf(at, sizeof(at), "+%lld", (long long)(t->vaddr - s->fn_vaddr));
	if (t->gap_vaddr)
		snprintf(gap, sizeof(gap), "%+lld", (long long)(t->gap_vaddr - s->fn_vaddr));
	if (t->branch_vaddr)
		snprintf(branch, sizeof(branch), "+%lld",
			 (long long)(t->branch_vaddr - s->fn_vaddr));
	printf("#   %-36s %-7s %-6s %-6s %-7s %s%s%s\n", s->symbol, at, gap, branch,
	       t->keeps_prefix || t->keeps_opcode ? "stays" : "changes",
	       t->flags_insn ? "flags " : "", t->is_watched ? "watched " : "",
	       t->vaddr ? "" : t->why);
}

static void check_file(size_t i, bool multibyte_nop_ok)
{
	const struct alloc_options opts = { .multibyte_nop_ok = multibyte_nop_ok };
	struct alloc_file *alloc;
	struct elf_symbols *syms;
	struct err why = { 0 };
	struct elf_file *ef;
	struct alloc_site *s;
	char missed[160];
	int err;

	assert_int_equal(elf_file_open(files[i].path, &ef), 0);
	assert_int_equal(elf_symbols_load(ef, NULL, &syms), 0);
	assert_int_equal(alloc_file_scan(ef, syms, &opts, &alloc), 0);
	if (!multibyte_nop_ok)
		printf("# %s\n#   %-36s %-7s %-6s %-6s %s\n", files[i].path, "function", "at",
		       "gap", "branch", "first byte");
	vec_each(&alloc->sites, s) {
		check_site(files[i].path, s);
		if (!multibyte_nop_ok)
			print_site(s);
	}
	err = tap_code_check(alloc, &why);
	tap_code_missed(alloc, missed, sizeof(missed));
	if (!err != !files[i].refused ||
	    (err && strncmp(why.text, files[i].refused, strlen(files[i].refused)) != 0))
		fail_msg("%s: %d %s", files[i].path, err, why.text);
	if (!err && strcmp(missed, files[i].missed) != 0)
		fail_msg("%s misses '%s'", files[i].path, missed);
	alloc_file_free(alloc);
	elf_symbols_free(syms);
	elf_file_close(ef);
}

TEST(test_installed)
{
	size_t cnt = 0;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (access(files[i].path, R_OK) != 0)
			continue;
		cnt++;
		for (int nops = 0; nops < 2; nops++)
			check_file(i, nops);
	}
	if (!cnt)
		skip();
}

RUN_TESTS()
