/* SPDX-License-Identifier: MIT */
/*
 * test_tag_sources.c - thread-local pointers of running programs: every TLS model, linked and
 * dlopened, glibc and musl. A program says where its variable is in two of its threads; what was
 * found, followed as the BPF side follows it, must lead there.
 */
#include <poll.h>

#include "child.h"
#include "symbol_programs.h"
#include "proc/process.h"
#include "proc/tag_sources.h"

#ifdef __x86_64__
#define TCB_DTV_OFF 8
#else
#define TCB_DTV_OFF 0
#endif

/* The variable; with OTHER the file itself uses only another one. */
static const char variable_c[] =
	"#include <stdint.h>\n"
	"__thread char space[33] = { 1 };\n"
	"__thread long other;\n"
	"__thread void *otel_thread_ctx_v1;\n"
	"__thread void *custom_labels_current_set;\n"
	"#ifdef ABI\n"
	"uint32_t custom_labels_abi_version = ABI;\n"
	"#endif\n"
	"#ifdef OTHER\n"
	"long *use(void) { return &other; }\n"
	"#else\n"
	"void **where(int i)\n"
	"{ return i ? &custom_labels_current_set : &otel_thread_ctx_v1; }\n"
	"#endif\n";

static const char main_c[] =
	"#include <dlfcn.h>\n"
	"#include <pthread.h>\n"
	"#include <stdio.h>\n"
	"#include <unistd.h>\n"
	"#ifdef OTHER\n"
	"extern __thread void *otel_thread_ctx_v1, *custom_labels_current_set;\n"
	"static void **where(int i)\n"
	"{ return i ? &custom_labels_current_set : &otel_thread_ctx_v1; }\n"
	"#elif defined(DLOPEN)\n"
	"static void **(*where)(int);\n"
	"#else\n"
	"void **where(int i);\n"
	"#endif\n"
	"__thread char mine[100] = { 1 };\n"
	"static void say(void)\n"
	"{\n"
	"	void *tp;\n"
	"#ifdef __x86_64__\n"
	"	__asm__(\"mov %%fs:0, %0\" : \"=r\"(tp));\n"
	"#else\n"
	"	__asm__(\"mrs %0, tpidr_el0\" : \"=r\"(tp));\n"
	"#endif\n"
	"	mine[1] = 2;\n"
	"	printf(\"%p %p %p\\n\", tp, (void *)where(0), (void *)where(1));\n"
	"	fflush(stdout);\n"
	"}\n"
	"static void *thread(void *arg) { say(); pause(); return arg; }\n"
	"int main(void)\n"
	"{\n"
	"	pthread_t t;\n"
	"	alarm(30);\n"
	"#ifdef DLOPEN\n"
	"	void *l = dlopen(\"./l.so\", RTLD_NOW);\n"
	"	if (!l || !(where = (void **(*)(int))dlsym(l, \"where\"))) return 1;\n"
	"#endif\n"
	"	say();\n"
	"	pthread_create(&t, NULL, thread, NULL);\n"
	"	pthread_join(t, NULL);\n"
	"}\n";

struct running {
	pid_t pid;
	uint64_t tp[2], addr[2][2]; /* by thread; by variable */
};

static bool start(const char *dir, struct running *ret)
{
	int fds[2], i;
	FILE *f;

	assert_int_equal(pipe(fds), 0);
	ret->pid = fork();
	assert_true(ret->pid >= 0);
	if (!ret->pid) {
		if (chdir(dir))
			_exit(1);
		dup2(fds[1], 1);
		execl("./m", "./m", NULL);
		_exit(1);
	}
	close(fds[1]);
	f = fdopen(fds[0], "r");
	for (i = 0; i < 2; i++)
		if (fscanf(f, "%lx %lx %lx", &ret->tp[i], &ret->addr[i][0], &ret->addr[i][1]) != 3)
			break;
	fclose(f);
	return i == 2;
}

/* The variable of a thread, as the reader finds it. 0: it does not. */
static uint64_t follow(pid_t pid, const struct ht_tag_source *s, uint64_t tp)
{
	uint64_t dtv, block;

	if (s->tls_mode == HT_TLS_STATIC)
		return tp + (uint64_t)s->tls_off;
	assert_int_equal(s->tls_mode, HT_TLS_DTV);
	if (process_memory_read(NULL, pid, tp + TCB_DTV_OFF, &dtv, 8) ||
	    process_memory_read(NULL, pid, dtv + (s->tls_module << s->dtv_shift), &block, 8))
		return 0;
	return block + (uint64_t)s->tls_off;
}

/* The file that has the variables, as mapped by the process. */
static void find_file(const struct proc_maps *maps, const char *dir, const char *name,
		      struct tag_file *ret, uint64_t *ret_bias)
{
	const struct proc_map *m;
	struct elf_file *ef;
	char path[300];
	uint64_t vaddr;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(elf_file_open_fd(fd, &ef), 0);
	close(fd);
	assert_int_equal(tag_file_scan(ef, ret), 0);
	vec_each(&maps->maps, m) {
		if (!m->is_exec || strcmp(m->path, path) || elf_file_code_vaddr(ef, m->off, &vaddr))
			continue;
		*ret_bias = m->start_addr - vaddr;
		elf_file_close(ef);
		return;
	}
	fail_msg("%s is not mapped", path);
}

/* 1: right, 0: wrong. */
static int check_running(const char *dir, const char *name, struct running *r, uint32_t dtv_shift,
			 uint32_t *ret_mode)
{
	struct proc_maps maps = { 0 };
	struct tag_sources sources;
	struct tag_file file = { 0 };
	uint64_t bias = 0;
	uint32_t i, t;

	assert_int_equal(proc_maps_read(NULL, r->pid, 0, &maps), 0);
	find_file(&maps, dir, name, &file, &bias);
	assert_true(file.has_otel && file.has_custom);
	assert_string_equal(file.problem, "");
	if (strcmp(name, "m"))
		assert_int_equal(tag_dtv_shift(&maps), dtv_shift);
	proc_maps_release(&maps);
	assert_int_equal(tag_sources_read(NULL, r->pid, &file, bias, dtv_shift, &sources), 0);
	if (sources.is_pending || sources.cnt != 2) {
		print_error("%u sources, pending %d\n", sources.cnt, sources.is_pending);
		return 0;
	}
	assert_int_equal(sources.source[0].kind, HT_TAG_OTEL);
	assert_int_equal(sources.source[1].kind, HT_TAG_CUSTOM);
	*ret_mode = sources.source[0].tls_mode;
	for (i = 0; i < 2; i++)
		for (t = 0; t < 2; t++)
			if (follow(r->pid, &sources.source[i], r->tp[t]) != r->addr[t][i]) {
				print_error("variable %u of thread %u: %lx, not %lx\n", i, t,
					    follow(r->pid, &sources.source[i], r->tp[t]),
					    r->addr[t][i]);
				return 0;
			}
	return 1;
}

TEST_WITH(test_running, programs_setup, programs_teardown)
{
	static const struct {
		const char *cc, *flags, *lib_flags; /* lib_flags NULL: all in the executable */
		uint32_t dtv_shift, mode;
	} cases[] = {
		{ "gcc", "-no-pie", NULL, 4, HT_TLS_STATIC },
		{ "gcc", "-pie -fPIE -rdynamic -s", NULL, 4, HT_TLS_STATIC },
		{ "gcc", "-static", NULL, 4, HT_TLS_STATIC },
		{ "gcc", "-static-pie", NULL, 4, HT_TLS_STATIC },
		{ "musl-gcc", "", NULL, 3, HT_TLS_STATIC },
		{ "musl-gcc", "-static", NULL, 3, HT_TLS_STATIC },
		{ "gcc", "", "", 4, HT_TLS_DTV },
		{ "gcc", "", "-mtls-dialect=gnu2", 4, HT_TLS_STATIC },
		{ "gcc", "", "-ftls-model=initial-exec", 4, HT_TLS_STATIC },
		{ "gcc", "", "-Wl,-Bsymbolic", 4, HT_TLS_DTV },
		{ "gcc", "-Wl,-z,lazy", "-mtls-dialect=gnu2 -Wl,-z,lazy", 4, HT_TLS_STATIC },
		{ "gcc", "", "-fuse-ld=lld -Wl,-Bsymbolic", 4, HT_TLS_DTV },
		{ "gcc", "-DDLOPEN", "", 4, HT_TLS_DTV },
		{ "gcc", "-DDLOPEN", "-ftls-model=initial-exec", 4, HT_TLS_STATIC },
		/* nobody in the library uses the variables: found by another one's slot */
		{ "gcc", "-DOTHER", "-DOTHER", 4, HT_TLS_DTV },
		{ "gcc", "-DOTHER", "-DOTHER -mtls-dialect=gnu2", 4, HT_TLS_STATIC },
		{ "gcc", "-DOTHER", "-DOTHER -ftls-model=initial-exec", 4, HT_TLS_STATIC },
		{ "musl-gcc", "", "", 3, HT_TLS_DTV },
		{ "musl-gcc", "", "-mtls-dialect=gnu2", 3, HT_TLS_STATIC },
		{ "musl-gcc", "-DOTHER", "-DOTHER", 3, HT_TLS_DTV },
		{ "musl-gcc", "-DDLOPEN", "", 3, HT_TLS_DTV },
		{ "musl-gcc", "-DDLOPEN", "-mtls-dialect=gnu2", 3, HT_TLS_DTV },
		/* glibc: with room left for static blocks, or without */
		{ "gcc", "-DDLOPEN", "-mtls-dialect=gnu2", 4, HT_TLS_STATIC },
		{ "gcc", "-DDLOPEN", "-mtls-dialect=gnu2 -DBIG", 4, HT_TLS_DTV },
	};
	const char *dir = *state;
	size_t tried = 0, wrong = 0;

	write_file(dir, "main.c", main_c);
	write_file(dir, "v.c", variable_c);
	write_file(dir, "big.c", "__thread char big[100000];\n");
	each_case(one, cases) {
		const char *lib = one->lib_flags;
		bool big = lib && strstr(lib, "-DBIG");
		struct running r;
		uint32_t mode = 0;
		bool built;

		built = !lib ? shell("cd '%s' && %s -DABI=1 %s -o m main.c v.c -pthread", dir,
				     one->cc, one->flags) :
			       shell("cd '%s' && %s -DABI=1 -fPIC -shared %s -o l.so v.c %s && "
				     "%s %s -o m main.c %s -Wl,-rpath,'$ORIGIN' -ldl -pthread",
				     dir, one->cc, lib, big ? "big.c" : "", one->cc, one->flags,
				     strstr(one->flags, "DLOPEN") ? "" : "./l.so");
		if (!built || !start(dir, &r)) {
			print_message("not built or run: %s %s, %s\n", one->cc, one->flags,
				      lib ? lib : "(no library)");
			if (built)
				end_child(r.pid);
			continue;
		}
		tried++;
		if (!check_running(dir, lib ? "l.so" : "m", &r, one->dtv_shift, &mode) ||
		    mode != one->mode) {
			print_error("wrong: %s %s, %s: mode %u\n", one->cc, one->flags,
				    lib ? lib : "(no library)", mode);
			wrong++;
		}
		end_child(r.pid);
	}
	assert_int_equal(wrong, 0);
	if (!have("gcc"))
		skip();
	assert_true(tried >= 10);
}

TEST_WITH(test_abi_version, programs_setup, programs_teardown)
{
	static const struct {
		const char *flags;
		bool has_custom;
	} cases[] = { { "-DABI=1", true }, { "-DABI=2", false }, { "", false } };
	const char *dir = *state;
	size_t i;

	write_file(dir, "v.c", variable_c);
	for (i = 0; i < 3; i++) {
		struct elf_file *ef;
		struct tag_file f;
		int fd;

		if (!shell("cd '%s' && gcc -fPIC -shared %s -o l.so v.c", dir, cases[i].flags))
			skip();
		fd = open_in(dir, "l.so");
		assert_int_equal(elf_file_open_fd(fd, &ef), 0);
		close(fd);
		assert_int_equal(tag_file_scan(ef, &f), 0);
		assert_true(f.has_otel);
		assert_int_equal(f.has_custom, cases[i].has_custom);
		assert_int_equal(!*f.problem, cases[i].has_custom);
		elf_file_close(ef);
	}
}

/* This process stands for one whose loader is still at work, or whose memory is strange. */
TEST(test_slots)
{
	uint64_t slot[2] = { 0, 0 }, pair[2] = { 3, 0x40 };
	struct tag_file f = { .has_otel = true,
			      .otel = { .place = TLS_PLACE_DESC_SLOT,
					.is_own_slot = true,
					.slot_vaddr = 0x3fd8,
					.block_off = 0x10,
					.slot_block_off = 0x10 } };
	uint64_t bias = (uintptr_t)slot - 0x3fd8;
	struct tag_sources s;

	/* not relocated yet */
	assert_int_equal(tag_sources_read(NULL, getpid(), &f, bias, 4, &s), 0);
	assert_int_equal(s.cnt, 0);
	assert_true(s.is_pending);
	/* dynamic */
	slot[1] = (uintptr_t)pair;
	assert_int_equal(tag_sources_read(NULL, getpid(), &f, bias, 4, &s), 0);
	assert_int_equal(s.cnt, 1);
	assert_false(s.is_pending);
	assert_int_equal(s.source[0].tls_mode, HT_TLS_DTV);
	assert_int_equal(s.source[0].tls_module, 3);
	assert_int_equal(s.source[0].tls_off, 0x40);
	assert_int_equal(s.source[0].dtv_shift, 4);
	/* lazy: still the relocation, {slot, symbol << 32 | type, addend} */
	pair[0] = 0x3fd8;
	pair[1] = 36;
	assert_int_equal(tag_sources_read(NULL, getpid(), &f, bias, 4, &s), 0);
	assert_true(s.is_pending);
	pair[0] = 1ULL << 40; /* no module number */
	assert_int_equal(tag_sources_read(NULL, getpid(), &f, bias, 4, &s), 0);
	assert_true(s.is_pending);
	slot[1] = 0x1000; /* nothing there */
	assert_int_equal(tag_sources_read(NULL, getpid(), &f, bias, 4, &s), 0);
	assert_true(s.is_pending);
#ifdef __x86_64__
	slot[1] = (uint64_t)-0x40; /* static */
	assert_int_equal(tag_sources_read(NULL, getpid(), &f, bias, 4, &s), 0);
	assert_int_equal(s.cnt, 1);
	assert_int_equal(s.source[0].tls_mode, HT_TLS_STATIC);
	assert_int_equal(s.source[0].tls_off, -0x40);
	f.otel.block_off = 0x18; /* the slot is of a neighbour */
	assert_int_equal(tag_sources_read(NULL, getpid(), &f, bias, 4, &s), 0);
	assert_int_equal(s.source[0].tls_off, -0x38);
#endif
	/* the slot itself is not mapped */
	assert_int_equal(tag_sources_read(NULL, getpid(), &f, 0, 4, &s), 0);
	assert_true(s.is_pending);
}

TEST(test_gone)
{
	struct tag_file f = { .has_otel = true,
			      .otel = { .place = TLS_PLACE_OFFSET_SLOT, .slot_vaddr = 0x1000 } };
	struct tag_sources s;
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	assert_int_equal(tag_sources_read(NULL, pid, &f, 0, 4, &s), -ESRCH);
}

TEST(test_descriptors)
{
	uint8_t *raw = aligned_alloc(64, 640);
	struct tag_file f = { .descriptor_vaddr = { 0x1000 }, .descriptor_cnt = 1 };
	uint64_t bias = (uintptr_t)raw - 0x1000;
	struct tag_sources s;

	memset(raw, 0, 640);
	assert_int_equal(tag_sources_read(NULL, getpid(), &f, bias, 4, &s), 0);
	assert_true(s.is_pending);
	assert_int_equal(s.cnt, 0);
	memcpy(raw + 8, "HEAPTAP", 8);
	memcpy(raw + 2, (const uint16_t[]){ 1, 0, 640 }, 6);
	memcpy(raw + 16, (const uint16_t[]){ 32, 32 }, 4);
	raw[21] = 8;
	raw[56] = 12;
	assert_int_equal(tag_sources_read(NULL, getpid(), &f, bias, 4, &s), 0);
	assert_int_equal(s.cnt, 1);
	assert_int_equal(s.source[0].kind, HT_TAG_SCOPE);
	assert_int_equal(s.source[0].desc_addr, (uintptr_t)raw);
	assert_int_equal(s.source[0].flags, 0);
	assert_string_equal(s.problem.text, "");
	raw[22] = 1; /* it has paused everybody, before it was looked at */
	assert_int_equal(tag_sources_read(NULL, getpid(), &f, bias, 4, &s), 0);
	assert_int_equal(s.source[0].flags, HT_TAG_PAUSES_ALL);
	raw[2] = 2;
	assert_int_equal(tag_sources_read(NULL, getpid(), &f, bias, 4, &s), 0);
	assert_int_equal(s.cnt, 0);
	assert_false(s.is_pending);
	assert_says(s.problem.text, "version 2.0");
	free(raw);
}

RUN_TESTS()
