/* SPDX-License-Identifier: MIT */
/*
 * test_allocators.c - which entry points are found in which file, and what is said of them.
 *
 * Real libraries come in many versions, so for them the rules are asserted, not the addresses:
 * what must be found, that what was chosen obeys the placement rule (checked again here, on the
 * bytes), that ranges lie in the code. Programs are built by the test where a compiler is there.
 */
#include "unit.h"

#include <elf.h>

#include "../lib/find_symbol.h"
#include "elf/elf_file.h"
#include "elf/elf_symbols.h"
#include "heaptap/abi.h"
#include "alloc/allocators.h"

#define LIB "/usr/lib/x86_64-linux-gnu/"

struct scanned {
	struct elf_file *ef;
	struct elf_symbols *syms;
	struct alloc_file *af;
	int err;
};

static bool scan_with(const char *path, const struct alloc_options *opts, struct scanned *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (elf_file_open(path, &ret->ef))
		return false;
	assert_int_equal(elf_symbols_load(ret->ef, NULL, &ret->syms), 0);
	ret->err = alloc_file_scan(ret->ef, ret->syms, opts, &ret->af);
	return true;
}

static bool scan(const char *path, struct scanned *ret)
{
	return scan_with(path, &(struct alloc_options){ 0 }, ret);
}

static void drop(struct scanned *s)
{
	alloc_file_free(s->af);
	elf_symbols_free(s->syms);
	elf_file_close(s->ef);
}

static const struct alloc_site *site_of(const struct scanned *s, const char *symbol)
{
	const struct alloc_site *site;
	struct elf_symbol sym;

	if (find_symbol(s->syms, symbol, &sym))
		return NULL;
	vec_each(&s->af->sites, site)
		if (site->fn_vaddr == sym.vaddr)
			return site;
	return NULL;
}

static bool is_inner(const struct scanned *s, uint64_t vaddr)
{
	const struct alloc_range *r;

	vec_each(&s->af->inner, r)
		if (vaddr >= r->start_vaddr && vaddr < r->end_vaddr)
			return true;
	return false;
}

/* The kernel's list, written down once more and from the bytes. */
static bool looks_emulated(const uint8_t *p)
{
	if (p[0] == 0xf2)
		p++;
	return (p[0] >= 0x50 && p[0] <= 0x57) || (p[0] == 0x41 && p[1] >= 0x50 && p[1] <= 0x57) ||
	       p[0] == 0x90 || p[0] == 0xe8 || p[0] == 0xe9 || p[0] == 0xeb ||
	       (p[0] >= 0x70 && p[0] <= 0x7f) || (p[0] == 0x0f && p[1] >= 0x80 && p[1] <= 0x8f);
}

static uint32_t want_arg(const struct alloc_site *s, uint8_t arg)
{
	return arg == HT_ARG_NONE ? HT_ARG_NONE : s->placement.arg_at[arg];
}

/* What holds for every site of every file. */
static void check_rules(const struct scanned *s, const char *path)
{
	const struct alloc_site *site, *other;
	const struct alloc_range *r;
	uint64_t off;

	vec_each(&s->af->sites, site) {
		const struct alloc_row *row = site->row;
		uint64_t at = site->placement.vaddr;
		const uint8_t *code = elf_file_read(s->ef, at, 6);

		if (!code)
			fail_msg("%s %s: no code", path, site->symbol);
		assert_int_equal(elf_file_vaddr_to_off(s->ef, at, &off), 0);
		assert_int_equal(off, site->probe_off);
		assert_true(at >= site->fn_vaddr && at - site->fn_vaddr < 64);
		if (site->fn_bytes)
			assert_true(at < site->fn_vaddr + site->fn_bytes);
		if (site->placement.is_emulated != looks_emulated(code))
			if (site->placement.is_emulated || at != site->fn_vaddr)
				fail_msg("%s %s: %s", path, site->symbol, site->placement.insn);
		assert_int_equal(!site->placement.is_emulated, site->placement.why[0] != 0);
		assert_int_equal(site->needs_return, row->op != HT_OP_FREE);
		assert_int_equal(HT_COOKIE_OP(site->cookie), row->op);
		assert_int_equal(HT_COOKIE_RET(site->cookie), row->ret);
		assert_int_equal(HT_COOKIE_SIZE_ARG(site->cookie), want_arg(site, row->size_arg));
		assert_int_equal(HT_COOKIE_COUNT_ARG(site->cookie), want_arg(site, row->count_arg));
		assert_int_equal(HT_COOKIE_PTR_ARG(site->cookie), want_arg(site, row->ptr_arg));
		assert_int_equal(!!(HT_COOKIE_FLAGS(site->cookie) & HT_SITE_STEPPED),
				 !site->placement.is_emulated);
		if (row->op == HT_OP_FREE)
			assert_int_equal(HT_COOKIE_FLAGS(site->cookie) & ~HT_SITE_STEPPED, 0);
		for (other = site + 1; other < s->af->sites.data + s->af->sites.cnt; other++)
			assert_true(other->fn_vaddr != site->fn_vaddr);
	}
	assert_true(s->af->inner.cnt <= HT_INNER_CAP);
	vec_each(&s->af->inner, r) {
		assert_true(r->start_vaddr < r->end_vaddr);
		if (r > s->af->inner.data)
			assert_true(r[-1].end_vaddr < r->start_vaddr);
	}
}

#define ZERO HT_SITE_ZERO_FREES
#define NULLS HT_SITE_NULL_DELEGATES
#define TAIL HT_SITE_TAIL_CALLS
#define THROW HT_SITE_THROWS
#define ANY 0xff /* flags are not asserted */

/* Libraries: {file, family, an entry point, must it be a site of its own, emulated, flags}. */
static const struct {
	const char *path, *family, *symbol;
	bool is_site, is_emulated;
	uint8_t flags;
} libs[] = {
	{ "/lib/x86_64-linux-gnu/libc.so.6", "glibc", "malloc", true, true, 0 },
	{ "/lib/x86_64-linux-gnu/libc.so.6", "glibc", "free", true, true, 0 },
	{ "/lib/x86_64-linux-gnu/libc.so.6", "glibc", "calloc", true, true, 0 },
	{ "/lib/x86_64-linux-gnu/libc.so.6", "glibc", "realloc", true, true, ZERO | NULLS },
	{ "/lib/x86_64-linux-gnu/libc.so.6", "glibc", "reallocarray", false, false, 0 },
	{ "/lib/x86_64-linux-gnu/libc.so.6", "glibc", "memalign", true, true, TAIL },
	{ "/lib/x86_64-linux-gnu/libc.so.6", "glibc", "valloc", true, true, TAIL },
	{ "/lib/x86_64-linux-gnu/libc.so.6", "glibc", "posix_memalign", true, true, 0 },
	{ LIB "libjemalloc.so.2", "jemalloc", "malloc", true, true, 0 },
	{ LIB "libjemalloc.so.2", "jemalloc", "free", true, true, 0 },
	{ LIB "libjemalloc.so.2", "jemalloc", "realloc", true, true, ZERO },
	{ LIB "libjemalloc.so.2", "jemalloc", "mallocx", true, true, 0 },
	{ LIB "libjemalloc.so.2", "jemalloc", "xallocx", true, true, 0 },
	{ LIB "libjemalloc.so.2", "jemalloc", "_Znwm", true, true, THROW },
	{ LIB "libjemalloc.so.2", "jemalloc", "_Znam", false, false, 0 },
	{ LIB "libjemalloc.so.2", "jemalloc", "_ZdlPv", false, false, 0 },
	{ LIB "libjemalloc.so.2", "jemalloc", "_ZnwmRKSt9nothrow_t", true, true, 0 },
	{ LIB "libtcmalloc_minimal.so.4", "tcmalloc", "malloc", true, true, 0 },
	{ LIB "libtcmalloc_minimal.so.4", "tcmalloc", "free", true, true, 0 },
	{ LIB "libtcmalloc_minimal.so.4", "tcmalloc", "realloc", true, true, ZERO },
	{ LIB "libtcmalloc_minimal.so.4", "tcmalloc", "_Znwm", true, true, THROW },
	{ LIB "libtcmalloc_minimal.so.4", "tcmalloc", "valloc", false, false, 0 },
	{ LIB "libtcmalloc_minimal.so.4", "tcmalloc", "posix_memalign", true, true, 0 },
	{ LIB "libmimalloc.so.2", "mimalloc", "malloc", true, true, 0 },
	{ LIB "libmimalloc.so.2", "mimalloc", "free", true, true, 0 },
	{ LIB "libmimalloc.so.2", "mimalloc", "realloc", false, false, 0 },
	{ LIB "libmimalloc.so.2", "mimalloc", "mi_heap_realloc", true, true, 0 },
	{ LIB "libmimalloc.so.2", "mimalloc", "_Znwm", true, true, THROW },
	{ LIB "libmimalloc.so.2", "mimalloc", "mi_free_size", false, false, 0 },
	{ LIB "libasan.so.8", "sanitizer", "malloc", true, true, ANY },
	{ LIB "libasan.so.8", "sanitizer", "free", true, true, ANY },
	{ "/lib/ld-musl-x86_64.so.1", "musl", "malloc", true, true, 0 },
	{ "/lib/ld-musl-x86_64.so.1", "musl", "free", true, true, 0 },
	{ "/lib/ld-musl-x86_64.so.1", "musl", "realloc", true, true, 0 },
	{ "/lib/ld-musl-x86_64.so.1", "musl", "memalign", false, false, 0 },
};

TEST(test_libraries)
{
	size_t found = 0;

	each_case(c, libs) {
		const struct alloc_site *site;
		struct scanned s;

		if (!scan(c->path, &s))
			continue;
		found++;
		if (s.err)
			fail_msg("%s: %d", c->path, s.err);
		assert_string_equal(s.af->family, c->family);
		check_rules(&s, c->path);
		site = site_of(&s, c->symbol);
		if (!site != !c->is_site)
			fail_msg("%s %s: %s", c->path, c->symbol, site ? "a site" : "no site");
		if (site && (site->placement.is_emulated != c->is_emulated ||
			     (c->flags != ANY && HT_COOKIE_FLAGS(site->cookie) != c->flags)))
			fail_msg("%s %s: %s, flags %x", c->path, c->symbol, site->placement.insn,
				 HT_COOKIE_FLAGS(site->cookie));
		drop(&s);
	}
	if (!found)
		skip();
}

/* Files that hold no allocator, although some define operator new or a private malloc. */
TEST(test_not_allocators)
{
	static const char *const paths[] = {
		LIB "libstdc++.so.6", "/lib64/ld-linux-x86-64.so.2",
		LIB "libm.so.6",      LIB "libcrypto.so.3",
		"/bin/true",	      LIB "libLLVM-14.so.1",
	};

	each_case(c, paths) {
		struct scanned s;

		if (!scan(*c, &s))
			continue;
		if (s.err != -ENOENT)
			fail_msg("%s: %d", *c, s.err);
		drop(&s);
	}
}

/* libc's functions are callers as any. */
TEST(test_libc_inner)
{
	static const char *const outside[] = { "strdup",  "fopen",  "getline", "asprintf",
					       "opendir", "setenv", "qsort",   "scandir" };
	static const char *const paths[] = { "/lib/x86_64-linux-gnu/libc.so.6",
					     "/lib/ld-musl-x86_64.so.1" };
	size_t p, found = 0;

	for (p = 0; p < 2; p++) {
		struct elf_symbol sym;
		struct scanned s;

		if (!scan(paths[p], &s))
			continue;
		found++;
		assert_int_equal(s.err, 0);
		each_case(c, outside)
			if (!find_symbol(s.syms, *c, &sym) && is_inner(&s, sym.vaddr))
				fail_msg("%s: %s is inner", paths[p], *c);
		drop(&s);
	}
	if (!found)
		skip();
}

/* In an allocator's library everything is inner but exported functions that call it. */
TEST(test_library_inner)
{
	struct elf_symbol sym;
	struct scanned s;

	if (!scan(LIB "libmimalloc.so.2", &s))
		skip();
	assert_int_equal(s.err, 0);
	assert_int_equal(find_symbol(s.syms, "mi_malloc", &sym), 0);
	assert_true(is_inner(&s, sym.vaddr));
	assert_int_equal(find_symbol(s.syms, "mi_process_init", &sym), 0);
	assert_true(is_inner(&s, sym.vaddr));
	assert_int_equal(find_symbol(s.syms, "mi_heap_realpath", &sym), 0);
	assert_false(is_inner(&s, sym.vaddr));
	drop(&s);
}

TEST(test_naive)
{
	const struct alloc_site *site;
	struct scanned s;

	if (!scan_with("/lib/x86_64-linux-gnu/libc.so.6", &(struct alloc_options){ .naive = true },
		       &s))
		skip();
	assert_int_equal(s.err, 0);
	vec_each(&s.af->sites, site)
		assert_int_equal(site->placement.vaddr, site->fn_vaddr);
	drop(&s);
}

static void remove_program(void *path)
{
	unlink(path);
	free(path);
}

/* Compile source (a C or C++ text) into a temporary program. False: that compiler is not there. */
static bool build(const char *compiler, const char *ext, const char *source, const char *tail,
		  char *path)
{
	char src[64], cmd[512];
	FILE *f;
	int fd;

	memcpy(path, "/tmp/heaptap-prog-XXXXXX", sizeof("/tmp/heaptap-prog-XXXXXX"));
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	snprintf(src, sizeof(src), "%s.%s", path, ext);
	f = fopen(src, "w");
	assert_non_null(f);
	fputs(source, f);
	fclose(f);
	snprintf(cmd, sizeof(cmd), "%s -O2 -w -o %s %s %s >/dev/null 2>&1", compiler, path, src,
		 tail);
	unit_keep(strdup(path), remove_program);
	fd = system(cmd);
	unlink(src);
	return fd == 0;
}

/* keep: so that the compiler does not remove the pairs. */
static const char cxx_source[] =
	"#include <malloc.h>\n#include <stdlib.h>\n#include <string.h>\n"
	"struct alignas(64) wide { char c[64]; };\n"
	"void *volatile keep;\n"
	"int main(int n, char **v) { int *p = new int[n]; keep = p; delete[] p; int *o = new int(n); keep = o;\n"
	"delete o; auto *w = new wide; keep = w; delete w; char *s = strdup(v[0]); keep = realloc(s, n);\n"
	"keep = calloc(n, n); keep = malloc(n); free(keep); keep = memalign(64, n);\n"
	"keep = reallocarray(0, n, n); return 0; }\n";
static const char c_source[] =
	"#include <stdlib.h>\n#include <string.h>\n"
	"void *volatile keep;\n"
	"int main(int n, char **v) { char *s = strdup(v[0]); keep = realloc(s, n); free(keep);\n"
	"void *q; posix_memalign(&q, 64, n); keep = q; keep = calloc(n, n); keep = aligned_alloc(64, n);\n"
	"keep = malloc(n); return 0; }\n";

/* A static program: malloc is probed, operator new on top of it is not, strdup is a caller. */
static void check_static(const char *path, const char *family)
{
	struct elf_symbol sym;
	struct scanned s;

	assert_true(scan(path, &s));
	assert_int_equal(s.err, 0);
	assert_string_equal(s.af->family, family);
	check_rules(&s, path);
	assert_non_null(site_of(&s, "malloc"));
	assert_non_null(site_of(&s, "calloc"));
	assert_null(site_of(&s, "_Znwm"));
	assert_null(site_of(&s, "_Znam"));
	assert_null(site_of(&s, "_ZdlPv"));
	if (!find_symbol(s.syms, "_Znwm", &sym))
		assert_false(is_inner(&s, sym.vaddr));
	assert_int_equal(find_symbol(s.syms, "strdup", &sym), 0);
	assert_false(is_inner(&s, sym.vaddr));
	drop(&s);
}

TEST(test_static_programs)
{
	static const struct {
		const char *compiler, *ext, *source, *family;
	} cases[] = {
		{ "g++ -static", "cc", cxx_source, "glibc" },
		{ "g++ -static-pie", "cc", cxx_source, "glibc" },
		{ "musl-gcc -static", "c", c_source, "musl" },
	};
	char path[64];
	int built = 0;

	each_case(c, cases) {
		if (!build(c->compiler, c->ext, c->source, "", path))
			continue;
		check_static(path, c->family);
		built++;
	}
	if (!built)
		skip();
}

/* jemalloc linked into a C++ program: its own operator new allocates by itself and is probed. */
TEST(test_static_jemalloc)
{
	const struct alloc_site *site;
	struct scanned s;
	char path[64];

	if (!build("g++", "cc", cxx_source, LIB "libjemalloc.a -lpthread -lm -ldl", path))
		skip();
	assert_true(scan(path, &s));
	assert_int_equal(s.err, 0);
	assert_string_equal(s.af->family, "jemalloc");
	check_rules(&s, path);
	assert_non_null(site_of(&s, "malloc"));
	site = site_of(&s, "_Znwm");
	assert_non_null(site);
	assert_int_equal(HT_COOKIE_FLAGS(site->cookie), THROW);
	assert_null(site_of(&s, "_ZdlPv"));
	drop(&s);
}

/* A program's own malloc on top of libc's; and names that are not an allocator's. */
TEST(test_own_functions)
{
	static const struct {
		const char *source;
		int want;
		const char *outer;
	} cases[] = {
		{ "#include <stddef.h>\nvoid *__libc_malloc(size_t); void __libc_free(void *);\n"
		  "__attribute__((noinline)) void *malloc(size_t n) { return (char *)__libc_malloc(n) + (n == 77); }\n"
		  "__attribute__((noinline)) void *user(size_t n) { return (char *)malloc(n) + 1; }\n"
		  "__attribute__((noinline)) void free(void *p) { __libc_free(p); }\n"
		  "int main(int n, char **v) { void *p = user(n); free((char *)p - 1); return 0; }\n",
		  0, "user" },
		/* frees nothing: no allocator */
		{ "__attribute__((noinline)) void *pvalloc(unsigned long n) { return (void *)n; }\n"
		  "int main(int n, char **v) { return pvalloc(n) == 0; }\n",
		  -ENOENT, NULL },
		{ "static __attribute__((noinline)) void tc_free(int n) { __asm__ volatile(\"\" :: \"r\"(n)); }\n"
		  "int main(int n, char **v) { tc_free(n); return 0; }\n",
		  -ENOENT, NULL },
	};

	each_case(one, cases) {
		struct elf_symbol sym;
		struct scanned s;
		char path[64];

		if (!build("cc -fno-builtin", "c", one->source, "", path))
			skip();
		assert_true(scan(path, &s));
		if (s.err != one->want)
			fail_msg("case %zu: %d", (size_t)(one - cases), s.err);
		if (!s.err) {
			check_rules(&s, path);
			assert_string_equal(s.af->family, "malloc");
			assert_int_equal(find_symbol(s.syms, one->outer, &sym), 0);
			assert_false(is_inner(&s, sym.vaddr));
		}
		drop(&s);
	}
}

/* An allocator in a larger file: of its code only the function is inner that realloc jumps to. The same with a name that no
 * family has: the functions that lie between may be anybody's, so realloc is followed. */
static const char embedded_source[] =
	"#include <stddef.h>\n#define N __attribute__((noinline))\n"
	"int mi_version(void) { return 2; }\n"
	"N void *PRE(malloc)(size_t n) { static char b[99999], *p = b; p += n; return p; }\n"
	"N void *keep_between(size_t n) { return (char *)PRE(malloc)(n) + 1; }\n"
	"N void *PRE(calloc)(size_t k, size_t n) { char *p = PRE(malloc)(k * n); *p = 0; return p; }\n"
	"static N void *grow(void *p, size_t n) { char *q = PRE(malloc)(n); *q = *(char *)p; return q; }\n"
	"N void *PRE(realloc)(void *p, size_t n) { return grow(p, n); }\n"
	"N void PRE(free)(void *p) { *(volatile char *)p = 0; }\n"
	"N void *keep_behind(size_t n) { return (char *)PRE(malloc)(n) + 1; }\n"
	"int main(int n, char **v) { PRE(free)(PRE(realloc)(PRE(calloc)(n, n), n)); keep_behind(n);\n"
	"return keep_between(n) == 0; }\n";
static const struct {
	const char *compiler, *tail;
	bool is_grow_inner;
	uint8_t realloc_flags;
} embedded[] = {
	{ "cc -fno-builtin -fno-toplevel-reorder -D'PRE(x)=mi_##x'", "", true, 0 },
	{ "cc -fno-builtin -fno-toplevel-reorder -D'PRE(x)=mi_##x' -fPIC -shared",
	  "-Wl,-soname,libembedded.so", true, 0 },
	{ "cc -fno-builtin -fno-toplevel-reorder -D'PRE(x)=x' -Dmi_version=version", "", false,
	  ZERO | TAIL },
};

TEST(test_embedded)
{
	static const char *const callers[] = { "keep_between", "keep_behind", "main" };

	each_case(one, embedded) {
		const struct alloc_site *site;
		struct elf_symbol sym;
		struct scanned s;
		char path[64];

		if (!build(one->compiler, "c", embedded_source, one->tail, path))
			skip();
		assert_true(scan(path, &s));
		assert_int_equal(s.err, 0);
		check_rules(&s, path);
		each_case(c, callers) {
			assert_int_equal(find_symbol(s.syms, *c, &sym), 0);
			if (is_inner(&s, sym.vaddr))
				fail_msg("case %zu: %s is inner", (size_t)(one - embedded), *c);
		}
		assert_int_equal(find_symbol(s.syms, "grow", &sym), 0);
		assert_int_equal(is_inner(&s, sym.vaddr), one->is_grow_inner);
		vec_each(&s.af->sites, site)
			if (strstr(site->symbol, "realloc"))
				assert_int_equal(HT_COOKIE_FLAGS(site->cookie) & ~HT_SITE_STEPPED,
						 one->realloc_flags);
		drop(&s);
	}
}

/* jemalloc in a stripped program, which exports malloc and free: the function that frees sized blocks is found by what it
 * does, and there only. */
TEST(test_plain_jemalloc)
{
	struct alloc_unseen unseen;
	struct elf_symbol sym;
	struct scanned s;
	char path[64], cmd[160], words[ALLOC_UNSEEN_WORDS];
	const struct alloc_site *site;
	size_t found = 0;

	if (!build("cc", "c", c_source, LIB "libjemalloc.a -lstdc++ -lpthread -lm -ldl", path))
		skip();
	assert_true(scan(path, &s));
	assert_int_equal(s.err, 0);
	assert_int_equal(s.af->plain, ALLOC_PLAIN_NOT);
	alloc_unseen_find(s.ef, s.af, &unseen);
	assert_int_equal(unseen.kind, ALLOC_UNSEEN_NONE);
	assert_int_equal(find_symbol(s.syms, "sdallocx", &sym), 0);
	drop(&s);
	snprintf(cmd, sizeof(cmd), "strip %s", path);
	assert_int_equal(system(cmd), 0);
	assert_true(scan(path, &s));
	assert_int_equal(s.err, 0);
	assert_string_equal(s.af->family, "jemalloc");
	assert_int_equal(s.af->plain, ALLOC_PLAIN_FREED);
	check_rules(&s, path);
	vec_each(&s.af->sites, site)
		found += site->fn_vaddr == sym.vaddr && site->row->op == HT_OP_FREE;
	assert_int_equal(found, 1);
	alloc_unseen_find(s.ef, s.af, &unseen);
	assert_int_equal(unseen.kind, ALLOC_UNSEEN_PARTS);
	assert_string_equal(alloc_unseen_words(&unseen, words),
			    "contains jemalloc, of which only malloc and free have names: aligned "
			    "blocks are not seen");
	drop(&s);
}

/* A program that is linked as a whole calls the slow ways of the allocator, whose fast ways are inlined. Its blocks are
 * not seen, and if their frees are not, no entry point is probed. Calls from the allocator's own code are none. */
static const char inlined_source[] =
	"#include <stddef.h>\n#define N __attribute__((noinline))\nstatic char b[99999];\n"
	"N void *je_malloc_default(size_t n) { __asm__ volatile(\"\"); return b + n; }\n"
	"N void je_free_default(void *p) { *(volatile char *)p = 0; }\n"
	"N int je_mallctl(void) { return 0; }\n"
	"N void *je_malloc(size_t n) { return n < 9 ? b : je_malloc_default(n); }\n"
	"N void je_free(void *p) { if (p != b) je_free_default(p); }\n"
	"__asm__(\".text\\n.skip 600000, 0x90\\n\");\n"
	"N void *user(size_t n) { return n < 9 ? b : USE_MALLOC(n); }\n"
	"N void release(void *p) { if (p != b) USE_FREE(p); }\n"
	"int main(int n, char **v) { release(user(n)); return 0; }\n";

TEST(test_inlined)
{
	static const struct {
		const char *uses;
		uint32_t kind;
		size_t site_cnt;
	} cases[] = {
		{ "-DUSE_MALLOC=je_malloc -DUSE_FREE=je_free", ALLOC_UNSEEN_NONE, 2 },
		{ "-DUSE_MALLOC=je_malloc_default -DUSE_FREE=je_free", ALLOC_UNSEEN_INLINED, 2 },
		{ "-DUSE_MALLOC=je_malloc -DUSE_FREE=je_free_default", ALLOC_UNSEEN_INLINED, 0 },
	};

	each_case(one, cases) {
		char path[64], compiler[160], words[ALLOC_UNSEEN_WORDS];
		struct alloc_unseen unseen;
		struct scanned s;

		snprintf(compiler, sizeof(compiler), "cc -fno-toplevel-reorder %s", one->uses);
		if (!build(compiler, "c", inlined_source, "", path))
			skip();
		assert_true(scan(path, &s));
		assert_int_equal(s.err, 0);
		assert_int_equal(s.af->sites.cnt, one->site_cnt);
		alloc_unseen_find(s.ef, s.af, &unseen);
		assert_int_equal(unseen.kind, one->kind);
		if (unseen.kind)
			assert_string_equal(
				alloc_unseen_words(&unseen, words),
				"contains jemalloc, inlined into its callers: their allocations are not seen");
		drop(&s);
	}
}

/* An allocator without any name is known by its messages. */
TEST(test_nameless)
{
	static const char source[] =
		"#include <stdio.h>\nint main(int n, char **v) { puts(n > 1 ? \"mimal\" \"loc: error: \" : \"mimal\" \"loc: warning: \");\n"
		"return 0; }\n";
	struct alloc_unseen unseen;
	struct scanned s;
	char path[64];

	if (!build("cc -s", "c", source, "", path))
		skip();
	assert_true(scan(path, &s));
	assert_int_equal(s.err, -ENOENT);
	alloc_unseen_find(s.ef, NULL, &unseen);
	assert_int_equal(unseen.kind, ALLOC_UNSEEN_ALL);
	assert_string_equal(unseen.family, "mimalloc");
	drop(&s);
	if (!scan("/proc/self/exe", &s))
		return;
	alloc_unseen_find(s.ef, s.err ? NULL : s.af, &unseen);
	assert_int_equal(unseen.kind, ALLOC_UNSEEN_NONE); /* the texts that are searched for */
	drop(&s);
}

/* Stripped of every name: nothing is found, and nothing is guessed. */
TEST(test_stripped_static)
{
	struct scanned s;
	char path[64];

	if (!build("cc -static -s", "c", c_source, "", path))
		skip();
	assert_true(scan(path, &s));
	assert_int_equal(s.err, -ENOENT);
	drop(&s);
}

RUN_TESTS()
