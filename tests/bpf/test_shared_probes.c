/* SPDX-License-Identifier: MIT */
/*
 * test_shared_probes.c - probes that processes share: who is seen, who pays, what is left behind.
 *
 * The program counts its hits, by the cookie that it was given, which must arrive.
 */
#include "../unit/unit.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/err.h"
#include "kernel/attach.h"
#include "kernel/uprobe_events.h"

#define COUNTER_CNT 8
#define COOKIE 3
#define TRIES 5 /* beside others */

/* The probed instruction is one byte, and the first of the function. */
__asm__(".text\n.p2align 4\n.globl probed\n.type probed, @function\n"
#if defined(__x86_64__)
	"probed: push %rbp\n pop %rbp\n ret\n"
#else
	"probed: nop\n nop\n ret\n"
#endif
	".size probed, .-probed\n");
void probed(void);

static struct uprobe_events *ue;
static int counters_fd, prog_fd, own_fd;
static uint64_t probed_off;

/* counters[cookie]++ */
static int load_counting(void)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_get_attach_cookie },
		{ .code = BPF_STX | BPF_MEM | BPF_W, .dst_reg = 10, .src_reg = 0, .off = -4 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 2, .src_reg = 10 },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = 2, .imm = -4 },
		{ .code = BPF_LD | BPF_DW | BPF_IMM,
		  .dst_reg = 1,
		  .src_reg = BPF_PSEUDO_MAP_FD,
		  .imm = counters_fd },
		{ 0 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_map_lookup_elem },
		{ .code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = 0, .off = 2 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 1, .imm = 1 },
		{ .code = BPF_STX | BPF_ATOMIC | BPF_DW,
		  .dst_reg = 0,
		  .src_reg = 1,
		  .imm = BPF_ADD },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "counting", "GPL", insns,
			     sizeof(insns) / sizeof(*insns), NULL);
}

static uint64_t take_count(uint32_t cookie)
{
	uint64_t n = 0, zero = 0;

	assert_int_equal(bpf_map_lookup_elem(counters_fd, &cookie, &n), 0);
	assert_int_equal(bpf_map_update_elem(counters_fd, &cookie, &zero, BPF_ANY), 0);
	return n;
}

/* Where `probed` is in this program's file. */
static uint64_t find_probed(void)
{
	unsigned long start, end, off, addr = (unsigned long)probed;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512], perms[8];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %7s %lx", &start, &end, perms, &off) == 4 &&
		    addr >= start && addr < end) {
			fclose(maps);
			return addr - start + off;
		}
	}
	fail_msg("the test's own code is not mapped");
	return 0;
}

static int set_up(void **state)
{
	struct err why = { 0 };

	if (geteuid())
		return 0;
	/* Whose definitions can be counted; without it the tests that do are skipped. */
	if (access("/sys/kernel/tracing/uprobe_events", W_OK))
		mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL);
	counters_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "counters", sizeof(uint32_t),
				     sizeof(uint64_t), COUNTER_CNT, NULL);
	assert_true(counters_fd >= 0);
	prog_fd = load_counting();
	assert_true(prog_fd >= 0);
	own_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_true(own_fd >= 0);
	probed_off = find_probed();
	if (uprobe_events_open(&ue, NULL, &why))
		print_message("no shared probes here: %s\n", why.text);
	return 0;
}

static int tear_down(void **state)
{
	uprobe_events_close(ue);
	return 0;
}

/* A child that calls `probed` as often as it is told: in a thread when the number is negative. */
struct child {
	pid_t pid;
	int fd;
};

static void *call_probed(void *arg)
{
	for (intptr_t n = (intptr_t)arg; n > 0; n--)
		probed();
	return NULL;
}

/* The events that this program holds must not live on in the child. */
static void run_child(int fd)
{
	pthread_t thread;
	int n;

	fd = dup2(fd, 3);
	syscall(__NR_close_range, 4, ~0U, 0);
	while (read(fd, &n, sizeof(n)) == sizeof(n)) {
		if (n >= 0)
			call_probed((void *)(intptr_t)n);
		else if (!pthread_create(&thread, NULL, call_probed, (void *)(intptr_t)-n))
			pthread_join(thread, NULL);
		if (write(fd, &n, sizeof(n)) != sizeof(n))
			break;
	}
	_exit(0);
}

static struct child start_child(void)
{
	struct child c;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	c.pid = fork();
	assert_true(c.pid >= 0);
	if (!c.pid) {
		close(pair[0]);
		run_child(pair[1]);
	}
	close(pair[1]);
	c.fd = pair[0];
	return c;
}

static void make_calls(const struct child *c, int n)
{
	assert_int_equal(write(c->fd, &n, sizeof(n)), sizeof(n));
	assert_int_equal(read(c->fd, &n, sizeof(n)), sizeof(n));
}

static void end_child(const struct child *c)
{
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	close(c->fd);
}

/* Has it a breakpoint in its code? */
static bool has_breakpoint(const struct child *c)
{
	unsigned char byte = 0;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", c->pid);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, (off_t)(uintptr_t)probed), 1);
	close(fd);
	return byte != *(const volatile unsigned char *)(uintptr_t)probed;
}

static struct shared_probes *probe(const struct attach_site *site)
{
	const struct attach_request req[] = {
		{ .file_fd = own_fd,
		  .kind = ATTACH_RETURN,
		  .prog_fd = prog_fd,
		  .sites = site,
		  .site_cnt = 1 },
		{ .file_fd = own_fd, .prog_fd = prog_fd, .sites = site, .site_cnt = 1 },
	};
	struct shared_probes *sp = NULL;

	assert_int_equal(shared_probes_new(ue, req, 2, &sp), 0);
	return sp;
}

static struct attach_links *add(struct shared_probes *sp, const struct child *c)
{
	struct attach_links *links = NULL;

	assert_int_equal(attach_links_new(&links), 0);
	assert_int_equal(shared_probes_add(sp, c->pid, links), 0);
	return links;
}

TEST(test_who_is_seen)
{
	const struct attach_site site = { probed_off, COOKIE, 0 };
	struct child a, b, other;
	struct attach_links *of_a, *of_b;
	struct shared_probes *sp;

	if (!ue)
		skip();
	a = start_child();
	b = start_child();
	other = start_child();
	sp = probe(&site);
	assert_false(has_breakpoint(&a));
	of_a = add(sp, &a);
	of_b = add(sp, &b);

	/* Entry and return, once each, in every thread; and nobody else. */
	make_calls(&a, 5);
	make_calls(&b, -7);
	make_calls(&other, 100);
	assert_int_equal(take_count(COOKIE), 2 * 12);
	assert_true(has_breakpoint(&a));
	assert_true(has_breakpoint(&b));
	assert_false(has_breakpoint(&other));

	attach_links_free(of_a);
	make_calls(&a, 11);
	make_calls(&b, 13);
	assert_int_equal(take_count(COOKIE), 2 * 13);
	assert_false(has_breakpoint(&a));

	/* The end of one that is seen takes nothing away from the others. */
	of_a = add(sp, &a);
	end_child(&b);
	make_calls(&a, -3);
	assert_int_equal(take_count(COOKIE), 2 * 3);
	attach_links_free(of_a);
	attach_links_free(of_b);
	shared_probes_free(sp);
	end_child(&a);
	end_child(&other);
}

/* Who is added again before it is taken out is seen all the time, and once. */
TEST(test_added_again)
{
	const struct attach_site site = { probed_off, COOKIE, 0 };
	struct attach_links *links, *fresh;
	struct shared_probes *sp;
	struct child a;
	int n = 100000;

	if (!ue)
		skip();
	a = start_child();
	sp = probe(&site);
	links = add(sp, &a);
	fresh = add(sp, &a);
	make_calls(&a, 5);
	assert_int_equal(take_count(COOKIE), 2 * 5);
	attach_links_free(links);
	assert_int_equal(write(a.fd, &n, sizeof(n)), sizeof(n));
	for (int i = 0; i < 20; i++) {
		links = fresh;
		fresh = add(sp, &a);
		attach_links_free(links);
	}
	assert_int_equal(read(a.fd, &n, sizeof(n)), sizeof(n));
	assert_int_equal(take_count(COOKIE), 2 * 100000);
	attach_links_free(fresh);
	shared_probes_free(sp);
	end_child(&a);
}

/* A child forked from one that is seen is not: it loses the breakpoint when it meets it. */
TEST(test_fork)
{
	const struct attach_site site = { probed_off, COOKIE, 0 };
	struct shared_probes *sp;
	struct attach_links *links = NULL;
	int pair[2];
	struct child forked = { 0 };

	if (!ue)
		skip();
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	sp = probe(&site);
	assert_int_equal(attach_links_new(&links), 0);
	assert_int_equal(shared_probes_add(sp, getpid(), links), 0);
	forked.pid = fork();
	if (!forked.pid)
		run_child(pair[1]);
	close(pair[1]);
	forked.fd = pair[0];
	probed();
	assert_int_equal(take_count(COOKIE), 2);
	make_calls(&forked, 3);
	assert_int_equal(take_count(COOKIE), 0);
	attach_links_free(links);
	assert_false(has_breakpoint(&forked));
	shared_probes_free(sp);
	end_child(&forked);
}

/* Of this owner: others may have some, which come and go. */
static size_t count_definitions(pid_t pid)
{
	FILE *list = fopen("/sys/kernel/tracing/uprobe_events", "r");
	struct uprobe_owner owner;
	const char *name;
	char line[512];
	size_t name_len, cnt = 0;

	assert_non_null(list);
	while (fgets(line, sizeof(line), list))
		cnt += !uprobe_event_owner(line, &owner, &name, &name_len) && owner.pid == pid;
	fclose(list);
	return cnt;
}

/* What a killed run leaves, for which the kernel may take some time, is inert. Returns its pid. */
static pid_t leave_definitions(struct child *a)
{
	const struct attach_site site = { probed_off, COOKIE, 0 };
	struct err why = { 0 };
	pid_t pid = fork();

	if (!pid) {
		struct uprobe_events *theirs = NULL;

		if (uprobe_events_open(&theirs, NULL, &why))
			_exit(1);
		ue = theirs;
		add(probe(&site), a);
		kill(getpid(), SIGKILL);
	}
	waitpid(pid, NULL, 0);
	for (int i = 0; i < 500 && has_breakpoint(a); i++)
		usleep(10000);
	assert_false(has_breakpoint(a));
	make_calls(a, 4);
	assert_int_equal(take_count(COOKIE), 0);
	return pid;
}

/*
 * What a killed run leaves goes when the next one begins. That may be somebody else's, who begins at the same time; and
 * definitions that come and go while the list is read hide others for once. So one try of some has to be as it is here.
 */
TEST(test_killed)
{
	struct uprobe_events *again = NULL;
	size_t left_cnt = 0, removed_cnt = 0, after_cnt = 1;
	struct child a;
	struct err why = { 0 };

	if (!ue || access("/sys/kernel/tracing/uprobe_events", W_OK))
		skip();
	a = start_child();
	for (int i = 0; i < TRIES && !(left_cnt == 2 && removed_cnt >= 2 && !after_cnt); i++) {
		pid_t pid = leave_definitions(&a);

		left_cnt = count_definitions(pid);
		assert_int_equal(uprobe_events_open(&again, &removed_cnt, &why), 0);
		after_cnt = count_definitions(pid);
		uprobe_events_close(again);
	}
	assert_int_equal(left_cnt, 2);
	assert_true(removed_cnt >= 2);
	assert_int_equal(after_cnt, 0);
	end_child(&a);
}

/* Without an entry event of the same site nobody else sets the breakpoints. */
TEST(test_return_alone)
{
	const struct attach_site site = { probed_off, COOKIE, 0 };
	const struct attach_request req = {
		.file_fd = own_fd,
		.kind = ATTACH_RETURN,
		.prog_fd = prog_fd,
		.sites = &site,
		.site_cnt = 1,
	};
	struct shared_probes *sp = NULL;
	struct attach_links *links;
	struct child c;

	if (!ue)
		skip();
	c = start_child();
	assert_int_equal(shared_probes_new(ue, &req, 1, &sp), 0);
	links = add(sp, &c);
	make_calls(&c, 7);
	assert_int_equal(take_count(COOKIE), 7);
	attach_links_free(links);
	assert_false(has_breakpoint(&c));
	shared_probes_free(sp);
	end_child(&c);
}

TEST(test_refused)
{
	const struct attach_site site = { probed_off, COOKIE, 0 };
	struct attach_links *links = NULL;
	struct shared_probes *sp;
	size_t before;

	if (!ue || access("/sys/kernel/tracing/uprobe_events", W_OK))
		skip();
	before = count_definitions(getpid());
	sp = probe(&site);
	assert_int_equal(attach_links_new(&links), 0);
	assert_int_equal(shared_probes_add(sp, INT32_MAX - 1, links), -ESRCH);
	assert_int_equal(attach_links_cnt(links), 0);
	attach_links_free(links);
	shared_probes_free(sp);
	assert_int_equal(count_definitions(getpid()), before);
}

RUN_TESTS_WITH(set_up, tear_down)
