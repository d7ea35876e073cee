/* SPDX-License-Identifier: MIT */
/*
 * test_trials.c - trying out the kernel's features finds what there is and leaves nothing behind, also when the
 * process ends before the probes that measure costs are out.
 */
#include "rig.h"

#include <bpf/bpf.h>
#include <elf.h>
#include <linux/bpf.h>

#include "kernel/attach.h"
#include "kernel/uapi.h"

#define PROCESS_CNT 40

/* The kernel's log from here on. -1: may not be read. */
static int open_log(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		lseek(fd, 0, SEEK_END);
	return fd;
}

/* "uprobe: NAME:PID failed to unregister, leaking uprobe" */
static int leak_cnt(int log_fd)
{
	char line[2048], wanted[64], name[17] = "";
	ssize_t len;
	int cnt = 0;

	prctl(PR_GET_NAME, name);
	snprintf(wanted, sizeof(wanted), "uprobe: %s:", name);
	while ((len = read(log_fd, line, sizeof(line) - 1)) > 0) {
		line[len] = '\0';
		cnt += strstr(line, wanted) && strstr(line, "leaking uprobe");
	}
	return cnt;
}

static void probe_and_end(unsigned int delay_us, bool is_killed)
{
	struct kernel_features features;
	struct probe_costs costs;
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		if (kernel_features_probe(&features) || !kernel_features_suffice(&features) ||
		    probe_costs_measure(&features, &costs))
			_exit(1);
		usleep(delay_us);
		if (is_killed)
			raise(SIGKILL);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(is_killed ? WIFSIGNALED(status) : WIFEXITED(status) && !WEXITSTATUS(status));
}

TEST(test_end)
{
	int log_fd;

	if (geteuid())
		skip();
	log_fd = open_log();
	if (log_fd < 0)
		skip();
	for (int i = 0; i < PROCESS_CNT; i++)
		probe_and_end(i * 300, i % 2);
	sleep(1); /* what they left to others is done */
	assert_int_equal(leak_cnt(log_fd), 0);
	close(log_fd);
}

/* Puts an empty program on the first instruction of this program: what the trials only ask for. */
static bool can_attach(enum attach_mode mode, enum attach_kind kind, enum bpf_attach_type type)
{
	const struct bpf_insn nothing[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = type);
	struct attach_request req = { .pid = getpid(), .mode = mode, .kind = kind, .site_cnt = 1 };
	struct attach_links *links = NULL;
	struct attach_site site = { 0 };
	Elf64_Ehdr head;
	int err = -1;

	req.sites = &site;
	req.file_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_int_equal(pread(req.file_fd, &head, sizeof(head), 0), sizeof(head));
	/* The text of a position-independent program is where its file has it. */
	site.off = head.e_entry;
	req.prog_fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "nothing", "GPL", nothing, 2, &opts);
	assert_int_equal(attach_links_new(&links), 0);
	if (req.prog_fd >= 0) {
		err = attach_add(links, &req);
		close(req.prog_fd);
	}
	attach_links_free(links);
	close(req.file_fd);
	return !err;
}

/* What the kernel says of itself is what it does. */
TEST(test_true)
{
	struct kernel_features f;

	if (geteuid())
		skip();
	assert_int_equal(kernel_features_probe(&f), 0);
	assert_int_equal(f.perf_uprobe, can_attach(ATTACH_PERF, ATTACH_ENTRY, 0));
	assert_int_equal(f.uprobe_multi || f.has_blind_multi,
			 can_attach(ATTACH_MULTI, ATTACH_ENTRY, UAPI_TRACE_UPROBE_MULTI));
	assert_int_equal(f.uprobe_session, can_attach(ATTACH_SESSION, ATTACH_ENTRY_DECIDES,
						      UAPI_TRACE_UPROBE_SESSION));
}

/* Nobody else's child: who waits for any child must not meet those of the trials. */
TEST(test_no_child)
{
	struct kernel_features features;
	struct probe_costs costs;

	if (geteuid())
		skip();
	assert_int_equal(kernel_features_probe(&features), 0);
	assert_int_equal(probe_costs_measure(&features, &costs), 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
	assert_int_equal(errno, ECHILD);
}

RUN_TESTS()
