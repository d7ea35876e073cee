/* SPDX-License-Identifier: MIT */
/*
 * test_unwind_scan.c - rows that were found by following instructions, against frame information.
 *
 *   test_unwind_scan [FILE...]
 *
 * The scanner is for code that has no frame information, so it is let loose on code that has
 * some, without being shown it: at every instruction that it reached, both must say the same.
 * It is a heuristic; the test states how often it may be wrong.
 */
#include "unit.h"

#include <elf.h>

#include "../lib/find_row.h"
#include "elf/elf_file.h"
#include "elf/unwind_table_priv.h"
#include "elf/unwind_table.h"

static const struct unwind_options described = { .described_only = true };

static char **arg_files;
static int arg_file_cnt;

struct tally {
	const struct unwind_table *table;
	uint64_t same, wrong, silent; /* silent: the scanner says that it does not know */
	uint64_t wrong_rbp;
	uint64_t first_wrong;
};

static int on_row(void *arg, uint64_t vaddr, const struct ht_row *row)
{
	struct tally *n = arg;
	const struct ht_row *want = find_row(n->table, vaddr);
	int64_t off = row->cfa_off;

	if (!want || (want->cfa != HT_CFA_RSP && want->cfa != HT_CFA_RBP))
		return 0;
	if (row->cfa == HT_CFA_NONE) {
		n->silent++;
	} else if (row->cfa == want->cfa && off == want->cfa_off) {
		n->same++;
		n->wrong_rbp += row->rbp != want->rbp || row->rbp_off != want->rbp_off;
	} else if (row->cfa != want->cfa && row->cfa != HT_CFA_END && row->cfa != HT_CFA_SIGNAL) {
		/* Both registers may be right; compilers say rbp as soon as there is a frame. */
		n->same++;
	} else {
		if (!n->wrong++)
			n->first_wrong = vaddr;
	}
	return 0;
}

static void find_text(const struct elf_file *ef, struct unwind_code *ret)
{
	size_t cnt, i;
	const struct elf_segment *seg = elf_file_segments(ef, &cnt);

	for (i = 0; i < cnt && !seg[i].is_exec; i++)
		;
	assert_true(i < cnt);
	ret->vaddr = seg[i].vaddr;
	ret->data = elf_file_at(ef, seg[i].vaddr, seg[i].file_bytes, &ret->bytes);
	assert_non_null(ret->data);
}

static void check(const char *path, double wrong_share)
{
	struct unwind_scanner *s = NULL;
	struct unwind_table *t = NULL;
	struct elf_file *ef = NULL;
	struct unwind_code code = { 0 };
	struct tally n = { 0 };
	uint64_t *entries = NULL;

	if (elf_file_open(path, &ef))
		return;
	find_text(ef, &code);
	assert_int_equal(unwind_entries(ef, &entries, &code.entry_cnt), 0);
	code.entries = entries;
	if (unwind_table_build(ef, &described, &t)) {
		free(entries);
		elf_file_close(ef);
		return;
	}
	n.table = t;
	assert_int_equal(unwind_scanner_open(EM_X86_64, &s), 0);
	if (code.bytes <= UNWIND_SCAN_BYTES_CAP) {
		assert_int_equal(unwind_scan(s, &code, on_row, &n), 0);
		print_message("# %s: same %lu, wrong %lu (%.3f %%; first at %#lx), rbp wrong %lu, "
			      "unknown %lu\n",
			      path, n.same, n.wrong,
			      100.0 * (double)n.wrong / (double)(n.same + n.wrong), n.first_wrong,
			      n.wrong_rbp, n.silent);
		assert_true(n.same > 100);
		assert_true((double)n.wrong <= wrong_share * (double)(n.same + n.wrong));
	}
	free(entries);
	unwind_scanner_close(s);
	unwind_table_free(t);
	elf_file_close(ef);
}

TEST(test_against_frame_information)
{
	static const char *const files[] = {
		"/lib/x86_64-linux-gnu/libc.so.6",
		"/lib/x86_64-linux-gnu/libz.so.1",
		"/usr/bin/redis-server",
		"/usr/lib/x86_64-linux-gnu/libjemalloc.so.2",
		"/proc/self/exe",
	};
	size_t i;
	int arg;

	for (arg = 0; arg < arg_file_cnt; arg++)
		check(arg_files[arg], 1);
	for (i = 0; !arg_file_cnt && i < sizeof(files) / sizeof(files[0]); i++)
		check(files[i], 0.02);
}

int main(int argc, char **argv)
{
	arg_files = argv + 1;
	arg_file_cnt = argc - 1;
	return unit_main(__FILE__, NULL, NULL);
}
