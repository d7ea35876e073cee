/* SPDX-License-Identifier: MIT */
/*
 * alloc_frames.c - is this the name of a function that only passes allocations on?
 *
 * Reports strip such functions from the leaf end of a stack, so that the leaf is the code that wanted the memory. Names
 * come demangled or not, from C, C++ and Rust (both manglings). Only plumbing is listed: std::vector::reserve,
 * Box::new, hashbrown's tables and the wrappers of applications (xmalloc, g_malloc) stay, because they tell something
 * about the caller.
 *
 * The entry points themselves come from the table in alloc_table.c.
 */
#include "alloc/allocators.h"

#include "base/names.h"

#define NAME_BYTES_CAP 128

/* The inner layers of glibc and Rust, by their whole name. */
static const char *const whole_names[] = {
	"_int_malloc",	       "_int_realloc",	     "_int_memalign",	  "_mid_memalign",
	"sysmalloc",	       "__posix_memalign",   "malloc_hook_ini",	  "ptmalloc_init",
	"tcache_init",	       "__libc_malloc_impl", "default_malloc",	  "__rust_alloc",
	"__rust_alloc_zeroed", "__rust_realloc",     "__rdl_alloc",	  "__rdl_alloc_zeroed",
	"__rdl_realloc",       "__rg_alloc",	     "__rg_alloc_zeroed", "__rg_realloc",
	"__rust_dealloc",      "__rdl_dealloc",	     "__rg_dealloc",	  "exchange_malloc",
};

/* Beginnings of demangled Rust paths, and of their legacy manglings. */
static const char *const rust_paths[] = {
	"alloc::alloc::",	   "alloc::raw_vec::",
	"<alloc::raw_vec::",	   "<alloc::alloc::Global as ",
	"std::alloc::System",	   "std::sys::alloc::",
	"std::sys::unix::alloc::", "std::sys::pal::unix::alloc::",
	"_ZN5alloc5alloc",	   "_ZN5alloc7raw_vec",
	"_ZN3std5alloc",
};

/* Parts of names of trait implementations, in any allocator crate; demangled, then legacy. */
static const char *const rust_traits[] = {
	" as core::alloc::global::GlobalAlloc>::",
	" as core::alloc::Allocator>::",
	"$u20$as$u20$core..alloc..global..GlobalAlloc$GT$",
	"$u20$as$u20$core..alloc..Allocator$GT$",
	"_$LT$alloc..raw_vec..",
};

/* Class templates whose allocate() is plumbing: demangled, then the mangled beginning. */
static const char *const cxx_classes[] = {
	"std::__new_allocator<",      "__gnu_cxx::new_allocator<",
	"std::allocator_traits<",     "std::allocator<",
	"std::__1::allocator<",	      "std::__1::allocator_traits<",
	"__gnu_cxx::__alloc_traits<",
};
static const char *const cxx_mangled[] = {
	"_ZNSt15__new_allocatorI",	  "_ZN9__gnu_cxx13new_allocatorI",
	"_ZNSt16allocator_traitsI",	  "_ZNSaI",
	"_ZNSt3__19allocatorI",		  "_ZNSt3__116allocator_traitsI",
	"_ZN9__gnu_cxx14__alloc_traitsI",
};
/* libc++'s functions between allocate() and operator new: they are templates, so a demangled name
 * begins with the result type. */
static const char *const cxx_functions[] = {
	"void* std::__1::__libcpp_allocate", "void* std::__1::__libcpp_operator_new",
	"std::__1::__libcpp_allocate",	     "std::__1::__libcpp_operator_new",
	"_ZNSt3__117__libcpp_allocate",	     "_ZNSt3__121__libcpp_operator_new",
};

/* Functions of heaptap's own sampler (tools/sampler) and of libdatadog's. */
static const char *const sampler_functions[] = { "heaptap_sampler_", "dd_allocation_" };

/* What follows the '>' that closes the template, or NULL. p is behind the '<'. "operator<" does not occur here: the
 * arguments of an allocator are types. */
static const char *behind_template(const char *p)
{
	int depth = 1;

	for (; *p && depth; p++)
		depth += (*p == '<') - (*p == '>' && p[-1] != '-');
	return depth ? NULL : p;
}

static bool is_cxx_allocate(const char *name)
{
	const char *rest;
	size_t i;

	for (i = 0; i < ARRAY_CNT(cxx_classes); i++) {
		if (!begins(name, cxx_classes[i]))
			continue;
		rest = behind_template(name + strlen(cxx_classes[i]));
		return rest && (begins(rest, "::allocate(") || begins(rest, "::allocate[") ||
				!strcmp(rest, "::allocate"));
	}
	return begins_with_one_of(name, cxx_mangled, ARRAY_CNT(cxx_mangled)) &&
	       strstr(name, "E8allocateE");
}

/* "operator new(unsigned long)", "operator delete[](void*)"; not "X::operator new", which belongs to X. */
static bool is_operator_new(const char *name)
{
	if (begins(name, "operator new"))
		name += strlen("operator new");
	else if (begins(name, "operator delete"))
		name += strlen("operator delete");
	else
		return false;
	if (begins(name, "[]"))
		name += 2;
	return !*name || *name == '(';
}

/* v0 mangling: the first crate of the path is alloc, and the module alloc or raw_vec. */
static bool is_rust_v0_plumbing(const char *name)
{
	const char *p;

	if (!begins(name, "_R"))
		return false;
	p = strchr(name, 'C');
	if (!p)
		return false;
	p++;
	if (*p == 's') {
		p = strchr(p, '_');
		if (!p)
			return false;
		p++;
	}
	return begins(p, "5alloc7raw_vec") || begins(p, "5alloc5alloc");
}

static bool is_rust(const char *name)
{
	size_t i;

	if (begins_with_one_of(name, rust_paths, ARRAY_CNT(rust_paths)) ||
	    is_rust_v0_plumbing(name))
		return true;
	if (name[0] != '<' && !begins(name, "_ZN"))
		return false;
	for (i = 0; i < ARRAY_CNT(rust_traits); i++)
		if (strstr(name, rust_traits[i]))
			return true;
	return false;
}

/* The name without the parts that compilers and glibc add: "__GI_" before, ".cold" or "@plt" behind. */
static void bare_name(const char *name, char *buf)
{
	size_t len;

	if (begins(name, "__GI_"))
		name += strlen("__GI_");
	/* rustc 1.87 and later put the allocator's symbols into a crate __rustc[hash]. */
	if (begins(name, "__rustc") && strstr(name, "::"))
		name = strstr(name, "::") + 2;
	len = strcspn(name, ".@ ");
	if (len >= NAME_BYTES_CAP)
		len = NAME_BYTES_CAP - 1;
	memcpy(buf, name, len);
	buf[len] = '\0';
}

bool alloc_is_allocator_frame(const char *name)
{
	struct alloc_lookup lk;
	char bare[NAME_BYTES_CAP];
	size_t prefix;

	if (!name || !*name)
		return false;
	if (is_operator_new(name) || is_cxx_allocate(name) || is_rust(name) ||
	    begins_with_one_of(name, cxx_functions, ARRAY_CNT(cxx_functions)) ||
	    begins_with_one_of(name, sampler_functions, ARRAY_CNT(sampler_functions)))
		return true;
	bare_name(name, bare);
	if (equals_one_of(bare, whole_names, ARRAY_CNT(whole_names)))
		return true;
	alloc_lookup_init(&lk);
	return alloc_lookup_find(&lk, bare, &prefix) != NULL;
}
