/* SPDX-License-Identifier: MIT */
/* test_explain.c - the text of smaps, pages of a real process, pages of a heap, rows that add up, and the verdict. */
#include "unit.h"

#include <elf.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "explain/explain.h"
#include "explain/explain_priv.h"
#include "explain/glibc.h"
#include "explain/rows.h"
#include "made_pool.h"

#define MIB (1ULL << 20)

static const char smaps[] =
	"55e000000000-55e000100000 r-xp 00000000 08:01 11 /usr/bin/a b\n"
	"Size: 1024 kB\nRss: 400 kB\nPss: 100 kB\nShared_Clean: 300 kB\nAnonymous: 0 kB\n"
	"VmFlags: rd ex mr mw me\n"
	"55e000100000-55e000101000 rw-p 00001000 08:01 11 /usr/bin/a b\n"
	"Rss: 4 kB\nAnonymous: 4 kB\nVmFlags: rd wr\n"
	"55e000101000-55e000102000 rw-p 00000000 00:00 0 \n"
	"Rss: 4 kB\nAnonymous: 4 kB\nVmFlags: rd wr\n"
	"55e000200000-55e000300000 rw-p 00000000 00:00 0 [heap]\n"
	"Rss: 1000 kB\nShared_Dirty: 96 kB\nAnonymous: 1000 kB\nSwap: 8 kB\nVmFlags: rd wr\n"
	"7f0000000000-7f0000100000 rw-s 00000000 00:05 22 /dev/shm/x (deleted)\n"
	"Rss: 512 kB\nShared_Dirty: 512 kB\nVmFlags: rd wr sh mr\n"
	"7f0000200000-7f0000400000 rw-p 00000000 00:00 0 [anon:arena of mine]\n"
	"Rss: 2048 kB\nAnonymous: 2048 kB\nAnonHugePages: 2048 kB\nVmFlags: rd wr\n"
	"7f0000500000-7f0000600000 rw-p 00000000 00:00 0 \n"
	"Rss: 100 kB\nAnonymous: 100 kB\nVmFlags: rd wr\n"
	"7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0 [stack]\n"
	"Rss: 24 kB\nAnonymous: 24 kB\nVmFlags: rd wr\n";

static int parse(const char *text, size_t piece, struct mappings *ret)
{
	struct mappings_reader r = { 0 };
	size_t len = strlen(text), at = 0;
	int err = 0, end_err;

	for (; !err && at < len; at += piece)
		err = mappings_feed(&r, text + at, len - at < piece ? len - at : piece);
	end_err = mappings_finish(&r, err ? NULL : ret);
	return err ? err : end_err;
}

TEST(test_smaps)
{
	for (size_t piece = 1; piece < sizeof(smaps); piece += 1 + piece / 7) {
		struct mappings maps = { 0 };
		const struct mapping *heap;

		assert_int_equal(parse(smaps, piece, &maps), 0);
		assert_int_equal(maps.list.cnt, 8);
		heap = mappings_find(&maps, 0x55e0002fffff);
		assert_non_null(heap);
		assert_string_equal(heap->map.path, "[heap]");
		assert_int_equal(heap->rss_bytes, 1000 << 10);
		assert_int_equal(heap->shared_bytes, 96 << 10);
		assert_int_equal(heap->swap_bytes, 8 << 10);
		assert_true(maps.list.data[4].is_shared && !heap->is_shared);
		assert_null(mappings_find(&maps, 0x55e000300000));
		mappings_release(&maps);
	}
}

TEST(test_smaps_moving)
{
	struct mappings maps = { 0 };

	/* the second is told again when it has grown, and has eaten the third */
	assert_int_equal(parse("1000-2000 rw-p 00000000 00:00 0 \nRss: 4 kB\n"
			       "3000-5000 rw-p 00000000 00:00 0 \nRss: 8 kB\n"
			       "6000-7000 rw-p 00000000 00:00 0 \nRss: 4 kB\n"
			       "3000-9000 rw-p 00000000 00:00 0 \nRss: 24 kB\n",
			       17, &maps),
			 0);
	assert_int_equal(maps.list.cnt, 2);
	assert_int_equal(maps.list.data[1].rss_bytes, 24 << 10);
	assert_int_equal(maps.list.data[1].map.end_addr, 0x9000);
	mappings_release(&maps);
	assert_int_equal(parse("Rss: 4 kB\n", 99, &maps), -EINVAL);
	assert_int_equal(parse("1000-0800 rw-p 00000000 00:00 0 \n", 99, &maps), -EINVAL);
	assert_int_equal(parse("hello\n", 99, &maps), -EINVAL);
	assert_int_equal(parse("", 99, &maps), 0);
	mappings_release(&maps);
}

static int64_t row_bytes(const struct rows *r, enum row_kind kind)
{
	return rows_find(r, kind)->bytes;
}

/* Zeros, but for the headers of the program, which ends *ctx bytes behind its start. */
static int read_program(void *ctx, uint64_t addr, void *buf, size_t bytes)
{
	const Elf64_Ehdr head = { .e_ident = ELFMAG, .e_phoff = sizeof(head), .e_phnum = 2 };
	const Elf64_Phdr ph[2] = {
		{ .p_type = PT_LOAD, .p_memsz = 0x1000 },
		{ .p_type = PT_LOAD, .p_vaddr = 0x1000, .p_memsz = *(uint64_t *)ctx - 0x1000 }
	};

	memset(buf, 0, bytes);
	if (addr == 0x55e000000000 && bytes > sizeof(head) + sizeof(ph)) {
		memcpy(buf, &head, sizeof(head));
		memcpy((char *)buf + sizeof(head), ph, sizeof(ph));
	}
	return 0;
}

static enum page_state all_resident(void *ctx, uint64_t addr)
{
	return PAGE_RESIDENT;
}

static void no_refresh(void *ctx, uint64_t addr, size_t bytes)
{
}

TEST(test_rows)
{
	uint64_t program_bytes = 0x102000;
	struct memory m = { .read = read_program,
			    .ctx = &program_bytes,
			    .page = all_resident,
			    .refresh = no_refresh,
			    .deadline_ns = UINT64_MAX };
	struct mappings maps = { 0 };
	struct glibc g = { 0 };
	struct jemalloc je = { 0 };
	struct runtimes rt = { 0 };
	struct rows r;
	int64_t sum = 0;

	assert_int_equal(parse(smaps, 100, &maps), 0);
	maps.list.data[3].taken_bytes = 900 << 10;
	g.sum.live = 600 << 10;
	g.sum.trim = 200 << 10;
	g.sum.kept = 100 << 10;
	assert_int_equal(rows_fill(&r, &m, &maps, &g, &je, &rt), 0);
	for (size_t i = 0; i < ROW_CNT; i++)
		sum += r.list[i].bytes;
	assert_true(sum == (int64_t)r.rss_bytes);
	assert_int_equal(r.rss_bytes, (400 + 4 + 4 + 1000 + 512 + 2048 + 100 + 24) << 10);
	assert_int_equal(row_bytes(&r, ROW_LIVE), 600 << 10);
	assert_int_equal(row_bytes(&r, ROW_BRK), 100 << 10);
	assert_int_equal(row_bytes(&r, ROW_FILES), 400 << 10);
	assert_int_equal(row_bytes(&r, ROW_DATA), 8 << 10); /* .data and .bss */
	assert_int_equal(row_bytes(&r, ROW_SHARED), 512 << 10);
	assert_int_equal(row_bytes(&r, ROW_NAMED), 2048 << 10);
	assert_int_equal(row_bytes(&r, ROW_ANONYMOUS), 100 << 10);
	assert_int_equal(row_bytes(&r, ROW_STACKS), 24 << 10);
	assert_int_equal(row_bytes(&r, ROW_MOVED), 0);
	assert_int_equal(r.forked_bytes, 96 << 10);
	assert_string_equal(rows_find(&r, ROW_FILES)->parts[0].name, "/usr/bin/a b");
	/* what follows .bss in its mapping is something else */
	program_bytes = 0x101000;
	assert_int_equal(rows_fill(&r, &m, &maps, &g, &je, &rt), 0);
	assert_int_equal(row_bytes(&r, ROW_DATA), 4 << 10);
	assert_int_equal(row_bytes(&r, ROW_ANONYMOUS), 104 << 10);
	/* the heap shrank after smaps was read: what is missing is told */
	maps.list.data[3].taken_bytes = 1100 << 10;
	g.sum.live = 800 << 10;
	assert_int_equal(rows_fill(&r, &m, &maps, &g, &je, &rt), 0);
	assert_int_equal(row_bytes(&r, ROW_MOVED), -(100 << 10));
	/* jemalloc's are rows of their own */
	maps.list.data[3].taken_bytes = 0;
	maps.list.data[6].taken_bytes = 100 << 10;
	g.sum = (struct heap_sum){ 0 };
	je.sum = (struct jemalloc_sum){
		.live = 40 << 10, .pinned = 30 << 10, .dirty = 20 << 10, .own = 10 << 10
	};
	assert_int_equal(rows_fill(&r, &m, &maps, &g, &je, &rt), 0);
	assert_int_equal(row_bytes(&r, ROW_JE_PINNED), 30 << 10);
	assert_int_equal(row_bytes(&r, ROW_ANONYMOUS), 4 << 10);
	assert_int_equal(row_bytes(&r, ROW_MOVED), 0);
	mappings_release(&maps);
}

/* Pools are believed if their lists are what their headers say. */
TEST(test_python)
{
	static const char python[] =
		"55e000000000-55e000100000 r-xp 00000000 08:01 11 /usr/bin/python3.11\n"
		"Rss: 400 kB\nVmFlags: rd ex mr mw me\n"
		"7f0000500000-7f0000508000 rw-p 00000000 00:00 0 \n"
		"Rss: 32 kB\nAnonymous: 32 kB\nVmFlags: rd wr\n";
	static uint64_t words[POOLS_BYTES / 8];
	/* what is wrong: a word, and its value there */
	static const struct {
		size_t word;
		uint64_t value;
	} wrong[] = {
		{ 0, 96 },
		{ 0, 98 },
		{ 0, 1000 },
		{ 1, POOLS_ADDR + 48 + 7 * 48 + 8 },
		{ 1, POOLS_ADDR + 48 + 100 * 48 },
		{ 4, 5 | 3ULL << 32 },
		{ 4, 5 | 40ULL << 32 },
		{ 5, (48 + 100 * 48 + 16) | (16384ULL - 48) << 32 },
		{ 5, (48 + 100 * 48) | (16384ULL - 64) << 32 },
		{ (48 + 99 * 48) / 8, POOLS_ADDR + 48 + 7 * 48 }, /* a circle */
	};
	struct memory m = pool_memory(words);
	struct mappings maps = { 0 };
	struct python_pools py;

	assert_int_equal(parse(python, 100, &maps), 0);
	make_pool(words, POOLS_ADDR);
	python_pools_read(&m, &maps, &py);
	assert_int_equal(py.pool_cnt, 1);
	assert_int_equal(py.live_cnt, 97);
	assert_int_equal(py.live, 97 * 48);
	assert_int_equal(py.free, 16384 - 97 * 48);
	assert_int_equal(maps.list.data[1].taken_bytes, 16384);
	each_case(c, wrong) {
		make_pool(words, POOLS_ADDR);
		words[c->word] = c->value;
		maps.list.data[1].taken_bytes = 0;
		python_pools_read(&m, &maps, &py);
		if (py.pool_cnt || maps.list.data[1].taken_bytes)
			fail_msg("case %zu is a pool", (size_t)(c - wrong));
	}
	/* at a multiple of its size only, and nowhere else than in a Python */
	memset(words, 0, sizeof(words));
	make_pool(words + 512, POOLS_ADDR + 4096);
	python_pools_read(&m, &maps, &py);
	assert_int_equal(py.pool_cnt, 0);
	make_pool(words + POOL_WORDS, POOLS_ADDR + 16384);
	python_pools_read(&m, &maps, &py);
	assert_int_equal(py.pool_cnt, 1);
	mappings_release(&maps);
	assert_int_equal(parse(smaps, 100, &maps), 0);
	python_pools_read(&m, &maps, &py);
	assert_int_equal(py.pool_cnt, 0);
	mappings_release(&maps);
}

/* Pieces of one heap, and what malloc_trim() would make of them. */
static struct heap_sum account(bool top_is_given, uint64_t top_step, const uint64_t *pieces,
			       size_t cnt, struct heap_class *classes)
{
	struct memory m = { .page = all_resident, .deadline_ns = UINT64_MAX };
	struct mappings maps = { 0 };
	struct heap_sum sum = { 0 };
	struct heap_pages h = { .memory = &m,
				.maps = &maps,
				.sum = &sum,
				.classes = classes,
				.top_is_given = top_is_given,
				.top_step = top_step };
	uint64_t at = 0x10000000;

	for (size_t i = 0; i < cnt; i += 2) {
		heap_pages_add(&h, at, pieces[i + 1], (enum heap_use)pieces[i]);
		at += pieces[i + 1];
	}
	heap_pages_end(&h);
	return sum;
}
#define ACCOUNT(given, step, classes, ...)                      \
	account(given, step, (const uint64_t[]){ __VA_ARGS__ }, \
		sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t), classes)

TEST(test_heap_pages)
{
	struct heap_class *classes = calloc(HEAP_CLASS_CNT, sizeof(*classes));
	struct heap_sum s;

	assert_non_null(classes);
	/* two blocks of 96 pin the rest of the page, each half of it */
	s = ACCOUNT(false, 4096, classes, HEAP_LIVE, 96, HEAP_FREE, 3904, HEAP_LIVE, 96);
	assert_int_equal(s.live, 192);
	assert_int_equal(s.pinned, 3904);
	assert_true(classes[6].pinned_bytes == 3904);
	free(classes);
	/* a run over a boundary gives back whole pages behind its first 48 bytes */
	s = ACCOUNT(false, 4096, NULL, HEAP_LIVE, 4080 - 32, HEAP_FREE, 48 + 2 * 4096, HEAP_LIVE,
		    4096);
	assert_int_equal(s.trim, 2 * 4096);
	s = ACCOUNT(false, 4096, NULL, HEAP_LIVE, 4080 - 16, HEAP_FREE, 32 + 2 * 4096, HEAP_LIVE,
		    4096);
	assert_int_equal(s.trim, 4096);
	assert_int_equal(s.kept, 4096);
	/* two free chunks are one run; what a thread caches ends it */
	s = ACCOUNT(false, 4096, NULL, HEAP_LIVE, 4096, HEAP_FREE, 2048, HEAP_FREE, 6144 + 4096);
	assert_int_equal(s.trim, 2 * 4096);
	s = ACCOUNT(false, 4096, NULL, HEAP_LIVE, 4096, HEAP_FREE, 4096, HEAP_CACHED, 4096);
	assert_int_equal(s.trim, 0);
	assert_int_equal(s.kept, 2 * 4096);
	/* the top of the main arena is given back, with what is free before it; another's is not */
	s = ACCOUNT(true, 4096, NULL, HEAP_LIVE, 2048, HEAP_FREE, 2048, HEAP_TOP, 8 * 4096);
	assert_int_equal(s.trim, 8 * 4096);
	assert_int_equal(s.trim_top, 8 * 4096);
	s = ACCOUNT(false, 4096, NULL, HEAP_LIVE, 2048, HEAP_FREE, 2048, HEAP_TOP, 8 * 4096);
	assert_int_equal(s.trim, 0);
	assert_int_equal(s.kept, 8 * 4096);
	/* in steps of a huge page */
	s = ACCOUNT(true, 2 * MIB, NULL, HEAP_LIVE, 4096, HEAP_TOP, 3 * MIB - 4096);
	assert_int_equal(s.trim, 2 * MIB);
	assert_int_equal(heap_sum_resident(&s), 3 * MIB);
}

TEST(test_classes)
{
	uint64_t from, to;

	for (uint64_t bytes = 25; bytes < 60000; bytes += 13) {
		uint64_t chunk = (bytes + 8 + 15) & ~15ULL;

		heap_class_range(heap_class_of(chunk), &from, &to);
		assert_in_range(bytes, from, to);
	}
	assert_true(heap_class_of(1ULL << 46) < HEAP_CLASS_CNT);
}

static const char *cause_of(const uint64_t *mib, size_t cnt, struct glibc *g,
			    const struct jemalloc *je, uint64_t swap, uint64_t forked,
			    uint64_t zeros, struct verdict *v)
{
	struct rows r = { .swap_bytes = swap * MIB,
			  .forked_bytes = forked * MIB,
			  .huge_zero_bytes = zeros * MIB };
	const struct runtimes rt = { 0 };

	/* rows by size, as rows_fill() leaves them */
	for (size_t i = 0; i < cnt; i += 2) {
		r.list[i / 2] = (struct row){ .kind = (enum row_kind)mib[i],
					      .bytes = (int64_t)(mib[i + 1] * MIB) };
		r.rss_bytes += mib[i + 1] * MIB;
	}
	for (size_t i = cnt / 2, kind = 0; i < ROW_CNT; kind++) {
		bool is_there = false;

		for (size_t k = 0; k < cnt; k += 2)
			is_there |= mib[k] == kind;
		if (!is_there)
			r.list[i++].kind = (enum row_kind)kind;
	}
	verdict_find(v, 7, &r, g, je, &rt);
	return v->cause;
}
#define CAUSE(g, swap, forked, zeros, v, ...) \
	CAUSE_JE(g, &(const struct jemalloc){ 0 }, swap, forked, zeros, v, __VA_ARGS__)
#define CAUSE_JE(g, je, swap, forked, zeros, v, ...)                                        \
	cause_of((const uint64_t[]){ __VA_ARGS__ },                                         \
		 sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t), g, je, swap, \
		 forked, zeros, v)

TEST(test_verdict)
{
	struct glibc g = { 0 };
	struct glibc_arena arenas[9] = { 0 };
	struct verdict v = { 0 };

	assert_string_equal(CAUSE(&g, 0, 0, 0, &v, ROW_LIVE, 90, ROW_FILES, 10), "live");
	assert_says(v.text, "Mostly live malloc blocks (90.0 MiB, 90 %).");
	assert_string_equal(CAUSE(&g, 0, 0, 0, &v, ROW_TRIM, 90, ROW_FILES, 10), "trimmable");
	assert_says(v.advice, "malloc_trim(0) would return 90.0 MiB now.");
	assert_omits(v.advice, "MALLOC_TRIM_THRESHOLD_");
	/* the end of the heap, because a large block was freed once */
	g.sum.trim_top = 50 * MIB;
	g.parameters.trim_threshold = 128 << 10;
	CAUSE(&g, 0, 0, 0, &v, ROW_TRIM, 90, ROW_FILES, 10);
	assert_omits(v.advice, "MALLOC_TRIM_THRESHOLD_");
	g.parameters.trim_threshold = 64 * MIB;
	CAUSE(&g, 0, 0, 0, &v, ROW_TRIM, 90, ROW_FILES, 10);
	assert_says(v.advice, "50.0 MiB of it is the end of the heap, of which free() keeps up to "
			      "64.0 MiB: MALLOC_TRIM_THRESHOLD_=131072 in");
	g = (struct glibc){ 0 };
	/* too little to be worth it */
	CAUSE(&g, 0, 0, 0, &v, ROW_LIVE, 96, ROW_TRIM, 4);
	assert_omits(v.advice, "malloc_trim");
	CAUSE(&g, 0, 0, 0, &v, ROW_LIVE, 55, ROW_STACKS, 45);
	assert_says(v.text, "live malloc blocks (55.0 MiB, 55 %) and stacks (45.0 MiB, 45 %)");
	assert_string_equal(CAUSE(&g, 40, 0, 0, &v, ROW_LIVE, 100), "swapped");
	assert_string_equal(CAUSE(&g, 0, 60, 0, &v, ROW_LIVE, 100), "forked");
	/* whose memory it is depends on what could be read */
	CAUSE(&g, 0, 0, 0, &v, ROW_BRK, 100);
	assert_says(v.advice, "a runtime, another allocator or direct system calls");
	g.is_unread = true;
	snprintf(g.why, sizeof(g.why), "its bins are torn");
	CAUSE(&g, 0, 0, 0, &v, ROW_BRK, 100);
	assert_omits(v.advice, "a runtime");
	assert_says(v.advice,
		    "glibc's malloc could not be read (its bins are torn). This memory is");
	g.is_unread = false;
	g.arenas.data = arenas;
	g.arenas.cnt = 1;
	arenas[0].system_bytes = 100 * MIB;
	snprintf(arenas[0].why, sizeof(arenas[0].why), "its top keeps changing");
	CAUSE(&g, 0, 0, 0, &v, ROW_ANONYMOUS, 100);
	assert_says(v.advice, "malloc has 100 MiB in arenas that could not be verified: "
			      "its top keeps changing.");
	g.arenas.cnt = 0;
	/* what a program never wrote of its huge pages */
	assert_string_equal(CAUSE(&g, 0, 0, 40, &v, ROW_ANONYMOUS, 100), "huge_pages");
	/* 9 arenas with 5 MiB of free memory each; then one with nearly all of it */
	g.arenas.data = arenas;
	g.arenas.cnt = 9;
	for (size_t i = 0; i < 9; i++)
		arenas[i].sum.trim = 5 * MIB;
	g.sum.trim = 45 * MIB;
	assert_string_equal(CAUSE(&g, 0, 0, 0, &v, ROW_LIVE, 55, ROW_TRIM, 45), "arenas");
	assert_says(v.advice, "MALLOC_ARENA_MAX");
	arenas[0].sum.trim = 45 * MIB;
	g.sum.trim = 85 * MIB;
	assert_string_equal(CAUSE(&g, 0, 0, 0, &v, ROW_TRIM, 85, ROW_LIVE, 15), "trimmable");
}

TEST(test_verdict_jemalloc)
{
	struct glibc g = { 0 };
	struct jemalloc je = { .sum = { .dirty = 60 * MIB,
					.bins[3].pinned_bytes = 5 * MIB,
					.bins[4].pinned_bytes = 25 * MIB } };
	struct verdict v = { 0 };

	assert_string_equal(CAUSE_JE(&g, &je, 0, 0, 0, &v, ROW_JE_DIRTY, 60, ROW_JE_PINNED, 30,
				     ROW_FILES, 10),
			    "jemalloc_dirty");
	assert_says(v.advice, "jemalloc would return 60.0 MiB at once");
	assert_says(v.advice, "background_thread:true,dirty_decay_ms:1000");
	assert_says(v.advice, "blocks of 49 to 64 bytes have 25.0 MiB free");
	je.sum.dirty = MIB / 2;
	assert_string_equal(CAUSE_JE(&g, &je, 0, 0, 0, &v, ROW_JE_PINNED, 90, ROW_FILES, 10),
			    "jemalloc_pinned");
	assert_omits(v.advice, "at once");
	CAUSE(&g, 0, 0, 0, &v, ROW_JE_LIVE, 90, ROW_FILES, 10);
	assert_says(v.advice, "cannot tell a leak from a cache");
}

/* What is not read is named, once. */
TEST(test_unread)
{
	static const char loaded[] =
		"7f0000000000-7f0000100000 r-xp 00000000 08:01 11 /usr/lib/libtcmalloc_minimal.so.4\n"
		"Rss: 4 kB\nVmFlags: rd ex\n"
		"7f0000100000-7f0000200000 r--p 00000000 08:01 11 /usr/lib/libtcmalloc_minimal.so.4\n"
		"Rss: 4 kB\nVmFlags: rd\n";
	struct explanation x = { 0 };
	char *text, *first;

	assert_int_equal(parse(loaded, 100, &x.maps), 0);
	text = printed(out, explain_print_notes(&x, 200, out));
	first = strstr(text, "libtcmalloc_minimal.so.4 is loaded. heaptap does not read its heap");
	assert_non_null(first);
	assert_omits(first + 1, "libtcmalloc");
	mappings_release(&x.maps);
}

TEST(test_dead_stacks)
{
	struct glibc g = { 0 };
	struct jemalloc je = { 0 };
	struct rows r = { .rss_bytes = 100 * MIB, .dead_stack_cnt = 77 };
	struct verdict v = { 0 };

	for (int kind = 0; kind < ROW_CNT; kind++)
		r.list[kind].kind = (enum row_kind)kind;
	r.list[0] = (struct row){ .kind = ROW_STACKS, .bytes = 90 * MIB };
	r.list[ROW_STACKS].kind = ROW_LIVE;
	r.dead_stack_bytes = 44 * MIB;
	verdict_find(&v, 7, &r, &g, &je, &(const struct runtimes){ 0 });
	assert_string_equal(v.cause, "stacks");
	r.dead_stack_bytes = 45 * MIB;
	verdict_find(&v, 7, &r, &g, &je, &(const struct runtimes){ 0 });
	assert_string_equal(v.cause, "dead_stacks");
	assert_string_equal(v.text, "45.0 MiB is in the stacks of 77 threads that have ended.");
}

/* One look: so much in rows, and in live blocks of 64 bytes. */
static void look(struct explanation *x, uint64_t live_mib, uint64_t trim_mib, uint64_t files_mib)
{
	struct heap_class *c;

	memset(x, 0, sizeof(*x));
	for (int kind = 0; kind < ROW_CNT; kind++)
		x->rows.list[kind].kind = (enum row_kind)kind;
	x->rows.list[ROW_LIVE].bytes = (int64_t)(live_mib * MIB);
	x->rows.list[ROW_TRIM].bytes = (int64_t)(trim_mib * MIB);
	x->rows.list[ROW_FILES].bytes = (int64_t)(files_mib * MIB);
	x->rows.rss_bytes = (live_mib + trim_mib + files_mib) * MIB;
	x->glibc.classes = calloc(HEAP_CLASS_CNT, sizeof(*x->glibc.classes));
	assert_non_null(x->glibc.classes);
	c = &x->glibc.classes[heap_class_of(64)];
	c->live_bytes = live_mib * MIB;
	c->live_cnt = c->live_bytes / 64;
}

static void compare(struct explanation looks[2])
{
	looks[0].looked_ns = 5 * NS_PER_S;
	looks[1].looked_ns = 65 * NS_PER_S;
	explain_compare(&looks[1], &looks[0]);
	explain_release(&looks[0]);
	explain_release(&looks[1]);
}

TEST(test_compare)
{
	struct explanation *looks = unit_keep(calloc(2, sizeof(*looks)), free);
	const struct explain_change *c;

	assert_non_null(looks);
	c = &looks[1].change;
	/* it grew, though a larger row shrank */
	look(&looks[0], 50, 100, 10);
	look(&looks[1], 140, 20, 10);
	compare(looks);
	assert_true(c->is_known && c->apart_ns == 60 * NS_PER_S);
	assert_true(c->rss_bytes == (int64_t)(10 * MIB));
	assert_true(c->rows[ROW_LIVE] == (int64_t)(90 * MIB));
	assert_true(c->rows[ROW_TRIM] == -(int64_t)(80 * MIB));
	assert_string_equal(
		c->text,
		"RSS grew by 10.0 MiB in 1m 00s. Most in the row 'malloc: live blocks': +90.0 MiB. Of live "
		"blocks, those of 41 to 56 bytes grew most: 1.47M more, 90.0 MiB.");
	assert_omits(looks[1].verdict.advice, "cannot tell a leak");
	/* the same RSS of something else */
	look(&looks[0], 100, 0, 50);
	look(&looks[1], 20, 80, 50);
	compare(looks);
	assert_says(c->text, "RSS hardly changed in 1m 00s. Most in the row");
	assert_omits(c->text, "grew most");
	look(&looks[0], 100, 0, 50);
	look(&looks[1], 100, 0, 0);
	compare(looks);
	assert_says(c->text, "RSS fell by 50.0 MiB in 1m 00s. Most in the row 'file pages "
			     "(page cache)': -50.0 MiB.");
	look(&looks[0], 100, 0, 50);
	look(&looks[1], 100, 0, 50);
	looks[1].glibc.main_arena = 1;
	compare(looks);
	assert_string_equal(c->text,
			    "RSS hardly changed in 1m 00s. Live malloc blocks did not grow.");
}

/* Pages of this process: written, never touched, read only; and none of them changes by being looked at. */
TEST(test_target)
{
	char *p = mmap(NULL, 12 * MEMORY_PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t addr = (uintptr_t)p, deadline_ns = now_ns() + 20 * NS_PER_S;
	struct mappings maps = { 0 };
	struct target *t = NULL;
	char text[64], page[MEMORY_PAGE];
	struct memory *m;
	int err;

	assert_true(p != MAP_FAILED);
	madvise(p, 12 * MEMORY_PAGE, MADV_NOHUGEPAGE);
	snprintf(p, 64, "written");
	text[0] = *(volatile char *)(p + 4 * MEMORY_PAGE); /* the page of zeros */
	assert_int_equal(target_read_mappings(getpid(), deadline_ns, &maps), 0);
	err = target_open(getpid(), &maps, deadline_ns, &t);
	if (err == -EACCES || err == -EPERM) {
		mappings_release(&maps);
		skip();
	}
	assert_int_equal(err, 0);
	m = target_memory(t);
	assert_int_equal(m->page(m->ctx, addr), PAGE_RESIDENT);
	assert_int_equal(m->page(m->ctx, addr + 4 * MEMORY_PAGE), PAGE_ZERO);
	assert_int_equal(m->page(m->ctx, addr + 8 * MEMORY_PAGE), PAGE_ABSENT);
	assert_int_equal(m->page(m->ctx, MEMORY_END), PAGE_ABSENT);
	assert_int_equal(memory_read(m, addr, text, sizeof(text)), 0);
	assert_string_equal(text, "written");
	assert_int_equal(memory_read(m, addr + 8 * MEMORY_PAGE, page, sizeof(page)), -EFAULT);
	assert_int_equal(memory_read(m, addr, page, MEMORY_END), -EFAULT);
	assert_int_equal(memory_window(m, addr + 7 * MEMORY_PAGE, page, sizeof(page)),
			 sizeof(page));
	assert_true(target_is_there(t));
	/* what was looked at is still absent, and what was written since is seen */
	assert_int_equal(m->page(m->ctx, addr + 8 * MEMORY_PAGE), PAGE_ABSENT);
	p[8 * MEMORY_PAGE] = 1;
	assert_int_equal(memory_read(m, addr + 8 * MEMORY_PAGE, page, sizeof(page)), 0);
	assert_int_equal(page[0], 1);
	target_close(t);
	mappings_release(&maps);
	munmap(p, 12 * MEMORY_PAGE);
	assert_int_equal(target_read_mappings(getpid(), 0, &maps), -ETIMEDOUT);
}

RUN_TESTS()
