/* SPDX-License-Identifier: MIT */
/*
 * report_own_names.c - files and functions that are not the user's own, because they allocate on
 * behalf of others.
 *
 * Not own are files (allocators, C and C++ libraries) and functions (the standard libraries of C++
 * and Rust, which are in the program's own file; allocation functions of runtimes and well-known
 * programs; what starts threads and main). The tables below have all of them. With --own PREFIX, a frame whose file
 * or function begins with PREFIX is looked for first; a stack without one goes by the tables.
 *
 * C++ names are compared without their result type: the template mine::build, named "std::string
 * mine::build<int>(int)", belongs to mine, not std. Rust's crates core and alloc match only names
 * without a parameter list, because a C++ namespace may have the same name.
 */

#include "report/report_places.h"

#include "base/names.h"

#define BARE_BUF 256

/* Files. The next character must not be a letter, so that "libm" does not match libmysqlclient. */
static const char *const system_modules[] = {
	"libc",
	"libc.musl",
	"ld",
	"ld-linux",
	"ld-musl",
	"libstdc++",
	"libc++",
	"libc++abi",
	"libgcc_s",
	"libm",
	"libdl",
	"libpthread",
	"librt",
	"libjemalloc",
	"libasan",
	"libmimalloc",
	"[vdso]",
	"linux-vdso",
	"libtcmalloc",
	"libtcmalloc_minimal",
	"libtcmalloc_debug",
	"libtcmalloc_minimal_debug",
	"libtcmalloc_and_profiler",
};

/* Files that run other people's code, and those by which they call C. */
static const char *const runtime_modules[] = {
	/* Java */
	"java",
	"libjvm",
	"libjava",
	"libjli",
	"libjimage",
	"libnio",
	"libnet",
	"libzip",
	/* Node */
	"node",
	"nodejs",
	"libnode",
	"libv8",
	/* Python */
	"python",
	"libpython",
	"_ctypes",
	"_cffi_backend",
	"libffi",
	/* others */
	"ruby",
	"libruby",
	"dotnet",
	"libcoreclr",
	"libclrjit",
	"mono-sgen",
	"libmonosgen-2",
	"bun",
	"beam.smp",
};

/* Names of run-time code that is not the user's. */
static const char *const runtime_code[] = {
	"[jit]+0x",
	/* Java: its library, and pieces of the JVM */
	"java.",
	"javax.",
	"jdk.",
	"sun.",
	"Interpreter",
	"StubRoutines",
	"RuntimeStub",
	"I2C/C2I",
	"vtable",
	"itable",
	"call_stub",
	/* V8 */
	"Builtin:",
	"BytecodeHandler:",
	"Stub:",
	"RegExp:",
	"WasmToJS",
};

/* Prefixes of functions, after their result type. */
static const char *const prefixes[] = {
	/* C++ */
	"std::",
	"__gnu_cxx::",
	"__cxxabiv1::",
	"operator new",
	"operator delete",
	"tcmalloc::",
	"je_",
	/* C, where it is linked statically */
	"_IO_",
	"__libc_",
	"__GI_",
	"_dl_",
	"_int_malloc",
	"_int_realloc",
	"__pthread_",
	/* Rust */
	"__rust_",
	"__rdl_",
	"__rg_",
	"__rustc",
	/* samplers inside the program */
	"heaptap_sampler_",
	"dd_allocation_",
	"dd_probe_",
	"libdd_profiling_heap_",
	"<libdd_profiling_heap_",
	/* Python */
	"PyMem_",
	"_PyMem_",
	"PyObject_Malloc",
	"PyObject_Calloc",
	"PyObject_Realloc",
	"_PyObject_Malloc",
	"_PyObject_Calloc",
	"_PyObject_Realloc",
	"_PyObject_New",
	"_PyObject_GC_",
	"_PyObject_Alloc",
	"PyType_GenericAlloc",
	"_PyType_AllocNoTrack",
	"PyDataMem_",
	"npy_alloc_cache",
	"_npy_alloc_cache",
	"default_malloc",
	"default_calloc",
	"default_realloc",
	/* SQLite, FFmpeg, Ruby, PHP, Lua */
	"sqlite3Malloc",
	"sqlite3Realloc",
	"sqlite3_malloc",
	"sqlite3_realloc",
	"sqlite3MemMalloc",
	"sqlite3MemRealloc",
	"sqlite3DbMalloc",
	"sqlite3DbRealloc",
	"sqlite3DbReallocOrFree",
	"sqlite3DbStrDup",
	"sqlite3DbStrNDup",
	"av_malloc",
	"av_calloc",
	"av_realloc",
	"av_fast_malloc",
	"av_fast_realloc",
	"av_strdup",
	"av_strndup",
	"av_memdup",
	"ruby_xmalloc",
	"ruby_xcalloc",
	"ruby_xrealloc",
	"objspace_xmalloc",
	"objspace_xcalloc",
	"objspace_xrealloc",
	"rb_gc_impl_malloc",
	"rb_gc_impl_calloc",
	"rb_gc_impl_realloc",
	"_emalloc",
	"_ecalloc",
	"_erealloc",
	"_estrdup",
	"_estrndup",
	"_safe_emalloc",
	"_safe_malloc",
	"__zend_malloc",
	"__zend_calloc",
	"__zend_realloc",
	"luaM_malloc_",
	"luaM_realloc_",
	"luaM_growaux_",
	/* Node */
	"node::Malloc",
	"node::Realloc",
	"node::Calloc",
	"node::UncheckedMalloc",
	"node::UncheckedRealloc",
	"node::UncheckedCalloc",
	"node::NodeArrayBufferAllocator::",
	"v8::ArrayBuffer::Allocator::",
	"v8::internal::AllocWithRetry",
	"v8::internal::Malloced::",
	"v8::internal::NewArray",
	"v8::internal::AccountingAllocator::",
	"v8::internal::Zone::",
	"v8::base::Malloc",
	"v8::internal::BackingStore::Allocate",
	"uv__malloc",
	"uv__calloc",
	"uv__realloc",
	/* Java */
	"os::malloc",
	"os::realloc",
	"os::strdup",
	"AllocateHeap",
	"ReallocateHeap",
	"CHeapObj",
	"Arena::",
};

/* Exact names of functions: the C library's, and wrappers that everybody calls. */
static const char *const functions[] = {
	"malloc",
	"calloc",
	"realloc",
	"reallocarray",
	"free",
	"posix_memalign",
	"memalign",
	"aligned_alloc",
	"valloc",
	"pvalloc",
	"strdup",
	"__strdup",
	"strndup",
	"__strndup",
	"wcsdup",
	"asprintf",
	"vasprintf",
	"getline",
	"getdelim",
	"fopen",
	"fopen64",
	"fdopen",
	"opendir",
	"qsort",
	"start_thread",
	"clone",
	"clone3",
	"__clone",
	"__clone3",
	"_start",
	/* ... and by the names that they have inside, in a static program */
	"__malloc",
	"__calloc",
	"__realloc",
	"__memalign",
	"__valloc",
	"__pvalloc",
	"__posix_memalign",
	"__getdelim",
	"__getline",
	"__asprintf",
	"__vasprintf",
	"__vasprintf_internal",
	"__vfprintf_internal",
	"__vfwprintf_internal",
	"__printf",
	"__fprintf",
	"__fopen_internal",
	"__new_fopen",
	"__opendir",
	"__opendirat",
	"__alloc_dir",
	"__add_to_environ",
	"__setenv",
	"__scandir",
	"__getcwd",
	"__realpath",
	"__regcomp",
	/* wrappers */
	"xmalloc",
	"xzalloc",
	"xnmalloc",
	"xcharalloc",
	"x2realloc",
	"x2nrealloc",
	"xmemdup",
	"xstrndup",
	"xreallocarray",
	"xcalloc",
	"xrealloc",
	"xstrdup",
	"g_malloc",
	"g_malloc0",
	"g_realloc",
	"g_strdup",
	"g_strndup",
	"g_try_malloc",
	"g_malloc_n",
	"g_malloc0_n",
	"g_slice_alloc",
	"g_slice_alloc0",
	"g_realloc_n",
	"g_try_realloc",
	"g_memdup",
	"g_memdup2",
	"CRYPTO_malloc",
	"CRYPTO_memdup",
	"CRYPTO_strndup",
	"CRYPTO_clear_realloc",
	"CRYPTO_aligned_alloc",
	"CRYPTO_malloc_array",
	"CRYPTO_calloc",
	"apr_palloc",
	"apr_pcalloc",
	"apr_allocator_alloc",
	"apr_pool_create_ex",
	"my_malloc",
	"my_realloc",
	"Perl_safesysmalloc",
	"Perl_safesyscalloc",
	"Perl_safesysrealloc",
	"CRYPTO_zalloc",
	"CRYPTO_realloc",
	"CRYPTO_strdup",
	/* redis, valkey */
	"zmalloc",
	"zcalloc",
	"zrealloc",
	"zstrdup",
	"ztrymalloc",
	"ztrycalloc",
	"ztryrealloc",
	"zmalloc_usable",
	"zcalloc_num",
	"zrealloc_usable",
	"ztrymalloc_usable",
	"ztrymalloc_usable_internal",
	"ztryrealloc_usable",
	"ztryrealloc_usable_internal",
	"ztrycalloc_usable",
	"ztrycalloc_usable_internal",
	"valkey_malloc",
	"valkey_calloc",
	"valkey_realloc",
	/* postgres */
	"palloc",
	"palloc0",
	"palloc_extended",
	"repalloc",
	"pstrdup",
	"pnstrdup",
	"MemoryContextAlloc",
	"MemoryContextAllocZero",
	"MemoryContextAllocZeroAligned",
	"MemoryContextAllocExtended",
	"MemoryContextAllocHuge",
	"MemoryContextStrdup",
	"AllocSetAlloc",
	"AllocSetAllocLarge",
	"AllocSetAllocFromNewBlock",
	"AllocSetRealloc",
	"AllocSetContextCreateInternal",
	"GenerationAlloc",
	"GenerationAllocLarge",
	"GenerationAllocFromNewBlock",
	"SlabAlloc",
	"pg_malloc",
	"pg_malloc0",
	"pg_strdup",
	/* nginx */
	"ngx_alloc",
	"ngx_calloc",
	"ngx_palloc",
	"ngx_pnalloc",
	"ngx_pcalloc",
	"ngx_palloc_block",
	"ngx_palloc_small",
	"ngx_palloc_large",
	"ngx_pmemalign",
	"ngx_memalign",
	"ngx_create_pool",
};

/* Rust's own crates. */
static const char *const crates[] = { "alloc::", "core::", "std::", "hashbrown::" };

/*
 * What a container does when it allocates: its class and the beginning of its function. The name
 * has no result type or template arguments: "std::vector::_M_realloc_insert". "" = any function.
 */
static const struct {
	const char *of, *function, *hint;
} hints[] = {
	{ "vector::", "_M_realloc", "vector grows" },
	{ "vector::", "_M_default_append", "vector grows" },
	{ "vector::", "_M_fill_insert", "vector grows" },
	{ "vector::", "_M_range_insert", "vector grows" },
	{ "vector::", "_M_fill_append", "vector grows" },
	{ "vector::", "_M_assign_aux", "vector grows" },
	{ "vector::", "__push_back_slow_path", "vector grows" },
	{ "vector::", "__emplace_back_slow_path", "vector grows" },
	{ "vector::", "__append", "vector grows" },
	{ "vector::", "reserve", "vector grows" },
	{ "vector::", "_M_allocate_and_copy", "vector grows" },
	{ "vector::", "", "vector" },
	{ "basic_string::", "_M_construct", "string" },
	{ "basic_string::", "_M_assign", "string grows" },
	{ "basic_string::", "_M_append", "string grows" },
	{ "basic_string::", "_M_mutate", "string grows" },
	{ "basic_string::", "_M_replace", "string grows" },
	{ "basic_string::", "_M_create", "string" },
	{ "basic_string::", "reserve", "string grows" },
	{ "basic_string::", "__grow_by", "string grows" },
	{ "basic_string::", "", "string" },
	{ "std::string::", "", "string" },
	{ "_Hashtable::", "_M_rehash", "unordered map grows" },
	{ "_Hashtable::", "rehash", "unordered map grows" },
	{ "_Hashtable::", "", "unordered map" },
	{ "_Hashtable_alloc::", "_M_allocate_buckets", "unordered map grows" },
	{ "_Hashtable_alloc::", "", "unordered map" },
	{ "__hash_table::", "", "unordered map" },
	{ "_Rb_tree::", "", "map" },
	{ "__tree::", "", "map" },
	{ "deque::", "", "deque grows" },
	{ "_Deque_base::", "", "deque grows" },
	{ "raw_vec::", "", "Vec grows" },
	{ "vec::Vec::", "with_capacity", "Vec" },
	{ "vec::Vec::", "", "Vec grows" },
	{ "string::String::", "", "String grows" },
	{ "hashbrown::", "", "HashMap grows" },
	{ "btree::", "", "BTreeMap grows" },
};

static bool is_module_of(const char *module, const char *const *list, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		char next;

		if (!begins(module, list[i]))
			continue;
		next = module[strlen(list[i])];
		if (!((next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z') || next == '+' ||
		      next == '_'))
			return true;
	}
	return false;
}

bool report_is_system_module(const char *module)
{
	return is_module_of(module, system_modules, ARRAY_CNT(system_modules));
}

bool report_is_runtime_module(const char *module)
{
	return is_module_of(module, runtime_modules, ARRAY_CNT(runtime_modules));
}

bool report_is_runtime_code(const char *name, const char *file)
{
	return begins(file, "node:") || begins(file, "<frozen ") ||
	       begins_with_one_of(name, runtime_code, ARRAY_CNT(runtime_code)) ||
	       begins_with_one_of(report_skip_result(name), runtime_code, ARRAY_CNT(runtime_code));
}

/* Node's and .NET's marks: "LazyCompile:*f", "f()[OptimizedTier1]". */
void report_strip_tier(char *name)
{
	static const char *const kinds[] = { "LazyCompile:", "Function:", "JS:" };
	static const char *const tiers[] = {
		"[MinOptJitted]",   "[Optimized]",	   "[QuickJitted]",
		"[OptimizedTier1]", "[OptimizedTier1OSR]", "[InstrumentedTier]",
		"[PreJIT]",	    "[ReadyToRun]",	   "[InstrumentedTierOptimized]",
	};
	char *end = strrchr(name, '[');

	for (size_t i = 0; i < ARRAY_CNT(kinds); i++) {
		const char *rest = name + strlen(kinds[i]);

		if (!begins(name, kinds[i]))
			continue;
		rest += *rest && strchr("~^+*", *rest);
		memmove(name, rest, strlen(rest) + 1);
		return;
	}
	for (size_t i = 0; end && i < ARRAY_CNT(tiers); i++)
		if (!strcmp(end, tiers[i]))
			*end = '\0';
}

/* Does the text before `end` end in the word operator? Then what follows belongs to the name. */
static bool ends_in_operator(const char *name, const char *end)
{
	return end - name >= 8 && !strncmp(end - 8, "operator", 8);
}

const char *report_skip_result(const char *name)
{
	const char *begin = name;
	int depth = 0;

	for (const char *s = name; *s; s++) {
		if (begins(s, "(anonymous namespace)")) {
			s += strlen("(anonymous namespace)") - 1;
		} else if (!depth && ends_in_operator(begin, s)) {
			/* operator(), operator<, operator new, operator bool: the rest is the
			 * name */
			break;
		} else if (*s == '<' || *s == '[' || *s == '{') {
			depth++;
		} else if (*s == '>' || *s == ']' || *s == '}') {
			depth -= depth > 0 && !(*s == '>' && s > name && s[-1] == '-');
		} else if (!depth && *s == '(') {
			break;
		} else if (!depth && *s == ' ' && s[1]) {
			begin = s + 1;
		}
	}
	return begin;
}

/* "std::vector::_M_realloc_insert" of "void std::vector<int>::_M_realloc_insert<int>(int&&)";
 * "alloc::vec::Vec::extend" of "<alloc::vec::Vec<T> as core::iter::Extend<T>>::extend". */
static const char *bare_name(const char *name, char *buf)
{
	const char *from = report_skip_result(name), *as;
	bool is_impl = *from == '<';
	size_t used = 0;
	int depth = 0;

	if (is_impl)
		from++;
	as = is_impl ? strstr(from, " as ") : NULL;
	for (const char *s = from; *s && used + 1 < BARE_BUF; s++) {
		if (s == as) { /* skip to the end of the trait: only the type counts */
			for (int open = 1; s[1] && open; s++)
				open += (s[1] == '<') - (s[1] == '>' && s[0] != '-');
			as = NULL;
		} else if (*s == '<') {
			depth++;
		} else if (*s == '>' && depth) {
			depth -= s[-1] != '-';
		} else if (!depth && *s == '(' && !begins(s, "(anonymous namespace)")) {
			break;
		} else if (!depth && *s != '>') {
			buf[used++] = *s;
		}
	}
	buf[used] = '\0';
	return buf;
}

/* C++ functions have parameters, Rust's do not. */
static bool has_parameters(const char *name)
{
	int depth = 0;

	for (const char *s = name; *s; s++) {
		if (begins(s, "(anonymous namespace)"))
			s += strlen("(anonymous namespace)") - 1;
		else if (!depth && *s == '(')
			return true;
		else if (*s == '<')
			depth++;
		else if (*s == '>' && s > name && s[-1] != '-' && depth)
			depth--;
	}
	return false;
}

/*
 * Rust: an implementation belongs to its type, "<mine::X as alloc::borrow::ToOwned>". If the type
 * is a built-in type or a type parameter, it belongs to the trait, "<T as
 * alloc::string::ToString>".
 */
static bool is_rust_std(const char *name)
{
	const char *type = name, *as, *path;

	if (has_parameters(name))
		return false;
	if (begins_with_one_of(name, crates, ARRAY_CNT(crates)))
		return true;
	if (*type != '<')
		return false;
	type++;
	type += strspn(type, "&*[(");
	for (size_t i = 0; i < 3; i++)
		type += begins(type, "mut ") || begins(type, "dyn ") ? 4 :
			begins(type, "const ")			     ? 6 :
								       0;
	as = strstr(type, " as ");
	path = strstr(type, "::");
	if (path && (!as || path < as))
		return begins_with_one_of(type, crates, ARRAY_CNT(crates));
	return as && begins_with_one_of(as + 4, crates, ARRAY_CNT(crates));
}

bool report_is_system_source(const char *file)
{
	/* as rustc names its library, and as the component rust-src has it */
	return (begins(file, "/rustc/") && strstr(file, "/library/")) ||
	       strstr(file, "/lib/rustlib/src/rust/library/");
}

bool report_is_system_function(const char *name)
{
	const char *bare = report_skip_result(name);
	size_t len = strcspn(bare, "(.@[");

	if (begins_with_one_of(bare, prefixes, ARRAY_CNT(prefixes)) || is_rust_std(name))
		return true;
	for (size_t i = 0; i < ARRAY_CNT(functions); i++)
		if (strlen(functions[i]) == len && !strncmp(bare, functions[i], len))
			return true;
	return false;
}

const char *report_growth_hint(const char *name)
{
	char bare[BARE_BUF];

	bare_name(name, bare);
	for (size_t i = 0; i < ARRAY_CNT(hints); i++) {
		const char *of = strstr(bare, hints[i].of);

		if (of && begins(of + strlen(hints[i].of), hints[i].function))
			return hints[i].hint;
	}
	return NULL;
}
