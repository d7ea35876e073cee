/* SPDX-License-Identifier: MIT */
/*
 * make_profile.c - writes a small profile with everything that consumers stumble over: inlined
 * frames, labels, two mappings, names that are not ASCII, an allocation that is freed, error bars.
 *
 *	make_profile [--check | --scopes | --later | --moments] FILE
 *
 * --check runs pprof_check() on FILE instead, --scopes writes the profile of a program that says what
 * its bytes are for (fill_scopes()), --later one of the same program later: parse holds 9 000 000 bytes then, and
 * libother.so nothing; --moments adds what was in use in between, see add_moments(). Every expectation of the tests is about these rows:
 *
 *	thread     objects  in use   allocated  stack, root first
 *	main             3    3000        9000  main > load (inlined in main) > parse
 *	main             7     700         700  main > größe_ändern(Übergröße)
 *	worker-1         1    4096        4096  run > parse > libother.so+0x1234
 *	worker-1         0       0        1000  run > parse
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/pprof_check.h"
#include "../unit/made_note.h"
#include "base/err.h"
#include "profile/pprof.h"
#include "profile/profile.h"

static void check(int err)
{
	if (err < 0) {
		fprintf(stderr, "make_profile: %s\n", strerror(-err));
		exit(1);
	}
}

static int64_t str(struct profile *p, const char *text)
{
	int64_t id = profile_str(p, text);

	check(id < 0 ? (int)id : 0);
	return id;
}

static void add_mapping(struct profile *p, const char *file, const char *build_id)
{
	struct profile_mapping m = { .limit = UINT64_MAX,
				     .filename_str = str(p, file),
				     .build_id_str = str(p, build_id),
				     .has_functions = true,
				     .has_filenames = true,
				     .has_line_numbers = true,
				     .has_inline_frames = true };

	check(vec_push(&p->mappings, m));
}

static uint32_t add_function(struct profile *p, const char *name, const char *linkage,
			     const char *file, int64_t line)
{
	struct profile_function f = { str(p, name), str(p, linkage), str(p, file), line };

	check(vec_push(&p->functions, f));
	return p->functions.cnt - 1;
}

static void add_line(struct profile *p, uint32_t function, int64_t line)
{
	struct profile_line l = { function, line };

	check(vec_push(&p->lines, l));
}

static uint32_t add_location(struct profile *p, uint32_t mapping, uint64_t address, uint32_t lines)
{
	struct profile_location l = { .mapping = mapping,
				      .address = address,
				      .line_first = p->lines.cnt - lines,
				      .line_cnt = lines };

	check(vec_push(&p->locations, l));
	return p->locations.cnt - 1;
}

static void add_sample(struct profile *p, const char *thread, const uint32_t *locs, size_t loc_cnt,
		       const int64_t values[PROFILE_VALUE_CNT], double variance)
{
	struct profile_label label = { .key_str = str(p, "thread"), .str = str(p, thread) };
	int64_t all[PROFILE_VALUE_CAP];
	struct profile_sample *s;

	memcpy(all, values, PROFILE_VALUE_CNT * sizeof(*values));
	all[PROFILE_PEAK_SPACE] = values[PROFILE_ALLOC_SPACE];
	check(profile_add_sample(p, locs, loc_cnt, all, &label, 1, &s));
	s->has_error = true;
	s->peak_samples = (uint64_t)values[PROFILE_ALLOC_OBJECTS];
	s->inuse_samples = values[PROFILE_INUSE_OBJECTS];
	s->inuse_bytes_variance = variance;
	s->inuse_objects_variance = variance / 1e6;
}

/* Four moments, of three seconds; the peak, when all that was allocated was in use, after the second. */
static void begin_moments(struct profile *p)
{
	const int64_t moments_ns[] = { 0, 1000000000, 2000000000, 2900000000 };

	check(profile_add_type(p, "peak_space"));
	p->recording.is_known = true;
	p->recording.pid = 42;
	p->recording.process_cnt = 1;
	p->recording.comm_str = str(p, "server");
	p->recording.duration_ns = p->recording.watched_ns = 3000000000;
	p->recording.peak_ns = 1500000000;
	p->recording.rss_begin_bytes = 3000;
	p->recording.rss_end_bytes = 15000;
	for (int i = 0; i < 4; i++)
		check(vec_push(&p->moments_ns, moments_ns[i]));
}

/* parse of main holds 5000 bytes more for a while, libother.so's block is of the second half. */
static void add_moments(struct profile *p)
{
	static const struct {
		size_t sample;
		struct history_life life;
	} lives[] = { { 0, { 1, 3, 3, 3000, 40000 } },
		      { 0, { 1, 2, 5, 5000, 50000 } },
		      { 2, { 2, 3, 1, 4096, 160000 } } };

	for (size_t i = 0; i < 3; i++) {
		struct profile_sample *s = &p->samples.data[lives[i].sample];

		if (!s->life_cnt++)
			s->life_first = (uint32_t)p->lives.cnt;
		check(vec_push(&p->lives, lives[i].life));
	}
}

static void fill(struct profile *p, bool is_later, bool has_moments)
{
	uint32_t f_main, f_load, f_parse, f_unicode, f_run, f_bare;
	uint32_t l_main, l_parse, l_unicode, l_run, l_bare;

	check(profile_set_heap_types(p, 65536));
	if (has_moments)
		begin_moments(p);
	p->time_ns = 1700000000123456789;
	add_mapping(p, "/usr/bin/server", "0123456789abcdef0123456789abcdef01234567");
	add_mapping(p, "/usr/lib/libother.so", "fedcba9876543210");
	f_main = add_function(p, "main", "main", "/src/main.c", 10);
	f_load = add_function(p, "load", "load", "/src/load.c", 20);
	f_parse = add_function(p, "app::parse(std::string const&)", "_ZN3app5parseERKSs",
			       "/src/parse.cc", 30);
	f_unicode = add_function(p, "größe_ändern(Übergröße)", "groesse", "/src/größe.c", 40);
	f_run = add_function(p, "run", "run", "/src/main.c", 50);
	f_bare = add_function(p, "libother.so+0x1234", "libother.so+0x1234", "", 0);
	add_line(p, f_load, 22);
	add_line(p, f_main, 12);
	l_main = add_location(p, 0, 0x1010, 2);
	add_line(p, f_parse, 33);
	l_parse = add_location(p, 0, 0x2020, 1);
	add_line(p, f_unicode, 44);
	l_unicode = add_location(p, 0, 0x3030, 1);
	add_line(p, f_run, 55);
	l_run = add_location(p, 0, 0x4040, 1);
	add_line(p, f_bare, 0);
	l_bare = add_location(p, 1, 0x1234, 1);

	if (is_later)
		add_sample(p, "main", (uint32_t[]){ l_parse, l_main }, 2,
			   (int64_t[]){ 9006, 9006000, 9000, 9000000 }, 6e11);
	else
		add_sample(p, "main", (uint32_t[]){ l_parse, l_main }, 2,
			   (int64_t[]){ 9, 9000, 3, 3000 }, 40000);
	add_sample(p, "main", (uint32_t[]){ l_unicode, l_main }, 2, (int64_t[]){ 7, 700, 7, 700 },
		   0);
	add_sample(p, "worker-1", (uint32_t[]){ l_bare, l_parse, l_run }, 3,
		   is_later ? (int64_t[]){ 1, 4096, 0, 0 } : (int64_t[]){ 1, 4096, 1, 4096 },
		   is_later ? 0 : 160000);
	add_sample(p, "worker-1", (uint32_t[]){ l_parse, l_run }, 2, (int64_t[]){ 1, 1000, 0, 0 },
		   0);
	if (has_moments)
		add_moments(p);
	check(profile_comment(p, "heaptap test profile"));
	check(profile_comment(p, "target: PID 42 (server) /usr/bin/server"));
	check(profile_comment(p, "ledger: live_full 0 (samples that found the live map full)"));
	check(profile_comment(p, "ledger: missed_frees 5 (addresses that were handed out twice)"));
}

/* A recursive function of two processes, whose blocks are allocated by the standard library. */
static void fill_nested(struct profile *p)
{
	uint32_t f_main, f_walk, f_visit, f_push, l_main, l_walk, l_visit, l_push, *stacks[2];
	const char *const pids[] = { "10", "11" }, *const comms[] = { "first", "second" };

	check(profile_set_heap_types(p, 1));
	add_mapping(p, "/usr/bin/server", "0123456789abcdef0123456789abcdef01234567");
	f_main = add_function(p, "main", "main", "/src/main.c", 10);
	f_walk = add_function(p, "walk", "walk", "/src/main.c", 20);
	f_visit = add_function(p, "visit", "visit", "/src/main.c", 30);
	f_push = add_function(p, "std::vector<int>::push_back(int const&)", "push", "/src/v.h", 40);
	add_line(p, f_main, 12);
	l_main = add_location(p, 0, 0x1010, 1);
	add_line(p, f_walk, 22);
	l_walk = add_location(p, 0, 0x2020, 1);
	add_line(p, f_visit, 33);
	l_visit = add_location(p, 0, 0x3030, 1);
	add_line(p, f_push, 44);
	l_push = add_location(p, 0, 0x4040, 1);
	stacks[0] = (uint32_t[]){ l_push, l_visit, l_walk, l_walk, l_main };
	stacks[1] = (uint32_t[]){ l_push, l_walk, l_main };
	for (int i = 0; i < 2; i++) {
		int64_t bytes = i ? 6000 : 4000;
		struct profile_label labels[] = {
			{ .key_str = str(p, "pid"), .str = str(p, pids[i]) },
			{ .key_str = str(p, "comm"), .str = str(p, comms[i]) }
		};
		struct profile_sample *s;

		check(profile_add_sample(p, stacks[i], i ? 3 : 5, (int64_t[]){ 1, bytes, 1, bytes },
					 labels, 2, &s));
	}
}

struct scoped {
	const char *thread, *scope; /* NULL = none */
	int64_t task; /* 0 = none */
	bool is_exited;
	const char *query; /* a label of the program's own */
	int64_t values[PROFILE_VALUE_CNT];
};

static void add_scoped(struct profile *p, const struct scoped *w, uint32_t loc)
{
	struct profile_label labels[5];
	size_t cnt = 0;
	struct profile_sample *s;

	labels[cnt++] = (struct profile_label){ str(p, "thread"), str(p, w->thread), 0, 0 };
	if (w->scope)
		labels[cnt++] = (struct profile_label){ str(p, "scope"), str(p, w->scope), 0, 0 };
	if (w->query)
		labels[cnt++] = (struct profile_label){ str(p, "query"), str(p, w->query), 0, 0 };
	if (w->task)
		labels[cnt++] = (struct profile_label){ str(p, "task"), 0, w->task, 0 };
	if (w->is_exited)
		labels[cnt++] =
			(struct profile_label){ str(p, "task_state"), str(p, "exited"), 0, 0 };
	check(profile_add_sample(p, &loc, 1, w->values, labels, cnt, &s));
	s->has_error = true;
	s->inuse_samples = w->values[PROFILE_INUSE_OBJECTS];
	s->inuse_bytes_variance = 1e4 * (double)w->values[PROFILE_INUSE_OBJECTS];
	s->inuse_objects_variance = 0.5;
}

/*
 * Nested scopes, one that repeats (Top/A/B/A), tasks of Top/conn of which one left 5 bytes behind,
 * threads of pools, a program's own label, and what is under no scope.
 */
static void fill_scopes(struct profile *p)
{
	static const struct scoped samples[] = {
		{ "main", "Top", 0, false, NULL, { 100, 100000, 40, 40000 } },
		{ "main", "Top/A", 0, false, NULL, { 20, 50000, 10, 20000 } },
		{ "low-1", "Top/A/B", 0, false, "select", { 90, 90000, 30, 30000 } },
		{ "low-2", "Top/A/B/A", 0, false, "select", { 9, 9000, 9, 9000 } },
		{ "low-2", "Top/B", 0, false, "insert", { 50, 500000, 0, 0 } },
		/* allocated by tasks: without their numbers */
		{ "net", "Top/conn", 0, false, NULL, { 10, 20025, 1, 1000 } },
		{ "net", "Top/conn", 7, false, NULL, { 0, 0, 4, 8000 } },
		{ "net", "Top/conn", 17, true, NULL, { 0, 0, 1, 5 } },
		{ "net", "read\\/write", 0, false, NULL, { 2, 2000, 2, 2000 } },
		{ "main", NULL, 0, false, NULL, { 5, 5000, 5, 5000 } },
	};
	uint32_t function, loc;

	check(profile_set_heap_types(p, 512));
	p->time_ns = 1700000000123456789;
	add_mapping(p, "/usr/bin/server", "0123456789abcdef0123456789abcdef01234567");
	function = add_function(p, "serve", "serve", "/src/main.c", 10);
	add_line(p, function, 12);
	loc = add_location(p, 0, 0x1010, 1);
	for (size_t i = 0; i < sizeof(samples) / sizeof(*samples); i++)
		add_scoped(p, &samples[i], loc);
	check(profile_comment(p, "target: PID 42 (server) /usr/bin/server"));
	check(made_note(p, "scope_peak: bytes=200000 time=2023-11-14T22:12:20.500Z scope=Top"));
	check(made_note(p, "scope_peak: bytes=60000 time=2023-11-13T10:00:00.000Z scope=Top/A"));
	check(made_note(p, "scope_peak: bytes=500000 time=2023-11-14T22:10:00.000Z scope=Top/B"));
	check(made_note(
		p, "instance: task=7 state=live inuse_bytes=8000 inuse_objects=4 alloc_bytes=15000 "
		   "alloc_objects=6 peak_bytes=9000 peak_time=2023-11-14T22:13:00.000Z "
		   "scope=Top/conn"));
	check(made_note(
		p, "instance: task=17 state=exited inuse_bytes=5 inuse_objects=1 alloc_bytes=25 "
		   "alloc_objects=3 peak_bytes=15 peak_time=2023-11-14T22:13:10.000Z "
		   "scope=Top/conn"));
}

static int check_file(const char *path)
{
	static char data[1 << 20];
	struct err why = { 0 };
	FILE *f = fopen(path, "rb");
	size_t n;
	int err;

	if (!f)
		check(-errno);
	n = fread(data, 1, sizeof(data), f);
	fclose(f);
	err = pprof_check(data, n, &why);
	if (err)
		fprintf(stderr, "%s: %s\n", path, why.text);
	return err ? 1 : 0;
}

int main(int argc, char **argv)
{
	bool has_scopes = argc == 3 && !strcmp(argv[1], "--scopes");
	bool is_later = argc == 3 && !strcmp(argv[1], "--later");
	bool has_moments = argc == 3 && !strcmp(argv[1], "--moments");
	bool is_nested = argc == 3 && !strcmp(argv[1], "--nested");
	const char *path = argv[argc - 1];
	struct profile *p;
	int fd;

	if (argc == 3 && !strcmp(argv[1], "--check"))
		return check_file(argv[2]);
	if (argc != 2 && !has_scopes && !is_later && !has_moments && !is_nested) {
		fputs("usage: make_profile [--check | --scopes | --later | --moments | --nested] FILE\n",
		      stderr);
		return 2;
	}
	check(profile_new(&p));
	if (has_scopes)
		fill_scopes(p);
	else if (is_nested)
		fill_nested(p);
	else
		fill(p, is_later, has_moments);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		check(-errno);
	check(pprof_write(p, fd));
	close(fd);
	profile_free(p);
	return 0;
}
