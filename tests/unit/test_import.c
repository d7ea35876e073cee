/* SPDX-License-Identifier: MIT */
/*
 * test_import.c - heap profiles of jemalloc and gperftools: dumps that those wrote, numbers as
 * jeprof and `go tool pprof` print them for the same files, and texts with one thing wrong.
 *
 * golden/import/: of a program (consumers/dumped.c) that keeps 30 blocks of 300000 bytes
 * (load_index) and 12000 of 100 or 3000 (remember, in main and in a thread), and frees 3000 of 5000
 * (handle), under Debian 12's libjemalloc2 and libgoogle-perftools4; gperf-sample and gperf-growth
 * of one like it. jeprof-raw.heap is jemalloc.heap behind the names that jeprof --raw printed.
 */
#include "made_profile.h"

#define FOLDER "tests/golden/import/"
#define MAPS "MAPPED_LIBRARIES:\n00400000-00500000 r-xp 00002000 fe:00 7  /bin/server\n"

static char *read_file(const char *name, size_t *ret_bytes)
{
	char path[256], *text = unit_keep(malloc(1 << 16), free);
	FILE *f;

	snprintf(path, sizeof(path), FOLDER "%s", name);
	f = fopen(path, "r");
	if (!f)
		fail_msg("cannot open %s: run from the top folder", path);
	*ret_bytes = fread(text, 1, 1 << 16, f);
	fclose(f);
	return text;
}

static struct profile *import(const char *text, size_t bytes)
{
	struct err why;
	struct profile *p = NULL;

	if (pprof_read_mem(text, bytes, &p, &why))
		fail_msg("line %llu: %s", (unsigned long long)why.line, why.text);
	return unit_keep(p, release_profile);
}

static struct profile *import_of(const char *text)
{
	return import(text, strlen(text));
}

static struct profile *import_file(const char *name)
{
	size_t bytes;
	char *text = read_file(name, &bytes);

	return import(text, bytes);
}

static int64_t sum(const struct profile *p, const char *type, const char *thread)
{
	int i = profile_find_type(p, type);
	const struct profile_sample *s;
	int64_t n = 0;

	assert_true(i >= 0);
	vec_each(&p->samples, s) {
		const char *name = profile_sample_label(p, s, "thread");

		if (!thread || (name && !strcmp(name, thread)))
			n += p->values.data[s->value_first + i];
	}
	return n;
}

TEST(adds_up_to_what_others_print)
{
	static const struct {
		const char *file, *type, *thread;
		int64_t expected, slack; /* jeprof cuts what is rounded here, per stack */
	} cases[] = {
		{ "jemalloc.heap", "inuse_space", NULL, 19688806, 5 },
		{ "jemalloc.heap", "alloc_space", NULL, 35030639, 5 },
		{ "jemalloc.heap", "inuse_objects", NULL, 10025, 5 },
		{ "jemalloc.heap", "inuse_space", "worker one", 6394675, 1 },
		{ "jemalloc.heap", "inuse_space", "t1", 0, 0 }, /* it has a name */
		{ "jemalloc-inuse.heap", "inuse_space", NULL, 20079337, 5 },
		{ "jemalloc-inuse.heap", "inuse_objects", NULL, 13096, 5 },
		{ "gperf.heap", "inuse_space", NULL, 18900320, 0 },
		{ "gperf.heap", "inuse_objects", NULL, 12031, 0 },
		{ "gperf.heap", "alloc_space", NULL, 33900320, 0 },
		{ "gperf-sample.heap", "inuse_space", NULL, 909345, 3 },
		{ "gperf-growth.heap", "space", NULL, 18874368, 0 },
		{ "gperf-growth.heap", "objects", NULL, 18, 0 },
	};

	each_case(c, cases) {
		struct profile *p = import_file(c->file);
		int64_t got = sum(p, c->type, c->thread);

		if (llabs(got - c->expected) > c->slack)
			fail_msg("%s %s: %lld", c->file, c->type, (long long)got);
	}
}

/* Without prof_accum, and in samples, nothing is known of what was allocated: no type says 0. */
TEST(has_no_type_that_was_not_counted)
{
	static const struct {
		const char *file;
		size_t type_cnt;
		int64_t period;
	} cases[] = {
		{ "jemalloc.heap", 4, 16384 }, { "jemalloc-inuse.heap", 2, 16384 },
		{ "gperf.heap", 4, 1 },	       { "gperf-sample.heap", 2, 65536 },
		{ "gperf-growth.heap", 2, 0 },
	};
	struct profile *p;

	each_case(c, cases) {
		p = import_file(c->file);
		assert_int_equal(p->types.cnt, c->type_cnt);
		assert_int_equal(p->period, c->period);
		assert_true(p->default_type_str == p->types.data[p->types.cnt - 1].type_str);
	}
	p = import_of("heap profile: 1: 2 [0: 0] @ heapprofile\n1: 2 [0: 0] @ 0x400010\n" MAPS);
	assert_int_equal(p->types.cnt, 2);
	assert_int_equal(sum(p, "inuse_space", NULL), 2);
}

/* The first mapping is the program; each address is in the mapping that holds it. */
TEST(places_addresses_in_mappings)
{
	struct profile *p = import_file("jemalloc.heap");
	const struct profile_location *l;

	assert_string_equal(profile_text(p, p->mappings.data[0].filename_str),
			    "/srv/example/server");
	assert_int_equal(p->mappings.data[0].offset, 0x1000);
	assert_int_equal(p->mappings.cnt, 5); /* server, libjemalloc, libc, libstdc++, ld.so */
	assert_int_equal(p->locations.cnt, 21);
	vec_each(&p->locations, l) {
		const struct profile_mapping *m = &p->mappings.data[l->mapping];

		assert_true(l->mapping != HT_NO_INDEX);
		assert_true(l->address >= m->start && l->address < m->limit);
	}
}

TEST(takes_names_from_a_symbol_section)
{
	static const char text[] = "--- symbol\nbinary=/bin/server\n"
				   "0x0000000000400010 main--load--parse\n"
				   "0x40001f main<0000000000000123>\n"
				   "---\n"
				   "heap profile: 1: 2 [1: 2] @ heapprofile\n"
				   "1: 2 [1: 2] @ 0x400010 0x400020 0x400030\n" MAPS;
	static const char *const names[] = { "parse", "load", "main", "main" };
	struct profile *p = import_of(text);
	size_t n = 0;

	for (size_t i = 0; i < 2; i++) {
		const struct profile_location *l = &p->locations.data[p->sample_locs.data[i]];

		for (uint32_t k = 0; k < l->line_cnt; k++, n++) {
			uint32_t fn = p->lines.data[l->line_first + k].function;

			assert_string_equal(profile_text(p, p->functions.data[fn].name_str),
					    names[n]);
		}
	}
	assert_int_equal(n, 4);
	assert_int_equal(p->functions.cnt, 3);
	assert_int_equal(p->locations.data[2].line_cnt, 0);

	p = import_file("jeprof-raw.heap");
	assert_int_equal(sum(p, "inuse_space", "worker one"), 6394675);
	for (size_t i = 0; i < p->locations.cnt; i++)
		assert_int_equal(p->locations.data[i].line_cnt, 1);
}

/* 1000 bytes in one object at a rate of 1000: 1 / (1 - 1/e); at a rate of 1 as it stands. */
TEST(weighs_by_the_mean_size)
{
	struct profile *p = import_of("heap_v2/1000\n t*: 1: 1000 [0: 0]\n"
				      "@ 0x400010\n t*: 1000: 1000000 [0: 0]\n" MAPS);

	assert_int_equal(sum(p, "inuse_space", NULL), 1581977);
	assert_int_equal(sum(p, "inuse_objects", NULL), 1582);
	p = import_of("heap_v2/1\n t*: 1: 8 [0: 0]\n@ 0x400010\n t*: 9: 72 [0: 0]\n" MAPS);
	assert_int_equal(sum(p, "inuse_space", NULL), 72);
	p = import_of("heap profile: 1: 2 [1: 2] @ heap_v2/1000\n"
		      "1000: 1000000 [1000: 1000000] @ 0x400010\n" MAPS);
	assert_int_equal(sum(p, "inuse_space", NULL), 1581977);
}

/* Threads of other sizes weigh other than the stack: the stack's total is kept. */
TEST(shares_a_stack_out_to_its_threads)
{
	struct profile *p = import_of("heap_v2/1000\n t*: 4: 3100 [0: 0]\n t2: 1: 1 [0: 0] io\n"
				      "@ 0x400010\n t*: 4: 3100 [0: 0]\n t1: 3: 100 [0: 0]\n"
				      " t2: 1: 3000 [0: 0]\n t3: 0: 0 [0: 0]\n"
				      "@ 0x400020\n t*: 1: 500 [0: 0]\n" MAPS);

	/* 3100 / (1 - exp(-.775)) = 5748: 100 / (1 - exp(-1/30)) = 3050 and 3157 share it out */
	assert_int_equal(sum(p, "inuse_space", "t1"), 2825);
	assert_int_equal(sum(p, "inuse_space", "io"), 2923);
	assert_int_equal(sum(p, "inuse_space", NULL), 5748 + 1271);
	assert_int_equal(p->samples.cnt, 3);
	assert_null(profile_sample_label(p, &p->samples.data[2], "thread"));
}

TEST(says_what_a_profile_left_out)
{
	struct profile *p = import_of("heap profile: 9: 99 [9: 99] @ heapprofile\n"
				      "1: 2 [1: 2] @ 0x400010\n" MAPS);

	assert_int_equal(p->comments.cnt, 2);
	assert_string_equal(profile_text(p, p->comments.data[1]),
			    "imported: the stacks have 2 bytes in use, the first line says 99");
}

#define JE "heap_v2/1000\n t*: 1: 2 [0: 0]\n"
#define GP "heap profile: 1: 2 [1: 2] @ heapprofile\n"

TEST(names_the_line_that_is_wrong)
{
	static const struct {
		const char *text;
		uint64_t line;
		const char *why;
	} cases[] = {
		{ "heap_v2/\n", 1, "sampling rate" },
		{ "heap_v2/0\n", 1, "sampling rate" },
		{ "heap_v2/12x\n", 1, "sampling rate" },
		{ "heap_v2/524288\n", 1, "cut off" },
		{ "heap_v2/524288", 1, "cut off in the middle" },
		{ "heap_v2/1000\n t1: 1: 2 [0: 0]\n", 2, "not the line 't*" },
		{ JE, 2, "no MAPPED_LIBRARIES" },
		{ JE "@ 0x10\n" MAPS, 4, "no line 't*'" },
		{ JE "@ 0x10\n@ 0x20\n t*: 1: 2 [0: 0]\n" MAPS, 4, "no line 't*'" },
		{ JE "@ 0x10\n t1: 1: 2 [0: 0]\n" MAPS, 4, "before the line 't*'" },
		{ JE "@ 0x10\n t*: 1: 2 [0: 0]\n t*: 1: 2 [0: 0]\n" MAPS, 5, "second line 't*'" },
		{ JE "@ 0x10\n t*: 1: 2 [0: 0] x\n" MAPS, 4, "unexpected text" },
		{ JE "@ 0x10\n t*: 1: 2 [0: 0\n" MAPS, 4, "not a line 'tN" },
		{ JE "@ 0x10\n t*: 1: -2 [0: 0]\n" MAPS, 4, "not a line 'tN" },
		{ JE "@ 0x10\n t*: 1: 99999999999999999999 [0: 0]\n" MAPS, 4, "not a line 'tN" },
		{ JE "@ 0x10\n t*: 1: 18446744073709551615 [0: 0]\n" MAPS, 5, "too large" },
		{ JE "@ 0x10 main\n t*: 1: 2 [0: 0]\n" MAPS, 3, "not of addresses" },
		{ JE "@ 0x10z\n t*: 1: 2 [0: 0]\n" MAPS, 3, "not of addresses" },
		{ JE "@ 0x11111111111111111\n t*: 1: 2 [0: 0]\n" MAPS, 3, "not of addresses" },
		{ JE "hello\n" MAPS, 3, "not a stack" },
		{ JE "MAPPED_LIBRARIES:\n400000 r-xp\n", 4, "/proc/PID/maps" },
		{ JE "MAPPED_LIBRARIES:\n5000-4000 r-xp 0 0:0 7 /bin/x\n", 4, "ends before" },
		{ JE "MAPPED_LIBRARIES:\n4000-5000 r-xp 0 0:0", 4, "cut off in the middle" },
		{ "heap profile: 1: 2 [1: 2]\n", 1, "@ kind" },
		{ "heap profile: 1: 2 [1: 2] @ heap/1048576\n", 1, "debug=1" },
		{ "heap profile: 1: 2 [1: 2] @ heap_v2\n", 1, "heap_v2/RATE" },
		{ "heap profile: 1: 2 [1: 2] @ growthz x\n", 1, "unexpected text" },
		{ GP "1: 2 [1: 2] @ 0x10\n", 2, "no MAPPED_LIBRARIES" },
		{ GP "1: 2 [1: 2]\n" MAPS, 2, "@ stack" },
		{ GP "1: 9223372036854775808 [1: 2] @ 0x10\n" MAPS, 2, "too large" },
		{ GP "\n1 2 [1: 2] @ 0x10\n" MAPS, 3, "@ stack" },
		{ "--- symbol\n0x10\n---\n" GP MAPS, 2, "0xADDRESS name" },
		{ "--- symbol\n0x10 main\n", 2, "no end of the symbols" },
		{ "--- symbol\n---\n--- profile\n", 3, "'--- heap'" },
		{ "--- symbol\n---\n--- heap\n\n", 4, "cut off" },
		{ "--- symbol\n---\n--- heap\nhello\n", 4, "neither" },
	};

	each_case(c, cases) {
		struct err why;
		struct profile *p = NULL;

		assert_int_equal(pprof_read_mem(c->text, strlen(c->text), &p, &why), -EBADMSG);
		assert_null(p);
		if (why.line != c->line || !strstr(why.text, c->why))
			fail_msg("'%s': line %llu: %s", c->text, (unsigned long long)why.line,
				 why.text);
	}
}

/* Only between two lines of the mappings is there nothing to notice. */
TEST(cut_anywhere)
{
	static const char *const files[] = { "jemalloc.heap", "gperf.heap", "jeprof-raw.heap" };

	each_case(c, files) {
		size_t bytes, read = 0;
		char *text = read_file(*c, &bytes);
		const char *maps = strstr(text, "MAPPED_LIBRARIES:");

		for (size_t cut = 13; cut < bytes; cut++) {
			char *exact = malloc(cut); /* so that ASan sees a byte too many */
			struct err why;
			struct profile *p = NULL;
			int err;

			memcpy(exact, text, cut);
			err = pprof_read_mem(exact, cut, &p, &why);
			if (!err && (text + cut <= maps || text[cut - 1] != '\n'))
				fail_msg("%s is read when cut at %zu", *c, cut);
			assert_true(!err || (why.line && why.text[0]));
			read += !err;
			profile_free(p);
			free(exact);
		}
		assert_true(read > 10);
	}
}

RUN_TESTS()
