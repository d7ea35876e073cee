/* SPDX-License-Identifier: MIT */
/*
 * symbol_programs.h - programs that the symbol tests compile, and what it takes to do so.
 *
 * Places in the C program are marked by global labels in inline assembly, so that a test knows
 * the address of a place without any debug info; lines are found by searching the source text.
 */
#ifndef HT_TESTS_SYMBOL_PROGRAMS_H
#define HT_TESTS_SYMBOL_PROGRAMS_H

#include "unit.h"

#include "../lib/find_symbol.h"
#include "elf/elf_file.h"
#include "elf/elf_symbols.h"

#define TEST_UNUSED __attribute__((unused))

static const char program_c[] =
	"#ifndef MARK\n"
	"#define MARK(n) __asm__(\".globl \" #n \"\\n.type \" #n \",@function\\n\" #n \": nop\")\n"
	"#endif\n"
	"volatile int sink;\n"
	"static inline __attribute__((always_inline)) void inner(int x)\n"
	"{\n"
	"	sink = x;\n"
	"	MARK(mark_inner); /* at inner */\n"
	"}\n"
	"static inline __attribute__((always_inline)) void middle(int x)\n"
	"{\n"
	"	for (int i = 0; i < x; i++) {\n"
	"		int y = i * x;\n"
	"		inner(y + 1); /* at middle */\n"
	"	}\n"
	"}\n"
	"__attribute__((noinline)) void outer(int x)\n"
	"{\n"
	"	if (x > 3)\n"
	"		middle(x); /* at outer */\n"
	"	MARK(mark_outer); /* at outer itself */\n"
	"}\n"
	"static __attribute__((noinline)) int plain(int x)\n"
	"{\n"
	"	MARK(mark_plain); /* at plain */\n"
	"	return x + sink;\n"
	"}\n"
	"int main(int argc, char **argv)\n"
	"{\n"
	"	(void)argv;\n"
	"	outer(argc);\n"
	"	return plain(argc);\n"
	"}\n";

static const char program_cc[] TEST_UNUSED =
	"#include <algorithm>\n"
	"#include <functional>\n"
	"#include <map>\n"
	"#include <memory>\n"
	"#include <string>\n"
	"#include <vector>\n"
	"#include <cstdio>\n"
	"namespace app { namespace {\n"
	"struct node { std::string name; std::vector<int> kids; };\n"
	"inline __attribute__((always_inline)) int leaf(int x) { volatile int y = x; return y * 3; }\n"
	"template <typename T> inline __attribute__((always_inline)) T mid(T x)\n"
	"{ return leaf((int)x) + leaf((int)x + 1); }\n"
	"template <int N> struct rec { static __attribute__((always_inline)) int go(int x)\n"
	"{ return mid<long>(x) + rec<N - 1>::go(x + N); } };\n"
	"template <> struct rec<0> { static int go(int x) { return x; } };\n"
	"}\n"
	"struct engine {\n"
	"	std::map<std::string, std::unique_ptr<node>> nodes;\n"
	"	virtual ~engine() {}\n"
	"	virtual int run(int n) {\n"
	"		for (int i = 0; i < n; i++) {\n"
	"			auto p = std::make_unique<node>();\n"
	"			p->name = std::to_string(i);\n"
	"			p->kids.resize(i % 7);\n"
	"			nodes[p->name] = std::move(p);\n"
	"		}\n"
	"		auto sum = [&](int k) {\n"
	"			struct local { static __attribute__((noinline)) int deep(int z)\n"
	"				{ return rec<5>::go(z); } };\n"
	"			int s = 0;\n"
	"			for (auto &kv : nodes)\n"
	"				s += (int)kv.second->kids.size() * k + local::deep(k);\n"
	"			return s;\n"
	"		};\n"
	"		std::function<int(int)> f = sum;\n"
	"		return f(n) + sum(3);\n"
	"	}\n"
	"};\n"
	"}\n"
	"int main(int c, char **v)\n"
	"{\n"
	"	app::engine e;\n"
	"	std::vector<std::string> s;\n"
	"	for (int i = 0; i < c + 50; i++) s.push_back(v[0] + std::to_string(i));\n"
	"	std::sort(s.begin(), s.end(), [](const std::string &a, const std::string &b)\n"
	"		{ return a > b; });\n"
	"	printf(\"%d %zu\\n\", e.run(c + 20), s.size());\n"
	"}\n";

static const char program_rs[] TEST_UNUSED =
	"use std::collections::{BTreeMap, HashMap};\n"
	"#[derive(Clone, Debug)]\n"
	"struct Rec { name: String, vals: Vec<u64> }\n"
	"mod deep {\n"
	"    #[inline(always)] pub fn twist<T: Into<u64> + Copy>(x: T) -> u64 { add(x.into(), 7) }\n"
	"    #[inline(always)] fn add(a: u64, b: u64) -> u64 { std::hint::black_box(a).wrapping_mul(b) }\n"
	"}\n"
	"impl Rec { #[inline(never)] fn new(i: u64) -> Self { Rec { name: format!(\"r{}\", i),\n"
	"    vals: (0..i % 9).map(|v| deep::twist(v as u32)).collect() } } }\n"
	"trait Sum { fn sum(&self) -> u64; }\n"
	"impl Sum for Rec { fn sum(&self) -> u64 {\n"
	"    self.vals.iter().map(|x| deep::twist(*x as u16)).sum() } }\n"
	"fn main() {\n"
	"    let mut m: HashMap<String, Rec> = HashMap::new();\n"
	"    let mut b = BTreeMap::new();\n"
	"    for i in 0..200u64 {\n"
	"        let r = Rec::new(i); b.insert(i, r.clone()); m.insert(r.name.clone(), r);\n"
	"    }\n"
	"    let mut v: Vec<_> = m.values().cloned().collect();\n"
	"    v.sort_by(|a, c| a.name.cmp(&c.name));\n"
	"    let t: Box<dyn Sum> = Box::new(v[3].clone());\n"
	"    println!(\"{} {} {:?}\", t.sum(), b.values().map(|r| r.sum()).sum::<u64>(), v[2]);\n"
	"}\n";

/* 1-based line of the first line of text that holds needle. */
TEST_UNUSED static uint32_t line_of(const char *text, const char *needle)
{
	const char *at = strstr(text, needle);
	uint32_t line = 1;

	assert_non_null(at);
	for (const char *p = text; p < at; p++)
		line += *p == '\n';
	return line;
}

/* Runs a shell command quietly; true when it worked. */
__attribute__((format(printf, 1, 2))) TEST_UNUSED static bool shell(const char *fmt, ...)
{
	char cmd[4096];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(cmd, sizeof(cmd) - 32, fmt, ap);
	va_end(ap);
	assert_true(n > 0 && (size_t)n < sizeof(cmd) - 32);
	memcpy(cmd + n, " >/dev/null 2>&1", sizeof(" >/dev/null 2>&1"));
	return system(cmd) == 0;
}

TEST_UNUSED static bool have(const char *tool)
{
	return shell("command -v %s", tool);
}

TEST_UNUSED static void write_file(const char *dir, const char *name, const char *text)
{
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* A temporary directory with the programs' sources in it. */
TEST_UNUSED static int programs_setup(void **state)
{
	static const struct {
		const char *name, *text;
	} files[] = { { "p.c", program_c }, { "p.cc", program_cc }, { "p.rs", program_rs } };
	const char *tmp = getenv("TMPDIR");
	char *dir = malloc(256);

	assert_non_null(dir);
	snprintf(dir, 256, "%s/heaptap-symbols-XXXXXX", tmp && strlen(tmp) < 128 ? tmp : "/tmp");
	assert_non_null(mkdtemp(dir));
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		write_file(dir, files[i].name, files[i].text);
	*state = dir;
	return 0;
}

TEST_UNUSED static int programs_teardown(void **state)
{
	shell("rm -rf '%s'", (char *)*state);
	free(*state);
	return 0;
}

TEST_UNUSED static int open_in(const char *dir, const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Address of a symbol of the file, which must be there. */
TEST_UNUSED static uint64_t address_of(int fd, const char *name)
{
	struct elf_symbols *syms;
	struct elf_symbol sym = { 0 };
	const struct elf_symbol *all;
	struct elf_file *ef;
	uint64_t vaddr = 0;
	size_t cnt;

	assert_int_equal(elf_file_open_fd(fd, &ef), 0);
	assert_int_equal(elf_symbols_load(ef, NULL, &syms), 0);
	if (find_symbol(syms, name, &sym) == 0)
		vaddr = sym.vaddr;
	all = elf_symbols_all(syms, &cnt);
	for (size_t i = 0; i < cnt && !vaddr; i++)
		if (strcmp(all[i].name, name) == 0)
			vaddr = all[i].vaddr;
	elf_symbols_free(syms);
	elf_file_close(ef);
	assert_true(vaddr != 0);
	return vaddr;
}

#endif
