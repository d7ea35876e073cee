/* SPDX-License-Identifier: MIT */
/* test_alloc_table.c - the table of entry points: names, prefixes, families, frames that are plumbing. */
#include "unit.h"

#include "heaptap/abi.h"
#include "alloc/allocators_priv.h"
#include "alloc/allocators.h"

TEST(test_lookup)
{
	static const struct {
		const char *name, *row, *prefix;
		int op, size, count, ptr;
	} cases[] = {
		{ "malloc", "malloc", "", HT_OP_ALLOC, 0, 7, 7 },
		{ "_rjem_calloc", "calloc", "_rjem_", HT_OP_ALLOC, 1, 0, 7 },
		{ "je_sdallocx", "sdallocx", "je_", HT_OP_FREE, 7, 7, 0 },
		{ "mi_realloc", "realloc", "mi_", HT_OP_REALLOC, 1, 7, 0 },
		{ "mi_zalloc", "mi_zalloc", "mi_", HT_OP_ALLOC, 0, 7, 7 },
		{ "mi_heap_recalloc_aligned_at", "mi_heap_recalloc_aligned_at", "mi_",
		  HT_OP_REALLOC, 3, 2, 1 },
		{ "tc_posix_memalign", "posix_memalign", "tc_", HT_OP_ALLOC, 2, 7, 0 },
		{ "tc_deletearray_sized", "tc_deletearray_sized", "tc_", HT_OP_FREE, 7, 7, 0 },
		{ "__libc_memalign", "memalign", "__libc_", HT_OP_ALLOC, 1, 7, 7 },
		{ "reallocarray", "reallocarray", "", HT_OP_REALLOC, 2, 1, 0 },
		{ "xallocx", "xallocx", "", HT_OP_RESIZE, 1, 7, 0 },
		{ "_ZdlPvSt11align_val_tRKSt9nothrow_t", "_ZdlPvSt11align_val_tRKSt9nothrow_t", "",
		  HT_OP_FREE, 7, 7, 0 },
		{ "scalable_malloc", "malloc", "scalable_", HT_OP_ALLOC, 0, 7, 7 },
	};
	static const char *const none[] = {
		"",
		"m",
		"mallocs",
		"xmalloc",
		"malloc_usable_size",
		"_malloc",
		"mi_",
		"je_je_malloc",
		"_Znw",
		"free_all",
		"mi_heap_destroy",
		"__libc_mallopt",
		"a_name_that_is_longer_than_any_entry_point_of_any_allocator_that_there_is_or_will_be",
	};
	struct alloc_lookup lk;
	size_t i, prefix, prefix_cnt;

	alloc_lookup_init(&lk);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct alloc_row *row = alloc_lookup_find(&lk, cases[i].name, &prefix);

		if (!row || strcmp(row->name, cases[i].row) || row->op != cases[i].op ||
		    row->size_arg != cases[i].size || row->count_arg != cases[i].count ||
		    row->ptr_arg != cases[i].ptr)
			fail_msg("%s is %s", cases[i].name, row ? row->name : "nothing");
		assert_string_equal(alloc_prefixes(&prefix_cnt)[prefix], cases[i].prefix);
	}
	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_null(alloc_lookup_find(&lk, none[i], &prefix));
}

/* A prefix of the file's own is known by several names of one family. */
TEST(test_prefixes)
{
	static const struct {
		const char *names[5];
		const char *found, *row, *family; /* NULL: not found */
	} cases[] = {
		{ { "duckdb_je_mallctl", "duckdb_je_nallocx" },
		  "duckdb_je_malloc",
		  "malloc",
		  "jemalloc" },
		{ { "je_arrow_sdallocx", "je_arrow_mallctl" },
		  "je_arrow_sdallocx",
		  "sdallocx",
		  "jemalloc" },
		{ { "acme_mi_malloc", "acme_mi_zalloc" }, "acme_mi_realloc", "realloc", "mimalloc" },
		{ { "acme_mi_malloc", "acme_mi_heap_malloc" },
		  "acme_mi_zalloc",
		  "mi_zalloc",
		  "mimalloc" },
		{ { "acme_mi_malloc", "acme_mi_heap_malloc" }, "acme_free", NULL, NULL },
		/* one name alone, names of two prefixes, a prefix that is a part of a word, a mangled name */
		{ { "acme_mallctl" }, "acme_malloc", NULL, NULL },
		{ { "acme_mallctl", "other_nallocx" }, "acme_malloc", NULL, NULL },
		{ { "acmemallctl", "acmenallocx" }, "acmemalloc", NULL, NULL },
		{ { "_ZN4acme_mallctl", "_ZN4acme_nallocx" }, "_ZN4acme_malloc", NULL, NULL },
		{ { "g_malloc", "g_free", "g_realloc" }, "g_malloc", NULL, NULL },
	};

	each_case(c, cases) {
		struct alloc_prefix_finder pf = { .cnt = 0 };
		const struct alloc_row *row;
		struct alloc_lookup lk;
		size_t prefix = 0;

		alloc_lookup_init(&lk);
		for (size_t k = 0; k < 5 && c->names[k]; k++)
			alloc_prefix_note(&pf, c->names[k]);
		alloc_prefix_take(&pf, &lk);
		row = alloc_lookup_find(&lk, c->found, &prefix);
		if (!row != !c->row || (row && strcmp(row->name, c->row) != 0))
			fail_msg("%s is %s", c->found, row ? row->name : "nothing");
		if (row)
			assert_string_equal(alloc_family_by_prefix(&lk, prefix)->name, c->family);
	}
}

/* The table itself: names unique, argument numbers possible, one size for what allocates. */
TEST(test_table)
{
	const struct alloc_row *rows;
	struct alloc_lookup lk;
	size_t cnt, i, prefix;

	alloc_lookup_init(&lk);
	rows = alloc_table(&cnt);
	assert_true(cnt > 100);
	for (i = 0; i < cnt; i++) {
		const struct alloc_row *r = &rows[i];

		assert_ptr_equal(alloc_lookup_find(&lk, r->name, &prefix), r);
		assert_true(strlen(r->name) < 64);
		assert_true(r->size_arg < 6 || r->size_arg == HT_ARG_NONE);
		assert_int_equal(r->op == HT_OP_FREE, r->size_arg == HT_ARG_NONE);
		assert_int_equal(r->op != HT_OP_ALLOC || r->ret == HT_RET_OUT,
				 r->ptr_arg != HT_ARG_NONE);
		assert_true(r->size_arg == HT_ARG_NONE || r->size_arg != r->ptr_arg);
		assert_true(r->count_arg == HT_ARG_NONE || r->count_arg != r->size_arg);
		if (r->flags & HT_SITE_THROWS)
			assert_true(r->op != HT_OP_FREE);
	}
}

TEST(test_families)
{
	static const struct {
		const char *soname, *family;
	} cases[] = {
		{ "libc.so.6", "glibc" },
		{ "libc.so", "musl" },
		{ "libc.musl-x86_64.so.1", "musl" },
		{ "libjemalloc.so.2", "jemalloc" },
		{ "libtcmalloc_minimal.so.4", "tcmalloc" },
		{ "libmimalloc.so.2", "mimalloc" },
		{ "libasan.so.8", "sanitizer" },
		{ "libclang_rt.asan-x86_64.so", "sanitizer" },
		{ "libc.so.7", NULL },
		{ "libcrypto.so.3", NULL },
		{ "", NULL },
		{ NULL, NULL },
	};

	each_case(c, cases) {
		const struct alloc_family *f = alloc_family_by_soname(c->soname);

		if (!f != !c->family || (f && strcmp(f->name, c->family)))
			fail_msg("%s is %s", c->soname, f ? f->name : "nothing");
	}
	assert_true(alloc_is_loader("ld-linux-x86-64.so.2"));
	assert_false(alloc_is_loader("libc.so.6"));
	assert_false(alloc_is_loader(NULL));
}

TEST(test_frames)
{
	static const char *const plumbing[] = {
		"malloc",
		"calloc",
		"realloc",
		"posix_memalign",
		"__libc_malloc",
		"__GI___libc_malloc",
		"_int_malloc",
		"_mid_memalign",
		"malloc@plt",
		"_int_realloc.cold",
		"_int_malloc.constprop.0",
		"_rjem_malloc",
		"je_malloc",
		"mi_heap_malloc_aligned",
		"tc_newarray",
		"_Znwm",
		"_Znam",
		"_ZnwmSt11align_val_t",
		"operator new(unsigned long)",
		"operator new[](unsigned long)",
		"operator new(unsigned long, std::nothrow_t const&)",
		"operator new",
		"_ZdlPv",
		"operator delete(void*)",
		"__rust_alloc",
		"__rust_alloc_zeroed",
		"__rust_realloc",
		"__rdl_alloc",
		"__rg_alloc",
		"__rustc::__rust_alloc",
		"__rustc[5224e6b81cd82a8f]::__rdl_alloc",
		"alloc::alloc::alloc",
		"alloc::alloc::exchange_malloc",
		"alloc::alloc::Global::alloc_impl",
		"alloc::raw_vec::RawVec<T,A>::allocate_in",
		"alloc::raw_vec::finish_grow",
		"alloc::raw_vec::RawVec<T,A>::reserve::do_reserve_and_handle::h0123456789abcdef",
		"<alloc::raw_vec::RawVec<u8>>::grow_one",
		"<alloc::alloc::Global as core::alloc::Allocator>::allocate",
		"<tikv_jemallocator::Jemalloc as core::alloc::global::GlobalAlloc>::alloc",
		"_ZN5alloc7raw_vec11finish_grow17h0123456789abcdefE",
		"_ZN5alloc5alloc15exchange_malloc17h0123456789abcdefE",
		"_ZN73_$LT$alloc..raw_vec..RawVec$LT$T$C$A$GT$$u20$as$u20$core..ops..drop..Drop$GT$4drop17h0E",
		"_RNvNtCs5l0EXMQXRMU_5alloc7raw_vec11finish_grow",
		"_RNvMs0_NtCs5l0EXMQXRMU_5alloc7raw_vecNtB5_8RawVec8grow_one",
		"std::__new_allocator<int>::allocate(unsigned long, void const*)",
		"__gnu_cxx::new_allocator<std::pair<int const, std::vector<int> > >::allocate(unsigned long, void const*)",
		"std::allocator_traits<std::allocator<int> >::allocate(std::allocator<int>&, unsigned long)",
		"std::allocator<char>::allocate(unsigned long)",
		"std::__1::allocator<char>::allocate[abi:ne180100](unsigned long)",
		"void* std::__1::__libcpp_operator_new[abi:ne180100]<unsigned long>(unsigned long)",
		"_ZNSt15__new_allocatorIiE8allocateEmPKv",
		"_ZN9__gnu_cxx13new_allocatorIcE8allocateEmPKv",
		"_ZNSt16allocator_traitsISaIiEE8allocateERS0_m",
	};
	static const char *const callers[] = {
		"",
		"main",
		"xmalloc",
		"g_malloc",
		"g_malloc0",
		"mallocator",
		"my_malloc",
		"strdup",
		"_malloc",
		"PyMem_RawMalloc",
		"zend_alloc",
		"Pool::operator new(unsigned long)",
		"operator new_thing",
		"operator newest(int)",
		"std::vector<int, std::allocator<int> >::reserve(unsigned long)",
		"std::vector<int>::_M_realloc_insert<int>(int&&)",
		"std::allocator<int>::construct(int*)",
		"_ZNSt6vectorIiSaIiEE7reserveEm",
		"_ZNSt15__new_allocatorIiE9constructEv",
		"alloc::vec::Vec<T,A>::push",
		"alloc::boxed::Box<T>::new",
		"alloc::string::String::from",
		"hashbrown::raw::RawTable<T,A>::reserve_rehash",
		"alloc_pages",
		"allocate",
		"core::ptr::drop_in_place<alloc::raw_vec::RawVec<u8>>",
		"my::alloc::raw_vec::grow",
		"_RINvNtCs1_4core3ptr13drop_in_placeNtNtCs2_5alloc7raw_vec6RawVecE",
		"_ZN4main5alloc17h0E",
		"_RNvCs1_4main5alloc",
		"<my::Thing as my::Trait>::go",
	};
	size_t i;

	assert_false(alloc_is_allocator_frame(NULL));
	for (i = 0; i < sizeof(plumbing) / sizeof(plumbing[0]); i++)
		if (!alloc_is_allocator_frame(plumbing[i]))
			fail_msg("%s is plumbing", plumbing[i]);
	for (i = 0; i < sizeof(callers) / sizeof(callers[0]); i++)
		if (alloc_is_allocator_frame(callers[i]))
			fail_msg("%s is a caller", callers[i]);
}

RUN_TESTS()
