/* SPDX-License-Identifier: MIT */
/* test_demangle.c - names of C++ and Rust, names that are none, names that are bombs. */
#include "unit.h"

#include "symbol/symbol.h"

TEST(demangles_what_is_mangled)
{
	static const struct {
		const char *mangled, *want; /* NULL: no mangled name */
	} cases[] = {
		{ "", NULL },
		{ "main", NULL },
		{ "f", NULL },
		{ "i", NULL },
		{ "malloc@plt", NULL },
		{ "_R", NULL },
		{ "_Z", NULL },
		{ "_ZN", NULL },
		{ "_Rb_tree_insert", NULL },
		{ "_Z3fooi", "foo(int)" },
		{ "_Z3fooi@plt", "foo(int)@plt" },
		{ "_Znwm", "operator new(unsigned long)" },
		{ "_Znwm@GLIBCXX_3.4", "operator new(unsigned long)" },
		{ "_Znwm@@GLIBCXX_3.4", "operator new(unsigned long)" },
		{ "_ZNSt6vectorIiSaIiEE9push_backEOi",
		  "std::vector<int, std::allocator<int> >::push_back(int&&)" },
		{ "_ZN3app6engine3runEi.cold", "app::engine::run(int) [clone .cold]" },
		{ "_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()(int) const" },
		{ "_ZN12_GLOBAL__N_13addEv", "(anonymous namespace)::add()" },
		/* Rust, old scheme: the hash goes */
		{ "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
		  "core::fmt::Write::write_fmt" },
		{ "_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar"
		  "17h930b740aa94f1d3aE",
		  "<Test + 'static as foo::Bar<Test>>::bar" },
		{ "_ZN3std2rt10lang_start28_$u7b$$u7b$closure$u7d$$u7d$17ha86af84d9cc65291E",
		  "std::rt::lang_start::{{closure}}" },
		{ "_ZN3std2rt10lang_start28_$u7b$$u7b$closure$u7d$$u7d$17ha86af84d9cc65291E"
		  ".llvm.1421443447118394648",
		  "std::rt::lang_start::{{closure}}" },
		{ "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE.158",
		  "core::fmt::Write::write_fmt" },
		/* Rust, v0: crate disambiguators go */
		{ "_RNvCs21hi0yVfW1J_4code8nonsense", "code::nonsense" },
		{ "_RNvMs2_NtCslNYArtu3iFV_5alloc7raw_vecNtB5_11RawVecInner14current_memoryCs6Gmml"
		  "P4bgsG_1r",
		  "<alloc::raw_vec::RawVecInner>::current_memory" },
	};

	each_case(c, cases) {
		char *got = demangle(c->mangled);

		if (!c->want) {
			if (got)
				fail_msg("'%s' became '%s'", c->mangled, got);
			continue;
		}
		if (!got || strcmp(got, c->want) != 0)
			fail_msg("'%s' became '%s', not '%s'", c->mangled, got ? got : "(null)",
				 c->want);
		free(got);
	}
}

/* "_Z" + prefix + repeated + suffix */
static char *repeat(const char *prefix, const char *unit, size_t times, const char *suffix)
{
	size_t n = strlen(prefix), m = strlen(unit), k = strlen(suffix);
	char *s = malloc(n + m * times + k + 1);

	assert_non_null(s);
	memcpy(s, prefix, n);
	for (size_t i = 0; i < times; i++)
		memcpy(s + n + i * m, unit, m);
	memcpy(s + n + m * times, suffix, k + 1);
	return s;
}

/* CPU time: other tests run at the same time. */
static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

TEST(bombs_are_bounded)
{
	static const struct {
		const char *prefix, *unit, *suffix;
		size_t times;
	} cases[] = {
		{ "_Z1f", "P", "i", 8000 }, /* recursion */
		{ "_Z1f", "P", "i", 1000000 }, /* length */
		{ "_Z1fI", "S_", "E", 4000 },
		{ "_Z1f", "1aI", "i", 2500 },
		{ "_Z1f", "FvPF", "v", 1900 },
		/* each argument repeats all before it: doubles with every step */
		{ "_Z1f1aIiiE", "1aIS_S_E", "", 900 },
		{ "_ZN", "1aI", "iE", 2000 },
		{ "_Z1f", "DTcl", "E", 1900 },
		{ "_RINvC1a1f", "TTTT", "E", 1500 },
		{ "_RNvC1a", "B_", "", 3000 },
		{ "_RIC1aTyB3_", "TB3_B3_E", "E", 600 },
		{ "_ZN", "1a", "17h0123456789abcdefE", 4000 },
	};

	each_case(c, cases) {
		char *s = repeat(c->prefix, c->unit, c->times, c->suffix);
		double start = seconds();
		char *got = demangle(s);

		if (got && strlen(got) > 65536 + 8)
			fail_msg("case %zu: %zu bytes", (size_t)(c - cases), strlen(got));
		if (seconds() - start > 2)
			fail_msg("case %zu: %.1f s", (size_t)(c - cases), seconds() - start);
		free(got);
		free(s);
	}
}

/* Substitutions that double: a hundred bytes of name, and gigabytes of text. */
TEST(doubling_is_bounded)
{
	char name[1024] = "_Z1f1aIiiE";
	size_t n = strlen(name);
	char *got;

	for (int i = 0; i < 26; i++) {
		/* S_ is the template a, S0_ and so on are its instances */
		char ref[8];

		snprintf(ref, sizeof(ref), "S%c_", i < 10 ? '0' + i : 'A' + i - 10);
		n += (size_t)snprintf(name + n, sizeof(name) - n, "S_I%s%sE", ref, ref);
	}
	/* a few steps of it are a proper name */
	assert_non_null(got = demangle("_Z1f1aIiiES_IS0_S0_ES_IS1_S1_E"));
	free(got);
	got = demangle(name);
	if (got)
		fail_msg("%zu bytes of what must be over the bound", strlen(got));
}

RUN_TESTS()
