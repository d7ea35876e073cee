/* SPDX-License-Identifier: MIT */
/*
 * test_screens.c - the first screen of five kinds of target: all of it fits 24 lines by 80 columns, and is in
 * golden/screens/ to the letter.
 *
 * The profiles are made here: a server with stacks, one with scopes, one of which in-use is unknown, a
 * small program of which every allocation was recorded, and one that was kept at an out-of-memory
 * kill, with losses and with frees that were seen only from some time on.
 */
#include "../unit/made_profile.h"
#include "../unit/made_note.h"
#include "golden.h"

#define FOLDER "tests/golden/screens/"
#define KIB 1024
#define MIB (1024 * 1024)
#define NOW_NS 1795490724000000000 /* 2026-11-24 03:25:24 UTC */
#define S 1000000000LL
#define FRAMES_MAX 8

static struct profile *p; /* of the test that runs */
static uint32_t program, libc, libstdcxx;

/* line 0: the file and line are not known; name "": only the address is. */
static uint32_t frame_in(uint32_t mapping, const char *name, const char *file, int64_t line)
{
	uint64_t address = 0x1000 + 0x1234 * (uint64_t)line;

	return made_location(p, mapping, (struct made_place){ name, file, line, address });
}

static uint32_t frame(const char *name, const char *file, int64_t line)
{
	return frame_in(program, name, file, line);
}

struct made {
	uint32_t stack[FRAMES_MAX]; /* the leaf first; ends with 0, which is no frame here */
	int64_t alloc_objects, alloc, objects, inuse;
	double variance;
	const char *thread, *scope, *tenant;
};

static void add(const struct made *m)
{
	struct profile_label labels[3];
	struct profile_sample *s;
	size_t frame_cnt = 0, cnt = 0;

	while (frame_cnt < FRAMES_MAX && m->stack[frame_cnt])
		frame_cnt++;
	if (m->thread)
		labels[cnt++] = text_label(p, "thread", m->thread);
	if (m->scope)
		labels[cnt++] = text_label(p, "scope", m->scope);
	if (m->tenant)
		labels[cnt++] = text_label(p, "tenant", m->tenant);
	assert_int_equal(
		profile_add_sample(p, m->stack, frame_cnt,
				   (int64_t[]){ m->alloc_objects, m->alloc, m->objects, m->inuse },
				   labels, cnt, &s),
		0);
	s->has_error = true;
	s->inuse_samples = m->variance > 0 ? (uint64_t)(m->inuse / (64 * KIB) + 1) : 1;
	s->inuse_bytes_variance = m->variance;
	s->inuse_objects_variance = m->variance > 0 ? 1 : 0;
	s->alloc_samples = (uint64_t)(m->alloc / p->period + 1);
	s->alloc_bytes_variance = p->period > 1 ? (double)m->alloc * (double)p->period : 0;
}

#define STACK(...)          \
	{                   \
		__VA_ARGS__ \
	}
#define ADD(...) add(&(struct made){ __VA_ARGS__ })

static void begin(const char *comm, const char *exe, uint64_t rate)
{
	p = made_profile(rate);
	program = made_mapping(p, exe);
	libc = made_mapping(p, "/lib/x86_64-linux-gnu/libc.so.6");
	libstdcxx = made_mapping(p, "/lib/x86_64-linux-gnu/libstdc++.so.6");
	frame("", "", 0); /* number 0 ends a stack */
	p->time_ns = NOW_NS;
	p->recording = (struct recording){
		.is_known = true,
		.pid = 14662,
		.comm_str = profile_str(p, comm),
		.exe_str = profile_str(p, exe),
		.process_cnt = 1,
		.begin_ns = NOW_NS - 20 * S,
		.end_ns = NOW_NS,
		.duration_ns = 20 * S,
		.watched_ns = 20 * S,
		.overhead_share = 0.0906,
		.full_share = NAN,
		.limit = { .cpu_share = 0.25 },
		.inuse = RECORDING_INUSE_ALL,
		.rss_begin_bytes = (uint64_t)(9.5 * MIB),
		.rss_end_bytes = (uint64_t)(13.4 * MIB),
	};
}

/* The square of a standard error. */
static double error(double bytes)
{
	return bytes * bytes;
}

static const char construct_name[] =
	"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >::"
	"_M_construct(unsigned long, char)";
static const char grow_name[] =
	"void std::vector<std::string, std::allocator<std::string> >::_M_realloc_insert<std::string>"
	"(__gnu_cxx::__normal_iterator<std::string*, std::vector<std::string> >, std::string&&)";

/* Few places hold much, many hold little, some hold nothing. */
static void fill_server(void)
{
	uint32_t construct, grow, touch, handle, loop, start, plugin;

	begin("server", "/usr/local/bin/server", 64 * KIB);
	construct = frame_in(libstdcxx, construct_name, "", 0);
	grow = frame(grow_name, "vector.tcc", 453);
	touch = frame("SessionStore::touch(int)", "/src/server.cc", 22);
	handle = frame("handle_request(Request const&)", "/src/server.cc", 35);
	loop = frame("main", "/src/server.cc", 61);
	start = frame_in(libc, "__libc_start_main", "libc-start.c", 360);
	plugin = made_mapping(p, "/usr/lib/_multiarray_umath.cpython-312-x86_64-linux-gnu.so");
	ADD(STACK(construct, touch, handle, loop, start), 10500, 20 * MIB, 10500,
	    (int64_t)(2.01 * MIB), error(0.36 * MIB), .thread = "server");
	ADD(STACK(grow, touch, handle, loop, start), 900, 9 * MIB, 900, (int64_t)(1.83 * MIB),
	    error(0.34 * MIB), .thread = "worker");
	for (int i = 0; i < 12; i++) {
		uint32_t numpy = frame_in(plugin, "", "", 30 + i);

		ADD(STACK(numpy, handle, loop), 50, MIB, 3 + i, (12 - i) * 8 * (int64_t)KIB,
		    error(8.0 * KIB), .thread = "worker");
	}
	for (int i = 0; i < 14; i++)
		ADD(STACK(construct, frame("parse", "/src/parse.cc", 10 + i), handle), 100000,
		    100 * (int64_t)MIB, 0, 0, 0, .thread = "worker");
}

static void fill_scopes(void)
{
	static const char *const paths[] = {
		"Server",      "Server/Query", "Server/Query/Sort", "Server/Query/Hash",
		"Server/conn", "Cache",	       "Cache/Pages",	    "Log"
	};
	char name[64];

	begin("dbserver", "/usr/local/bin/dbserver", 64 * KIB);
	for (int i = 0; i < 48; i++) {
		struct made m = { { frame("run_query", "/src/query.cc", 100 + i) },
				  100,
				  (60 - i) * 2 * (int64_t)MIB,
				  90 - i,
				  (60 - i) * 64 * (int64_t)KIB,
				  error((60 - i) * 16.0 * KIB),
				  "worker-1",
				  paths[i % 8],
				  NULL };

		snprintf(name, sizeof(name), "Server/Query/Step%d", i);
		if (i >= 24)
			m.scope = name;
		if (i % 3)
			m.tenant = i % 5 ? "acme" :
				   i % 7 ? "umbrella-corporation-europe" :
					   "initech";
		add(&m);
	}
	ADD(STACK(frame("main", "/src/main.cc", 3)), 5, 5 * KIB, 5, 5 * KIB, error(KIB),
	    .thread = "dbserver");
	assert_int_equal(made_note(p, "scope_peak: bytes=99000000 time=2026-11-24T03:25:20.500Z "
				      "scope=Server"),
			 0);
	assert_int_equal(made_note(p, "scope_peak: bytes=30000000 time=2026-11-24T03:25:10.500Z "
				      "scope=Cache"),
			 0);
}

/* As when only allocations are watched: the in-use values are 0. */
static void fill_unknown(void)
{
	uint32_t create, command;

	begin("redis-server", "/usr/bin/redis-server", 64 * KIB);
	p->recording.pid = 6426;
	p->recording.duration_ns = 10 * S;
	p->recording.watched_ns = 10 * S;
	p->recording.overhead_share = 0.2;
	p->recording.full_share = 0.53;
	p->recording.inuse = RECORDING_INUSE_UNKNOWN;
	command = frame("processCommand", "server.c", 4100);
	for (int i = 0; i < 15; i++) {
		create = frame("createStringObject", "object.c", 100 + i);
		ADD(STACK(frame("zmalloc", "zmalloc.c", 130), create, command), 1000 * (15 - i),
		    (15 - i) * 20 * (int64_t)MIB, 0, 0, 0, .thread = "redis-server");
	}
}

/* Started by heaptap with --rate 1. */
static void fill_exact(void)
{
	uint32_t loop, make;

	begin("small", "/tmp/small", 1);
	p->recording.is_from_start = true;
	p->recording.duration_ns = p->recording.watched_ns = 350000000;
	p->recording.overhead_share = 0.0004;
	p->recording.rss_begin_bytes = p->recording.rss_end_bytes = 0;
	loop = frame("main", "small.c", 30);
	make = frame("make_list", "small.c", 12);
	ADD(STACK(frame_in(libc, "strdup", "strdup.c", 42), make, loop), 300, 4800, 100, 1600, 0,
	    .thread = "small");
	ADD(STACK(make, loop), 100, 2400, 100, 2400, 0, .thread = "small");
	ADD(STACK(frame("read_file", "small.c", 20), loop), 1, 4096, 0, 0, 0, .thread = "small");
}

static void fill_kept(void)
{
	fill_server();
	p->recording.reason_str = profile_str(p, "out of memory");
	p->recording.inuse = RECORDING_INUSE_SINCE;
	p->recording.inuse_since_ns = NOW_NS - 12 * S;
	p->recording.watched_ns = 16 * S;
	p->recording.is_lossy = true;
	assert_int_equal(profile_comment(p, "counters: samples=123456 frees=120000"), 0);
	assert_int_equal(profile_comment(p, "ledger: scratch_busy 0 (samples lost: no scratch "
					    "space free)"),
			 0);
	assert_int_equal(profile_comment(p, "ledger: live_full 15 (samples not tracked: live map "
					    "full)"),
			 0);
	assert_int_equal(profile_comment(p, "ledger: missed_frees 2 (blocks at an address that "
					    "was allocated again)"),
			 0);
}

static size_t width_of(const char *line)
{
	size_t n = 0;

	for (; *line; line++)
		n += ((unsigned char)*line & 0xc0) != 0x80;
	return n;
}

static void check_size(const char *text, size_t columns, size_t line_cap)
{
	char *copy = strdup(text), *rest = copy, *line;
	size_t lines = 0;

	assert_non_null(copy);
	while ((line = strsep(&rest, "\n"))) {
		if (width_of(line) > columns)
			fail_msg("%zu columns, not %zu:\n%s", width_of(line), columns, text);
		lines += *line || rest;
	}
	free(copy);
	if (lines > line_cap)
		fail_msg("%zu lines at %zu columns:\n%s", lines, columns, text);
}

static const struct {
	void (*fill)(void);
	const char *expected;
	bool is_new;
} kinds[] = {
	{ fill_server, "server.text", true },	{ fill_scopes, "scopes.text", true },
	{ fill_unknown, "unknown.text", true }, { fill_exact, "exact.text", true },
	{ fill_kept, "kept.text", false },
};

/* As `record` and `report` ask for it. */
static struct report_options first_screen(size_t columns, bool is_new)
{
	return (struct report_options){
		.by_is_default = true,
		.row_cap = REPORT_ROWS,
		.lines = REPORT_SCREEN_LINES,
		.columns = columns,
		.path = "server-14662-20261124-032524.pb.gz",
		.is_new = is_new,
	};
}

TEST(first_screens_are_what_they_were)
{
	each_case(c, kinds) {
		struct report_options o = first_screen(80, c->is_new);
		char path[256], *text;

		c->fill();
		text = report_text(p, &o);
		check_size(text, 80, 24);
		snprintf(path, sizeof(path), FOLDER "%s", c->expected);
		golden_compare(path, text);
	}
}

/* Whatever is asked for, in pages of any width that is taken. The path is the only word that is never cut. */
TEST(every_screen_fits)
{
	static const size_t columns[] = { 72, 80, 100, 133, 200 };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds) * 8 * 5 * 2; i++) {
		struct report_options o = first_screen(columns[i / 40 % 5], true);
		char *text;

		kinds[i % 5].fill();
		o.by = i / 5 % 8;
		o.by_is_default = false;
		o.label_key = "tenant";
		o.row_cap = o.by == REPORT_BY_STACK ? REPORT_ROWS : 40;
		o.path = "p.pb.gz";
		if (i / 200)
			o.sort = REPORT_SORT_ALLOC;
		text = report_text(p, &o);
		check_size(text, o.columns, o.columns < 80 ? 30 : 24);
	}
}

RUN_TESTS()
