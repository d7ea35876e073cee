/* SPDX-License-Identifier: MIT */
/*
 * test_symbolizer.c - symbolize(): against other tools, within its limits, and with files and
 * helpers that do not behave.
 */
#include "symbol_oracle.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "symbol/symbol.h"
#include "whole.h"

static const struct symbol_options all_on = { .lines = true, .demangle = true };

/* Every address has a frame, every string is there and valid UTF-8 without controls. */
static void check_string(const char *s)
{
	assert_non_null(s);
	for (const unsigned char *p = (const unsigned char *)s; *p; p++) {
		int more = *p < 0x80 ? 0 : *p >= 0xf0 ? 3 : *p >= 0xe0 ? 2 : 1;

		assert_true(*p >= 0x20 && *p != 0x7f);
		assert_true(*p < 0x80 || *p >= 0xc2);
		for (; more; more--) {
			p++;
			assert_true((*p & 0xc0) == 0x80);
		}
	}
}

static void check_result(const struct symbol_result *r, size_t addr_cnt)
{
	assert_int_equal(r->addr_cnt, addr_cnt);
	assert_int_equal(r->first[0], 0);
	for (size_t i = 0; i < addr_cnt; i++) {
		assert_true(r->first[i] < r->first[i + 1]);
		for (uint32_t k = r->first[i]; k < r->first[i + 1]; k++) {
			check_string(r->frames[k].name);
			check_string(r->frames[k].system_name);
			check_string(r->frames[k].file);
			assert_true(r->frames[k].name[0] && r->frames[k].system_name[0]);
		}
	}
	check_string(r->note);
}

static void release_result(void *r)
{
	symbol_result_free(r);
}

/* The answer, which is there until the test ends. */
static struct symbol_result *answer(const struct symbol_options *opts, const struct symbol_file *sf,
				    const uint64_t *vaddr, size_t cnt)
{
	struct symbol_result *r = NULL;

	assert_int_equal(symbolize(opts, sf, vaddr, cnt, &r), 0);
	unit_keep(r, release_result);
	check_result(r, cnt);
	return r;
}

static struct symbol_result *ask(const struct symbol_options *opts, const char *dir,
				 const char *name, const uint64_t *vaddr, size_t cnt)
{
	struct symbol_file sf = { .name = name, .build_id_hex = "", .root = "" };
	struct symbol_result *r;

	sf.fd = open_in(dir, name);
	r = answer(opts, &sf, vaddr, cnt);
	if (sf.fd >= 0)
		close(sf.fd);
	return r;
}

/* p, by this command. Each runs once: a compiler takes longer than most of what is tested. */
static bool made(const char *dir, const char *command)
{
	unsigned int key = 5381;

	for (const char *c = command; *c; c++)
		key = key * 33 + (unsigned char)*c;
	return shell("cd '%s' && rm -f p && { [ -e made-%u ] || { %s && mv p made-%u; } "
		     ">/dev/null 2>&1; } && cp made-%u p",
		     dir, key, command, key, key);
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* cnt random addresses of .text, sorted and unique; returns how many. */
static size_t random_text(const char *dir, const char *name, uint64_t *vaddr, size_t cnt)
{
	int fd = open_in(dir, name);
	struct elf_section text;
	struct elf_file *ef;
	size_t kept = 0;

	assert_int_equal(elf_file_open_fd(fd, &ef), 0);
	assert_int_equal(elf_file_section(ef, ".text", &text), 0);
	srand48(4711);
	for (size_t i = 0; i < cnt; i++)
		vaddr[i] = text.vaddr + (uint64_t)(drand48() * (double)text.bytes);
	elf_file_close(ef);
	close(fd);
	qsort(vaddr, cnt, sizeof(*vaddr), compare_u64);
	for (size_t i = 0; i < cnt; i++)
		if (!kept || vaddr[kept - 1] != vaddr[i])
			vaddr[kept++] = vaddr[i];
	return kept;
}

struct agreement {
	size_t known, chains, innermost, lines;
};

static bool same_name(const char *a, const char *b)
{
	char x[4096], y[4096];

	plain_name(a, x, sizeof(x));
	plain_name(b, y, sizeof(y));
	return strcmp(x, y) == 0;
}

static bool same_place(const struct symbol_frame *a, const struct oracle_frame *b)
{
	const char *x = strrchr(a->file, '/'), *y = strrchr(b->file, '/');

	return a->line == b->line && strcmp(x ? x : a->file, y ? y : b->file) == 0;
}

/* Addresses of which the other tool knows a line. */
static void compare(const struct symbol_result *r, const struct oracle *o, struct agreement *a)
{
	memset(a, 0, sizeof(*a));
	for (size_t i = 0; i < r->addr_cnt; i++) {
		const struct symbol_frame *ours = &r->frames[r->first[i]];
		const struct oracle_frame *theirs = &o->frames[o->first[i]];
		size_t n = r->first[i + 1] - r->first[i];
		bool chain, lines;

		if (o->first[i] == o->first[i + 1] || !theirs->file[0] || !theirs->line)
			continue;
		/* padding between two functions */
		if (strcmp(theirs->name, "??") == 0)
			continue;
		a->known++;
		chain = lines = n == o->first[i + 1] - o->first[i];
		for (size_t k = 0; k < n && chain; k++)
			chain = same_name(ours[k].system_name, theirs[k].name);
		for (size_t k = 0; k < n && lines; k++)
			lines = same_place(&ours[k], &theirs[k]);
		a->chains += chain;
		a->lines += lines;
		a->innermost += same_name(ours->system_name, theirs->name);
	}
}

#define LLVM "llvm-symbolizer --no-demangle --inlines --output-style=GNU -a"

TEST(agrees_with_llvm)
{
	enum { CNT = 3000 };
	static const struct {
		const char *tool, *compile;
		bool is_again; /* only when the tests are run whole */
	} builds[] = {
		{ "gcc", "gcc -O2 -g '-DMARK(n)=(void)0' -o p p.c", false },
		{ "g++", "g++ -O2 -gdwarf-5 -o p p.cc", false },
		{ "g++", "g++ -O2 -gdwarf-4 -o p p.cc", true },
		{ "g++", "g++ -O0 -g -o p p.cc", true },
		{ "g++", "g++ -O2 -g -flto -o p p.cc", false },
		{ "clang++", "clang++ -O2 -gdwarf-5 -o p p.cc", true },
		{ "clang++", "clang++ -O2 -gdwarf-4 -o p p.cc", false },
		{ "rustc", "rustc -O -g -o p p.rs", true },
		{ "rustc", "rustc -O -g -Csymbol-mangling-version=v0 -o p p.rs", false },
		{ "rustc", "rustc -g -o p p.rs", true },
	};
	const struct symbol_options opts = { .lines = true };
	uint64_t *vaddr = calloc(CNT, sizeof(*vaddr));
	size_t done = 0;

	for (size_t i = 0; have("llvm-symbolizer") && i < sizeof(builds) / sizeof(builds[0]); i++) {
		struct symbol_result *r;
		struct oracle o;
		struct agreement a;
		size_t cnt;

		if (builds[i].is_again && !is_whole())
			continue;
		if (!have(builds[i].tool) ||
		    !shell("cd '%s' && rm -f p && %s", (char *)*state, builds[i].compile)) {
			print_message("# not here: %s\n", builds[i].compile);
			continue;
		}
		cnt = random_text(*state, "p", vaddr, CNT);
		r = ask(&opts, *state, "p", vaddr, cnt);
		oracle_ask(LLVM, *state, "p", vaddr, cnt, &o);
		compare(r, &o, &a);
		print_message("# %s: %zu known, names %zu, innermost %zu, lines %zu\n",
			      builds[i].compile, a.known, a.chains, a.innermost, a.lines);
		/* Identical functions that were merged have several right names. */
		assert_true(a.known > 20 && a.chains >= a.known * 99 / 100);
		assert_true(a.innermost >= a.known * 99 / 100);
		assert_true(a.lines >= a.known * 998 / 1000);
		assert_true(r->has_functions && r->has_lines && r->has_inlines);
		assert_string_equal(r->note, "");
		oracle_release(&o);
		done++;
	}
	free(vaddr);
	if (!done)
		skip();
}

/* addr2line's innermost names are those of the symbol table: the lines are compared. */
TEST(lines_agree_with_addr2line)
{
	enum { CNT = 1500 };
	const struct symbol_options opts = { .lines = true };
	uint64_t *vaddr = unit_keep(calloc(CNT, sizeof(*vaddr)), free);
	struct symbol_result *r;
	struct oracle o;
	struct agreement a;
	size_t cnt;

	if (!have("addr2line") || !made(*state, "g++ -O2 -g -o p p.cc"))
		skip();
	cnt = random_text(*state, "p", vaddr, CNT);
	r = ask(&opts, *state, "p", vaddr, cnt);
	oracle_ask("addr2line -i -f -a", *state, "p", vaddr, cnt, &o);
	compare(r, &o, &a);
	print_message("# %zu known, lines %zu\n", a.known, a.lines);
	assert_true(a.known > 20 && a.lines >= a.known * 99 / 100);
	oracle_release(&o);
}

TEST(names_are_demangled)
{
	struct symbol_result *r;
	uint64_t vaddr;
	int fd;

	if (!made(*state, "g++ -O1 -g -o p p.cc"))
		skip();
	fd = open_in(*state, "p");
	vaddr = address_of(fd, "_ZN3app6engine3runEi") + 4;
	close(fd);
	r = ask(&all_on, *state, "p", &vaddr, 1);
	assert_string_equal(r->frames[r->first[1] - 1].name, "app::engine::run(int)");
	assert_string_equal(r->frames[r->first[1] - 1].system_name, "_ZN3app6engine3runEi");
}

/* GCC leaves linkage names out of inlined templates: their class is found nevertheless. */
TEST(inlined_names_are_qualified)
{
	enum { CNT = 4000 };
	uint64_t *vaddr = unit_keep(calloc(CNT, sizeof(*vaddr)), free);
	size_t bare_cnt = 0, method_cnt = 0, lambda_cnt = 0, cnt;
	struct symbol_result *r;

	if (!made(*state, "g++ -O2 -g -o p p.cc"))
		skip();
	cnt = random_text(*state, "p", vaddr, CNT);
	r = ask(&all_on, *state, "p", vaddr, cnt);
	for (uint32_t i = 0; i < r->first[cnt]; i++) {
		const struct symbol_frame *f = &r->frames[i];

		/* as the DWARF has it: a method of the standard library */
		if (strncmp(f->system_name, "_M_", 3) != 0 &&
		    strncmp(f->system_name, "operator", 8) != 0)
			continue;
		method_cnt++;
		bare_cnt += strcmp(f->name, f->system_name) == 0;
		lambda_cnt += strcmp(f->name, "main::{lambda}::operator()") == 0;
	}
	print_message("# %zu methods, %zu bare, %zu lambdas\n", method_cnt, bare_cnt, lambda_cnt);
	assert_true(method_cnt > 50);
	assert_int_equal(bare_cnt, 0);
	assert_true(lambda_cnt > 0);
}

TEST(what_is_missing_is_said)
{
	static const struct {
		const char *prepare;
		bool lines;
		const char *name, *note; /* note: what it must hold */
		bool has_functions;
	} cases[] = {
		{ "gcc -O1 -g -o p p.c", false, "main", "", true },
		{ "gcc -O1 -o p p.c", true, "main", "no debug info", true },
		{ "gcc -O1 -o p p.c && strip p", true, "p+0x", "no debug info", false },
		{ "cp p.c p", true, "p+0x", "no ELF", false },
		{ "(: >p)", true, "p+0x", "no ELF", false },
		{ "rm p", true, "p+0x", "missing", false },
		{ "gcc -O1 -g -gsplit-dwarf -o p p.c", true, "main", "split", true },
	};
	uint64_t vaddr;
	int fd;

	if (!shell("cd '%s' && rm -f p && gcc -O1 -g -o p p.c", (char *)*state))
		skip();
	fd = open_in(*state, "p");
	vaddr = address_of(fd, "main") + 1;
	close(fd);
	each_case(c, cases) {
		struct symbol_options opts = { .lines = c->lines, .demangle = true };
		struct symbol_result *r;

		assert_true(shell("cd '%s' && %s", (char *)*state, c->prepare));
		r = ask(&opts, *state, "p", &vaddr, 1);
		print_message("# %s: %s, '%s'\n", c->prepare, r->frames[0].name, r->note);
		assert_int_equal(strncmp(r->frames[0].name, c->name, strlen(c->name)), 0);
		assert_says(r->note, c->note);
		assert_int_equal(r->has_functions, c->has_functions);
	}
}

TEST(separate_debug_file_in_the_root)
{
	char root[512];
	struct symbol_file sf = { .name = "/p", .build_id_hex = "1122334455667788", .root = root };
	struct symbol_result *r;
	uint64_t vaddr;

	snprintf(root, sizeof(root), "%s/root", (char *)*state);
	if (!shell("cd '%s' && rm -rf root && mkdir -p root/usr/lib/debug/.build-id/11 && "
		   "gcc -O1 -g -Wl,--build-id=0x1122334455667788 -o p p.c && objcopy "
		   "--only-keep-debug p root/usr/lib/debug/.build-id/11/22334455667788.debug",
		   (char *)*state))
		skip();
	sf.fd = open_in(*state, "p");
	vaddr = address_of(sf.fd, "mark_inner");
	close(sf.fd);
	assert_true(shell("cd '%s' && strip p", (char *)*state));
	/* the stripped file, and no file at all */
	for (int i = 0; i < 2; i++) {
		sf.fd = i ? -1 : open_in(*state, "p");
		r = answer(&all_on, &sf, &vaddr, 1);
		assert_int_equal(r->first[1], 3);
		assert_string_equal(r->frames[0].name, "inner");
		assert_string_equal(r->frames[2].name, "outer");
		if (sf.fd >= 0)
			close(sf.fd);
	}
}

/* A sanitizer's allocator has all its memory before the limit is set. */
#if defined(__SANITIZE_ADDRESS__)
#define MEMORY_CAN_BE_LIMITED false
#elif defined(__has_feature)
#define MEMORY_CAN_BE_LIMITED (!__has_feature(address_sanitizer))
#else
#define MEMORY_CAN_BE_LIMITED true
#endif

TEST(limits_fall_back_to_symbols)
{
	enum { CNT = 20000 };
	static const struct {
		struct symbol_options opts;
		const char *note;
	} cases[] = {
		{ { .lines = true, .time_limit_ns = 1 }, "debug info: time limit" },
		{ { .lines = true, .memory_limit_bytes = 4096 }, "debug info: memory limit" },
	};
	uint64_t *vaddr = unit_keep(calloc(CNT, sizeof(*vaddr)), free);

	if (!made(*state, "g++ -O1 -g -o p p.cc"))
		skip();
	for (size_t i = 0; i < (MEMORY_CAN_BE_LIMITED ? 2 : 1); i++) {
		size_t cnt = random_text(*state, "p", vaddr, CNT);
		struct symbol_result *r = ask(&cases[i].opts, *state, "p", vaddr, cnt);

		print_message("# '%s'\n", r->note);
		assert_int_equal(strncmp(r->note, cases[i].note, strlen(cases[i].note)), 0);
		/* 4096 bytes may be too few for the symbols as well */
		assert_true(r->has_functions || i == 1);
	}
}

struct attack {
	int parent_tid, signal;
};

/* Sends a signal to the first child that appears, once. */
static void *attack_first_child(void *arg)
{
	const struct attack *attack = arg;
	char path[64], line[64];
	struct timespec pause = { .tv_nsec = 200000 };

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", attack->parent_tid);
	for (int i = 0; i < 20000; i++) {
		FILE *f = fopen(path, "r");
		int pid = f && fgets(line, sizeof(line), f) ? (int)strtol(line, NULL, 10) : 0;

		if (f)
			fclose(f);
		if (pid > 0) {
			kill(pid, attack->signal);
			return NULL;
		}
		nanosleep(&pause, NULL);
	}
	return NULL;
}

TEST(a_helper_that_dies_or_stops)
{
	enum { CNT = 20000 };
	static const struct {
		int signal;
		uint64_t time_limit_ns;
		const char *note;
	} cases[] = {
		{ SIGKILL, 0, "debug info: helper crashed (signal 9)" },
		{ SIGABRT, 0, "debug info: helper " },
		{ SIGSTOP, 1000000000, "debug info: time limit" },
	};
	uint64_t *vaddr = unit_keep(calloc(CNT, sizeof(*vaddr)), free);

	if (!made(*state, "g++ -O1 -g -o p p.cc"))
		skip();
	each_case(c, cases) {
		struct symbol_options opts = { .lines = true, .time_limit_ns = c->time_limit_ns };
		struct attack attack = { .parent_tid = (int)getpid(), .signal = c->signal };
		size_t cnt = random_text(*state, "p", vaddr, CNT);
		struct symbol_result *r;
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, attack_first_child, &attack), 0);
		r = ask(&opts, *state, "p", vaddr, cnt);
		pthread_join(thread, NULL);
		print_message("# '%s'\n", r->note);
		assert_says(r->note, c->note);
		assert_says(r->note, "symbol table");
		assert_true(r->has_functions);
	}
}

static void release_slow(void *slow)
{
	slow_files_free(slow);
}

/* An address in a program that may be too slow. */
static void begin_with_slow(const char *dir, struct symbol_options *opts, struct symbol_file *sf,
			    uint64_t *ret_vaddr)
{
	if (!made(dir, "g++ -O1 -g -o p p.cc"))
		skip();
	assert_int_equal(slow_files_new(&opts->slow), 0);
	unit_keep(opts->slow, release_slow);
	assert_int_equal(random_text(dir, "p", ret_vaddr, 1), 1);
	sf->fd = keep_fd(open_in(dir, "p"));
}

/* The answer when the first helper is stopped. It may be done before it could be: it is tried again. */
static struct symbol_result *stopped(struct symbol_options *opts, uint64_t time_ns,
				     const struct symbol_file *sf, const uint64_t *vaddr)
{
	struct attack attack = { .parent_tid = (int)getpid(), .signal = SIGSTOP };
	struct symbol_result *r;
	pthread_t thread;

	for (int i = 0;; i++) {
		if (time_ns)
			opts->end_ns = now_ns() + time_ns;
		assert_int_equal(pthread_create(&thread, NULL, attack_first_child, &attack), 0);
		r = answer(opts, sf, vaddr, 1);
		pthread_join(thread, NULL);
		if (r->is_slow || i == 20)
			break;
	}
	print_message("# '%s'\n", r->note);
	return r;
}

TEST(a_slow_file_is_remembered)
{
	struct symbol_options opts = { .lines = true, .demangle = true, .time_limit_ns = 1 };
	struct symbol_file sf = { .name = "p", .key = { 1, 2, 3 } };
	struct symbol_result *r;
	struct timespec start, end;
	uint64_t vaddr;

	begin_with_slow(*state, &opts, &sf, &vaddr);
	/* DWARF takes too long: next time it is not tried, whatever time there is */
	for (int i = 0; i < 2; i++) {
		r = answer(&opts, &sf, &vaddr, 1);
		assert_true(r->is_slow && !r->is_late && r->has_functions && !r->has_lines);
		opts.time_limit_ns = 0;
	}
	/* a helper that does nothing: its file does not answer, and next time is not waited for */
	sf.key.ino++;
	r = stopped(&opts, 0, &sf, &vaddr);
	assert_says(r->note, "does not respond");
	assert_true(r->is_slow && !r->has_functions);
	clock_gettime(CLOCK_MONOTONIC, &start);
	r = answer(&opts, &sf, &vaddr, 1);
	clock_gettime(CLOCK_MONOTONIC, &end);
	assert_string_equal(r->note, "was too slow lately");
	assert_true(r->is_slow && end.tv_sec - start.tv_sec < 2);
	/* another file is looked up */
	sf.key.ino++;
	r = answer(&opts, &sf, &vaddr, 1);
	assert_true(!r->is_slow && r->has_lines);
}

/* What the caller has no time for is not remembered as the file's fault. */
TEST(the_callers_time_ends)
{
	struct symbol_options opts = { .lines = true, .demangle = true, .end_ns = 1 };
	struct symbol_file sf = { .name = "p", .key = { 1, 2, 3 } };
	struct symbol_result *r = NULL;
	uint64_t vaddr;

	begin_with_slow(*state, &opts, &sf, &vaddr);
	r = answer(&opts, &sf, &vaddr, 1);
	assert_true(r->is_slow && r->is_late && !r->has_functions);
	assert_string_equal(r->note, "no time is left");
	opts.wants_all = true;
	assert_int_equal(symbolize(&opts, &sf, &vaddr, 1, &r), -ETIME);
	/* at the end of all there is no next time */
	slow_files_end_at(opts.slow, 1);
	r = answer(&opts, &sf, &vaddr, 1);
	assert_true(r->is_late);
	slow_files_end_at(opts.slow, UINT64_MAX);
	opts.end_ns = 0;
	r = answer(&opts, &sf, &vaddr, 1);
	assert_true(!r->is_slow && r->has_functions);
}

/* For who waits, names without lines are better than none. */
TEST(half_the_callers_time_is_for_lines)
{
	struct symbol_options opts = { .lines = true, .demangle = true, .is_hurried = true };
	struct symbol_file sf = { .name = "p", .key = { 1, 2, 3 } };
	struct symbol_result *r;
	uint64_t vaddr;

	begin_with_slow(*state, &opts, &sf, &vaddr);
	r = stopped(&opts, 4 * NS_PER_S, &sf, &vaddr);
	assert_true(r->is_slow && r->is_late && r->has_functions && !r->has_lines);
	opts.end_ns = 0; /* it is not remembered as slow */
	r = answer(&opts, &sf, &vaddr, 1);
	assert_true(!r->is_slow && r->has_lines);
}

/* Bytes of a sound file changed at random places: any answer, but an answer, and soon. */
TEST(damaged_files)
{
	enum { CNT = 200, ROUNDS = 60 };
	uint64_t vaddr[CNT];
	struct timespec start, end;
	struct symbol_options opts = { .lines = true,
				       .demangle = true,
				       .time_limit_ns = 3000000000 };
	static uint8_t image[4 << 20];
	char path[512];
	size_t cnt, bytes;
	FILE *f;

	if (!shell("cd '%s' && gcc -O2 -g -o p p.c", (char *)*state))
		skip();
	cnt = random_text(*state, "p", vaddr, CNT);
	snprintf(path, sizeof(path), "%s/p", (char *)*state);
	f = fopen(path, "r");
	bytes = fread(image, 1, sizeof(image), f);
	fclose(f);
	assert_true(bytes > 1000 && bytes < sizeof(image));
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (int i = 0; i < ROUNDS; i++) {
		/* The DWARF and the section headers are the file's last part. */
		size_t from = i % 3 ? bytes * 2 / 3 : 0;

		snprintf(path, sizeof(path), "%s/damaged", (char *)*state);
		f = fopen(path, "w");
		assert_int_equal(fwrite(image, 1, bytes, f), bytes);
		for (int k = 0; k < 40; k++) {
			fseek(f, (long)(from + (size_t)(drand48() * (double)(bytes - from))),
			      SEEK_SET);
			fputc((int)(drand48() * 256), f);
		}
		fclose(f);
		ask(&opts, *state, "damaged", vaddr, cnt);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	assert_true(end.tv_sec - start.tv_sec < 120);
}

TEST(wrong_questions)
{
	static const uint64_t unsorted[] = { 5, 4 }, twice[] = { 4, 4 };
	struct symbol_file sf = { .fd = -1 };
	struct symbol_result *r = NULL;

	assert_int_equal(symbolize(&all_on, &sf, unsorted, 2, &r), -EINVAL);
	assert_int_equal(symbolize(&all_on, &sf, twice, 2, &r), -EINVAL);
	assert_null(r);
	r = answer(&all_on, &sf, NULL, 0);
	symbol_result_free(NULL);
	sf.name = "/x/lib\x1b[31m\xff.so";
	r = answer(&all_on, &sf, twice, 1);
	assert_says(r->frames[0].name, ".so+0x4");
}

static size_t open_fd_cnt(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t cnt = 0;

	while (readdir(d))
		cnt++;
	closedir(d);
	return cnt;
}

TEST(nothing_is_left_open)
{
	size_t before = open_fd_cnt();

	what_is_missing_is_said(state);
	assert_int_equal(open_fd_cnt(), before);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

RUN_TESTS_WITH(programs_setup, programs_teardown)
