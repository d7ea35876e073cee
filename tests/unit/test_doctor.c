/* SPDX-License-Identifier: MIT */
/* test_doctor.c - which verdict and which findings follow from which facts. */
#include "unit.h"

#include <linux/capability.h>

#include "base/err.h"
#include "cmd/doctor.h"
#include "alloc/allocators.h"

static const struct alloc_row malloc_row = { .name = "malloc" }, free_row = { .name = "free" };

/* A machine that can do everything, and a process of two files, one with an allocator. */
static struct doctor_report *new_report(void)
{
	struct doctor_report *r = calloc(1, sizeof(*r));
	struct survey_file exe = { .row_cnt = 10,
				   .symbol_cnt = 5,
				   .has_symtab = true,
				   .has_code = true,
				   .debug = SURVEY_DEBUG_OWN };
	struct survey_file libc = exe;
	struct alloc_site alloc = { .row = &malloc_row,
				    .symbol = "malloc",
				    .needs_return = true,
				    .placement = { .is_emulated = true, .insn = "push %r12" } };
	struct alloc_site release = { .row = &free_row,
				      .symbol = "free",
				      .placement = { .is_emulated = true, .insn = "push %rbp" } };

	assert_non_null(r);
	r->features = (struct kernel_features){ .btf = true,
						.bpf = true,
						.perf_uprobe = true,
						.uprobe_multi = true,
						.uprobe_session = true,
						.find_vma = true,
						.shared_events = true,
						.ringbuf = true };
	r->has_mode = r->has_costs = true;
	r->mode = ATTACH_SESSION;
	r->costs = (struct probe_costs){ 500, 3000, 200 };
	r->privileges.capabilities = UINT64_MAX;
	snprintf(r->uts.release, sizeof(r->uts.release), "6.18.0");
	r->has_info = true;
	r->pid = 42;
	r->info.pid = r->info.tgid = 42;
	snprintf(r->info.exe, sizeof(r->info.exe), "/srv/app");
	r->survey = calloc(1, sizeof(*r->survey));
	assert_non_null(r->survey);
	exe.path = strdup("/srv/app");
	libc.path = strdup("/lib/libc.so.6");
	libc.alloc = calloc(1, sizeof(*libc.alloc));
	assert_non_null(libc.alloc);
	libc.alloc->family = "glibc";
	libc.is_probed = calloc(2, sizeof(bool));
	assert_int_equal(vec_push(&libc.alloc->sites, alloc), 0);
	assert_int_equal(vec_push(&libc.alloc->sites, release), 0);
	assert_int_equal(vec_push(&r->survey->files, exe), 0);
	assert_int_equal(vec_push(&r->survey->files, libc), 0);
	return r;
}

static void free_report(struct doctor_report *r)
{
	survey_free(r->survey);
	vec_release(&r->findings);
	free(r);
}

static struct survey_file *exe_of(struct doctor_report *r)
{
	return &r->survey->files.data[0];
}

static struct survey_file *libc_of(struct doctor_report *r)
{
	return &r->survey->files.data[1];
}

/* What a case changes of that. */
#define CHANGE(name, ...)                         \
	static void name(struct doctor_report *r) \
	{                                         \
		__VA_ARGS__;                      \
	}
CHANGE(nothing, (void)r)

static void no_bpf(struct doctor_report *r)
{
	r->features.bpf = false;
	err_set(&r->features.why, -EPERM, "no permission to load BPF programs");
}

static void no_session(struct doctor_report *r)
{
	r->features.uprobe_session = false;
	r->mode = ATTACH_MULTI;
}

static void blind_multi(struct doctor_report *r)
{
	r->features.uprobe_session = r->features.uprobe_multi = false;
	r->features.has_blind_multi = true;
	r->mode = ATTACH_PERF;
}

static void few_capabilities(struct doctor_report *r)
{
	r->privileges.capabilities = 1ULL << CAP_BPF | 1ULL << CAP_PERFMON;
	privileges_suffice(&r->privileges, r->missing_capabilities,
			   sizeof(r->missing_capabilities));
}

CHANGE(locked_down,
       snprintf(r->privileges.lockdown, sizeof(r->privileges.lockdown), "confidentiality"))

static void refused(struct doctor_report *r)
{
	r->process_err = -3;
	err_set(&r->process_why, -EINVAL, "process 42 is a zombie");
}

static void drop_allocator(struct doctor_report *r)
{
	alloc_file_free(libc_of(r)->alloc);
	libc_of(r)->alloc = NULL;
}

static void stripped_static(struct doctor_report *r)
{
	drop_allocator(r);
	exe_of(r)->is_static = true;
	exe_of(r)->symbol_cnt = 0;
}

static void go_only(struct doctor_report *r)
{
	drop_allocator(r);
	exe_of(r)->is_go = true;
}

CHANGE(cgo, exe_of(r)->is_go = true)

static void cpython(struct doctor_report *r)
{
	r->heap.runtime = RUNTIME_PYTHON;
	runtime_words_heap(RUNTIME_PYTHON, NULL, 0, &r->heap.own);
}

CHANGE(cpython_with_malloc, r->heap.runtime = RUNTIME_PYTHON) /* told to use malloc: no words */
CHANGE(stepped, libc_of(r)->alloc->sites.data[1].placement.is_emulated = false)

static void probed(struct doctor_report *r)
{
	libc_of(r)->is_probed[0] = true;
	libc_of(r)->probed_cnt = 1;
}

CHANGE(no_rows, exe_of(r)->row_cnt = 0)

static void no_code(struct doctor_report *r)
{
	exe_of(r)->row_cnt = 0;
	exe_of(r)->has_code = false;
}

CHANGE(unreadable, exe_of(r)->open_err = -13)
CHANGE(stripped, exe_of(r)->has_symtab = false)
CHANGE(no_lines, exe_of(r)->debug = SURVEY_DEBUG_NONE)

static void jit(struct doctor_report *r)
{
	r->survey->jit_area_cnt = 2;
	r->survey->jit_bytes = 8192;
	r->survey->runtime.has_jit = true;
}

static void java(struct doctor_report *r)
{
	jit(r);
	r->survey->runtime.kind = RUNTIME_JAVA;
}

static void java_with_stacks(struct doctor_report *r)
{
	java(r);
	r->survey->runtime.was_told = true;
}

static void java_with_map(struct doctor_report *r)
{
	java_with_stacks(r);
	r->survey->runtime.has_names = true;
}

static void node(struct doctor_report *r)
{
	jit(r);
	r->survey->runtime.kind = RUNTIME_NODE;
}

static void node_with_map(struct doctor_report *r)
{
	node(r);
	r->survey->runtime.has_names = true;
}

CHANGE(python, r->survey->runtime.kind = RUNTIME_PYTHON)

static void luajit(struct doctor_report *r)
{
	jit(r);
	r->survey->runtime.kind = RUNTIME_LUAJIT;
}

static void seccomp_kills(struct doctor_report *r)
{
	r->info.seccomp = 2;
	r->seccomp_kills_returns = true;
}

CHANGE(seccomp_harmless, r->info.seccomp = 2)

static struct survey_tag *add_tag(struct doctor_report *r, uint32_t kind)
{
	struct survey_tags *tags = &exe_of(r)->tags;
	struct survey_tag tag = { .kind = kind, .tls_mode = HT_TLS_STATIC, .tls_off = -32 };

	if (kind == HT_TAG_SCOPE) {
		tag.has_descriptor = true;
		tag.descriptor.node_cnt = 3;
	}
	assert_int_equal(vec_push(&tags->all, tag), 0);
	return &tags->all.data[tags->all.cnt - 1];
}

CHANGE(tagged, add_tag(r, HT_TAG_SCOPE))

static void put_problem(struct survey_tag *tag, const char *problem)
{
	err_set(&tag->problem, 0, "%s", problem);
	tag->has_descriptor = false;
	tag->tls_mode = HT_TLS_NOT_READY;
}

CHANGE(tags_of_other_version,
       put_problem(add_tag(r, HT_TAG_SCOPE), "it has version 2.0 of the scope ABI"))
CHANGE(foreign_tags_of_other_version,
       put_problem(add_tag(r, HT_TAG_CUSTOM), "its custom labels are not of version 1"))
CHANGE(paused_by_itself, add_tag(r, HT_TAG_SCOPE)->descriptor.flags = HT_TAG_PAUSES_ALL)

/* A descriptor that is not ready says nothing, as in a recording. */
static void paused_before_ready(struct doctor_report *r)
{
	paused_by_itself(r);
	exe_of(r)->tags.all.data[0].tls_mode = HT_TLS_NOT_READY;
}

static void as_many_tags_as_are_read(struct doctor_report *r)
{
	int i;

	for (i = 0; i < HT_TAG_SOURCES_CAP; i++)
		add_tag(r, HT_TAG_SCOPE);
}

static void too_many_tags(struct doctor_report *r)
{
	as_many_tags_as_are_read(r);
	add_tag(r, HT_TAG_OTEL);
}

static void key_names_of_other_version(struct doctor_report *r)
{
	add_tag(r, HT_TAG_OTEL);
	r->survey->otel_keys_err = -EPROTO;
}

static void two_things(struct doctor_report *r)
{
	no_lines(r); /* a note */
	jit(r); /* a limit: comes first */
}

TEST(test_findings)
{
	static const struct {
		const char *name;
		void (*change)(struct doctor_report *r);
		enum doctor_level verdict;
		const char *what, *advice; /* parts of the first finding; NULL = there is none */
	} cases[] = {
		{ "all well", nothing, DOCTOR_NOTE, NULL, NULL },
		{ "no bpf", no_bpf, DOCTOR_BLOCK, "no permission to load", "" },
		{ "no session", no_session, DOCTOR_NOTE,
		  "costs more on this kernel: there are no uprobe sessions", "" },
		{ "multi of one thread", blind_multi, DOCTOR_NOTE,
		  "sees only one thread of a process", "" },
		{ "capabilities", few_capabilities, DOCTOR_LIMIT,
		  "missing capabilities: CAP_SYS_PTRACE", "root" },
		{ "lockdown", locked_down, DOCTOR_BLOCK, "locked down", "lockdown=integrity" },
		{ "refused", refused, DOCTOR_BLOCK, "zombie", "" },
		{ "no allocator", drop_allocator, DOCTOR_BLOCK,
		  "no known allocator found in its 2 mapped files", "mmap" },
		{ "stripped static", stripped_static, DOCTOR_BLOCK, "no known allocator",
		  "static and stripped" },
		{ "Go", go_only, DOCTOR_BLOCK,
		  "a Go program, whose heap is not malloc's; no known allocator",
		  "go tool pprof http://HOST:PORT/debug/pprof/heap" },
		{ "cgo", cgo, DOCTOR_LIMIT, "only memory that C code allocates", "runtime/pprof" },
		{ "CPython", cpython, DOCTOR_LIMIT, "small objects (up to 512 bytes)",
		  "PYTHONMALLOC=malloc" },
		{ "CPython with malloc", cpython_with_malloc, DOCTOR_NOTE, NULL, NULL },
		{ "stepped", stepped, DOCTOR_LIMIT,
		  "1 of 2 probes in /lib/libc.so.6 are single-stepped", "nothing is missing" },
		{ "probed", probed, DOCTOR_NOTE, "are in /lib/libc.so.6: malloc", "debugger" },
		{ "no rows", no_rows, DOCTOR_LIMIT, "no frame pointers either: /srv/app",
		  "-fno-omit-frame-pointer" },
		{ "data only", no_code, DOCTOR_NOTE, NULL, NULL },
		{ "unreadable", unreadable, DOCTOR_LIMIT, "are not seen: /srv/app", "root" },
		{ "stripped", stripped, DOCTOR_NOTE, "only exported functions have names",
		  "dbgsym" },
		{ "no lines", no_lines, DOCTOR_NOTE, "no source lines: /srv/app", "-g" },
		{ "jit", jit, DOCTOR_LIMIT, "built without frame pointers",
		  "totals are not affected" },
		{ "Java", java, DOCTOR_LIMIT, "stacks end in compiled Java code",
		  "start it with -XX:+PreserveFramePointer" },
		{ "Java with frame pointers", java_with_stacks, DOCTOR_NOTE,
		  "Java's functions have no names yet", "record --jvm-perfmap" },
		{ "Java with a map", java_with_map, DOCTOR_NOTE, NULL, NULL },
		{ "Node", node, DOCTOR_NOTE, "JavaScript's functions have no names",
		  "--perf-basic-prof --interpreted-frames-native-stack" },
		{ "Node, names of compiled functions", node_with_map, DOCTOR_NOTE,
		  "no names until they are compiled", "--interpreted-frames-native-stack as well" },
		{ "Python", python, DOCTOR_NOTE, "the interpreter's functions, not Python's",
		  "-X perf or PYTHONPERFSUPPORT=1 (Python 3.12 or later)" },
		{ "LuaJIT", luajit, DOCTOR_LIMIT, "stacks end in compiled Lua code",
		  "no option helps" },
		{ "seccomp, a kernel that kills", seccomp_kills, DOCTOR_BLOCK, "seccomp", "6.14" },
		{ "seccomp, any other kernel", seccomp_harmless, DOCTOR_NOTE, NULL, NULL },
		{ "scopes", tagged, DOCTOR_NOTE, NULL, NULL },
		{ "scopes of another version", tags_of_other_version, DOCTOR_LIMIT,
		  "the tags of /srv/app are left out: it has version 2.0", "newer heaptap" },
		{ "labels of another version", foreign_tags_of_other_version, DOCTOR_LIMIT,
		  "left out: its custom labels", "the rest is recorded" },
		{ "paused", paused_by_itself, DOCTOR_LIMIT, "/srv/app has paused the recording",
		  "heaptap_unpause_all" },
		{ "paused, not ready", paused_before_ready, DOCTOR_NOTE, NULL, NULL },
		{ "8 places for tags", as_many_tags_as_are_read, DOCTOR_NOTE, NULL, NULL },
		{ "9 places for tags", too_many_tags, DOCTOR_LIMIT,
		  "have 9 sources of tags, and heaptap reads 8", "" },
		{ "key names of another version", key_names_of_other_version, DOCTOR_LIMIT,
		  "OpenTelemetry's process context", "" },
		{ "gravest first", two_things, DOCTOR_LIMIT, "frame pointers", "" },
	};

	each_case(c, cases) {
		struct doctor_report *r = new_report();
		const struct doctor_finding *f;

		c->change(r);
		assert_int_equal(doctor_find(r), 0);
		f = r->findings.data;
		if (r->verdict != c->verdict)
			fail_msg("%s: verdict %d", c->name, r->verdict);
		if (!c->what && r->findings.cnt)
			fail_msg("%s: found \"%s\"", c->name, f->what);
		if (c->what && (!f || !strstr(f->what, c->what) || !strstr(f->advice, c->advice)))
			fail_msg("%s: found \"%s\" -> \"%s\"", c->name, f ? f->what : "",
				 f ? f->advice : "");
		free_report(r);
	}
}

TEST(test_many_names_are_cut)
{
	struct doctor_report *r = new_report();
	char path[200];
	int i;

	for (i = 0; i < 100; i++) {
		struct survey_file file = { .has_code = true };

		snprintf(path, sizeof(path), "/lib/%0150d.so", i);
		file.path = strdup(path);
		assert_int_equal(vec_push(&r->survey->files, file), 0);
	}
	assert_int_equal(doctor_find(r), 0);
	assert_int_equal(doctor_cnt(r, DOCTOR_LIMIT), 1);
	assert_true(strlen(r->findings.data[0].what) < sizeof(r->findings.data[0].what));
	free_report(r);
}

TEST(test_costs)
{
	struct doctor_report *r = new_report();
	const struct alloc_file *af = libc_of(r)->alloc;

	assert_true(doctor_pair_ns(r, af) == 1000); /* a session's return is not always armed */
	r->mode = ATTACH_MULTI;
	assert_true(doctor_pair_ns(r, af) == 1200);
	stepped(r);
	assert_true(doctor_pair_ns(r, af) == 700 + 3000);
	r->has_costs = false;
	assert_true(doctor_pair_ns(r, af) == 0);
	free_report(r);
}

/* What is found of it, as a text and in JSON. */
struct printouts {
	char *text, *json;
};

static struct printouts find_and_print(struct doctor_report *r)
{
	assert_int_equal(doctor_find(r), 0);
	return (struct printouts){ printed(out, doctor_print_text(r, out)),
				   printed(out, doctor_print_json(r, out)) };
}

TEST(test_printed)
{
	static const struct {
		void (*change)(struct doctor_report *r);
		const char *first_line, *json;
	} cases[] = {
		{ nothing,
		  "heaptap can record this process: yes\n"
		  "  recorded  allocations of glibc (/lib/libc.so.6) from the attach on; ",
		  "{\"can_record\":\"yes\"" },
		{ stepped, "heaptap can record this process: with limits (1)\n",
		  "{\"can_record\":\"limits\"" },
		{ refused, "Cannot record this process: process 42 is a zombie\n",
		  "{\"can_record\":\"no\"" },
	};

	each_case(c, cases) {
		struct doctor_report *r = new_report();
		struct printouts t;

		c->change(r);
		snprintf(r->info.comm, sizeof(r->info.comm), "a\"\\\x01\xff");
		t = find_and_print(r);
		assert_int_equal(strncmp(t.text, c->first_line, strlen(c->first_line)), 0);
		assert_int_equal(strncmp(t.json, c->json, strlen(c->json)), 0);
		/* the name, as JSON and UTF-8 want it */
		assert_says(t.json, "\"comm\":\"a\\\"\\\\\\u0001\xef\xbf\xbd\"");
		free_report(r);
	}
}

/* A path that commands the terminal, in the short text and in the long one. */
TEST(test_names_are_harmless)
{
	for (int verbose = 0; verbose < 2; verbose++) {
		struct doctor_report *r = new_report();
		char **path = &r->survey->files.data[0].path;
		struct printouts t;

		r->is_verbose = verbose;
		free(*path);
		*path = strdup("/lib/a\x1b[2J\xc2\x9b\n");
		snprintf(r->info.exe, sizeof(r->info.exe), "%s", *path);
		t = find_and_print(r);
		assert_says(t.text, "/lib/a?[2J??");
		assert_null(strpbrk(t.text, "\x1b\x9b"));
		assert_says(t.json, "\"/lib/a\\u001b[2J\\u009b\\u000a\"");
		free_report(r);
	}
}

static void many_counters(struct doctor_report *r)
{
	struct scope_descriptor *d = &add_tag(r, HT_TAG_SCOPE)->descriptor;

	d->node_cnt = 262144;
	d->overflows = d->underflows = d->truncations = UINT32_MAX;
	d->flags = HT_TAG_PAUSES_ALL;
}

static void foreign_tags(struct doctor_report *r)
{
	struct survey_tag *tag;

	add_tag(r, HT_TAG_OTEL)->tls_mode = HT_TLS_NOT_READY;
	tag = add_tag(r, HT_TAG_CUSTOM);
	tag->tls_mode = HT_TLS_DTV;
	tag->tls_module = 3;
	tag->tls_off = 16;
	r->survey->otel_key_cnt = 1;
}

static void registry(struct doctor_report *r)
{
	struct survey_tag *tag = add_tag(r, HT_TAG_SCOPE);

	tag->tls_mode = HT_TLS_REGISTRY;
	tag->descriptor.minor = 7;
	tag->descriptor.node_cnt = 2;
	tag->descriptor.truncations = 1;
}

TEST(test_tags_printed)
{
	static const struct {
		void (*change)(struct doctor_report *r);
		const char *text, *json;
	} cases[] = {
		{ nothing,
		  "\n  tags         none: include heaptap/scope.h to see what the memory is ",
		  "\"tags\":[]" },
		{ tagged,
		  "\nTags\n"
		  "  file      format       found by    says\n"
		  "  /srv/app  scope.h 1.0  static TLS  2 nodes\n\n",
		  "\"tags\":[{\"format\":\"scope.h\",\"problem\":\"\",\"found_by\":\"static\","
		  "\"tls_offset\":-32,\"tls_module\":null,\"abi\":\"1.0\",\"nodes\":2,"
		  "\"overflows\":0,\"underflows\":0,\"truncations\":0,\"paused\":false}]" },
		{ registry, "\n  /srv/app  scope.h 1.7  registry  1 node, 1 truncation\n\n",
		  "\"found_by\":\"registry\",\"tls_offset\":null" },
		{ tags_of_other_version, "\n  /srv/app  scope.h  left out  see above\n\n",
		  "\"found_by\":null,\"tls_offset\":null,\"tls_module\":null,\"abi\":null,"
		  "\"nodes\":null," },
		{ foreign_tags,
		  "\n  /srv/app  OpenTelemetry  not ready  1 key name"
		  "\n  /srv/app  custom labels  DTV\n\n",
		  "{\"format\":\"custom_labels\",\"problem\":\"\",\"found_by\":\"dtv\","
		  "\"tls_offset\":16,\"tls_module\":3}]" },
		{ key_names_of_other_version,
		  "\n  /srv/app  OpenTelemetry  static TLS  key names not readable\n",
		  "\"otel_key_names\":null" },
		{ many_counters, "paused, 262143 nodes, 4294967295 overflows, ",
		  "\"overflows\":4294967295," },
	};

	each_case(c, cases) {
		struct doctor_report *r = new_report();
		char *line, *next;
		struct printouts t;

		c->change(r);
		r->is_verbose = true;
		t = find_and_print(r);
		assert_says(t.text, c->text);
		assert_says(t.json, c->json);
		line = strstr(t.text, "\nTags\n");
		for (line = line ? line + 1 : "\n"; *line != '\n'; line = next + 1) {
			next = strchr(line, '\n');
			if (next - line > 100)
				fail_msg("wider than 100 columns: %.*s", (int)(next - line), line);
		}
		free_report(r);
	}
}

static void old_kernel(struct doctor_report *r)
{
	no_session(r);
	r->features.find_vma = r->features.shared_events = false;
	r->cpu_cnt = 2;
}

static void no_rights(struct doctor_report *r)
{
	struct kernel_features none = { .btf = true };

	r->features = none;
	no_bpf(r);
	r->privileges.capabilities = 0;
	privileges_suffice(&r->privileges, r->missing_capabilities,
			   sizeof(r->missing_capabilities));
}

static void no_process(struct doctor_report *r)
{
	survey_free(r->survey);
	r->survey = NULL;
	r->pid = 0;
	r->has_info = false;
}

/* What everybody sees: the answer, then some lines of facts, and rows only of what is missing. */
TEST(test_short_text)
{
	static const struct {
		void (*change)(struct doctor_report *r);
		const char *text, *not ; /* in it, not in it */
	} cases[] = {
		{ nothing, "\n  command   heaptap record -p 42 -d 30s\n", "uprobe_" },
		{ nothing, "\n  cost      about 1 us (glibc) for a malloc and a free that ",
		  "CAP_" },
		{ nothing, "\n  kernel       Linux 6.18.0, , 0 CPUs, all features\n",
		  "\nAllocator" },
		{ nothing, "\n  tags         none: include heaptap/scope.h ", "\nTags" },
		{ nothing, "\n  stacks       2 files with code: 2 with unwind tables, 2 with all ",
		  "\nStacks" },
		{ old_kernel, ", 3 features missing: see below\n", "uprobe_multi" },
		{ old_kernel,
		  "\nKernel features\n"
		  "  feature         here  since  without it\n"
		  "  uprobe_session  NO    6.13   recording costs more: every allocation pays for a "
		  "return probe\n"
		  "  find_vma        NO    5.17   stacks through a library that was just loaded are "
		  "cut\n"
		  "  shared_events   NO    4.17   ",
		  "attached by" },
		/* what could not be tried is not said to be missing */
		{ no_rights, ", its features cannot be tested\n  ", "Kernel features" },
		{ no_rights, "\n  CAP_BPF                 NO    ", "ringbuf" },
		{ no_bpf, ", its features cannot be tested\n", "ringbuf" },
		{ no_bpf, "\n  bpf      NO           nothing can be", "ringbuf" },
		{ tagged, "\n  /srv/app  scope.h 1.0  static TLS  2 nodes\n", "none: include" },
		{ few_capabilities, "uid 0, some are missing: see below\n", "uprobe_" },
		{ few_capabilities, "\n  CAP_SYS_PTRACE          NO    ", "\n  CAP_BPF" },
		{ refused, "process: process 42 is a zombie\n\nProcess 42", "heaptap record -p" },
		{ go_only, "mapped files\n    -> use its own pprof: go tool pprof", "Besides" },
		{ no_process, "\n  a process  heaptap doctor -p PID", "heaptap record" },
	};
	static const int columns[] = { 0, 80, 100 };
	size_t j;

	each_case(c, cases) {
		for (j = 0; j < 3; j++) {
			struct doctor_report *r = new_report();
			size_t most = columns[j] ? (size_t)columns[j] : 100;
			struct printouts t;

			c->change(r);
			r->columns = columns[j];
			t = find_and_print(r);
			if (most == 100)
				assert_says(t.text, c->text);
			assert_omits(t.text, c->not );
			for (char *at = t.text; *at; at += strcspn(at, "\n") + 1)
				if (strcspn(at, "\n") > most)
					fail_msg("wider than %zu columns:\n%s", most, at);
			free_report(r);
		}
	}
}

/* All of it is there when it is asked for. */
TEST(test_verbose_text)
{
	static const char *const wanted[] = {
		"\n  malloc ",
		"\nStacks\n  file",
		"\n  uprobe_session  yes ",
		"\n  CAP_BPF                ",
		"\nWays to attach",
		"\n  attached by  session\n",
	};
	struct doctor_report *r = new_report();
	struct printouts t;

	r->is_verbose = true;
	r->columns = 80;
	jit(r);
	t = find_and_print(r);
	each_case(c, wanted)
		assert_says(t.text, *c);
	for (char *at = t.text; *at; at += strcspn(at, "\n") + 1)
		if (strcspn(at, "\n") > 80)
			fail_msg("wider than 80 columns:\n%s", at);
	assert_says(t.text, "(no file: JIT)");
	assert_omits(t.text, "perf map"); /* there is none */
	free_report(r);
}

TEST(test_capabilities)
{
	static const struct {
		uint64_t caps;
		const char *missing;
	} cases[] = {
		{ UINT64_MAX, "" },
		{ 0, "CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE" },
		{ 1ULL << CAP_SYS_ADMIN, "CAP_SYS_PTRACE" },
		{ 1ULL << CAP_BPF | 1ULL << CAP_PERFMON | 1ULL << CAP_SYS_PTRACE, "" },
		{ 1ULL << CAP_BPF, "CAP_PERFMON, CAP_SYS_PTRACE" },
	};

	each_case(c, cases) {
		struct privileges p = { .capabilities = c->caps };
		char missing[128];

		assert_int_equal(privileges_suffice(&p, missing, sizeof(missing)), !c->missing[0]);
		assert_string_equal(missing, c->missing);
	}
}

RUN_TESTS()
