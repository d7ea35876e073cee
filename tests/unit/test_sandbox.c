/* SPDX-License-Identifier: MIT */
/* test_sandbox.c - what a sealed child can still do. Each question is asked in a child. */
#include "unit.h"

#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/sandbox.h"

#define DATA_BYTES (64u << 20)

static bool can_open(int out_fd)
{
	return open("/proc/self/status", O_RDONLY) >= 0 || open("/etc/passwd", O_RDONLY) >= 0;
}

static bool can_fork(int out_fd)
{
	return fork() >= 0;
}

static bool can_exec(int out_fd)
{
	char *argv[] = { "true", NULL };

	execv("/bin/true", argv);
	return errno != EPERM;
}

static bool can_connect(int out_fd)
{
	return socket(AF_UNIX, SOCK_STREAM, 0) >= 0;
}

static bool can_map_code(int out_fd)
{
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
	       MAP_FAILED;
}

static bool can_signal_parent(int out_fd)
{
	return kill(getppid(), 0) == 0;
}

static bool can_take_too_much_memory(int out_fd)
{
	return mmap(NULL, 2 * DATA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0) != MAP_FAILED;
}

static bool can_regain_privileges(int out_fd)
{
	return setresuid(0, 0, 0) == 0;
}

static bool is_root(int out_fd)
{
	return geteuid() == 0 || getuid() == 0;
}

static bool can_dump_core(int out_fd)
{
	struct rlimit lim;

	return getrlimit(RLIMIT_CORE, &lim) == 0 && lim.rlim_cur != 0;
}

static bool can_read_what_was_open(int out_fd)
{
	for (int fd = 3; fd < 100; fd++)
		if (fd != out_fd && fcntl(fd, F_GETFD) >= 0)
			return true;
	return false;
}

static bool can_answer(int out_fd)
{
	return write(out_fd, "x", 1) == 1;
}

static bool can_take_memory(int out_fd)
{
	char *p = mmap(NULL, DATA_BYTES / 4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	if (p == MAP_FAILED)
		return false;
	memset(p, 1, DATA_BYTES / 4);
	return true;
}

static bool survives_ctrl_c(int out_fd)
{
	/* raise() is refused; ignored is what it must be */
	return signal(SIGINT, SIG_IGN) == SIG_IGN && signal(SIGTERM, SIG_IGN) == SIG_IGN;
}

static const struct {
	const char *what;
	bool (*ask)(int out_fd);
	bool want;
	bool needs_root;
} questions[] = {
	{ "open a file", can_open, false, false },
	{ "fork", can_fork, false, false },
	{ "exec", can_exec, false, false },
	{ "make a socket", can_connect, false, false },
	{ "map code", can_map_code, false, false },
	{ "signal its parent", can_signal_parent, false, false },
	{ "take too much memory", can_take_too_much_memory, false, false },
	{ "become root again", can_regain_privileges, false, false },
	{ "be root", is_root, false, true },
	{ "dump core", can_dump_core, false, false },
	{ "use other descriptors", can_read_what_was_open, false, false },
	{ "write its answer", can_answer, true, false },
	{ "take some memory", can_take_memory, true, false },
	{ "survive Ctrl-C", survives_ctrl_c, true, false },
};

/* 0 or 1, what the child found; 2 when it could not be sealed. */
static int ask_in_child(bool (*ask)(int out_fd), int out_fd)
{
	const struct sandbox_limits limits = { .data_bytes = DATA_BYTES, .map_bytes = 1 << 30 };
	pid_t parent = getpid(), pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		if (sandbox_begin(parent, &out_fd, 1, 10) || sandbox_seal(parent, &limits))
			_exit(2);
		_exit(ask(out_fd) ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST(a_sealed_child_can_only_answer)
{
	int pipe_fd[2];

	keep_fd(open("/dev/null", O_RDONLY)); /* the secret */
	assert_int_equal(pipe(pipe_fd), 0);
	each_case(c, questions) {
		int got;

		if (c->needs_root && geteuid() != 0)
			continue;
		got = ask_in_child(c->ask, pipe_fd[1]);
		if (got != c->want)
			fail_msg("%s: %d", c->what, got);
	}
	close(pipe_fd[0]);
	close(pipe_fd[1]);
}

/* The grandchild must not outlive the child that started it. */
TEST(it_dies_with_its_parent)
{
	int pipe_fd[2], status;
	char byte;
	pid_t child;

	assert_int_equal(pipe(pipe_fd), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		const struct sandbox_limits limits = { .data_bytes = DATA_BYTES,
						       .map_bytes = 1 << 30 };
		pid_t parent = getpid();

		if (fork() == 0) {
			if (sandbox_begin(parent, &pipe_fd[1], 1, 10) ||
			    sandbox_seal(parent, &limits) || write(pipe_fd[1], "x", 1) != 1)
				_exit(2);
			for (;;)
				sched_yield();
		}
		pause();
		_exit(0);
	}
	close(pipe_fd[1]);
	assert_int_equal(read(pipe_fd[0], &byte, 1), 1);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	/* its end of the pipe closes when it is gone; CPU limit 10 s otherwise */
	alarm(5);
	assert_int_equal(read(pipe_fd[0], &byte, 1), 0);
	alarm(0);
	close(pipe_fd[0]);
}

/* Its limit in the seal is lower than the one that it began with, and says what it was. */
TEST(it_computes_no_longer_than_it_may)
{
	const struct sandbox_limits limits = { .data_bytes = DATA_BYTES,
					       .map_bytes = 1 << 30,
					       .cpu_seconds = 1 };
	int out_fd = open("/dev/null", O_WRONLY), status;
	pid_t parent = getpid(), child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		if (sandbox_begin(parent, &out_fd, 1, 60) || sandbox_seal(parent, &limits))
			_exit(2);
		for (;;)
			;
	}
	alarm(50);
	assert_int_equal(waitpid(child, &status, 0), child);
	alarm(0);
	close(out_fd);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGXCPU);
}

/* As if the kernel had no filters: for this process and its children, for good. */
static bool forbid_filters(void)
{
	static const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_SECCOMP, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog prog = { sizeof(code) / sizeof(*code), (struct sock_filter *)code };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

/* A kernel that cannot filter system calls is told from one that can. */
TEST(it_is_known_what_does_not_hold)
{
	const struct sandbox_limits limits = { .data_bytes = DATA_BYTES, .map_bytes = 1 << 30 };
	pid_t parent = getpid(), child;
	int out_fd = open("/dev/null", O_WRONLY), status;

	assert_true(sandbox_is_whole());
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (!forbid_filters() || sandbox_is_whole() ||
		    sandbox_begin(parent, &out_fd, 1, 60) || sandbox_seal(parent, &limits))
			_exit(2);
		/* the rest of the seal holds */
		_exit(can_open(out_fd) && geteuid() != 0 && !can_signal_parent(out_fd) ? 0 : 3);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	close(out_fd);
	assert_int_equal(status, geteuid() ? 3 << 8 : 0);
}

static bool can_write_files(void)
{
	return open("/tmp", O_TMPFILE | O_RDWR, 0600) >= 0 || open("/dev/null", O_WRONLY) >= 0 ||
	       open("/tmp/heaptap-no-such-file", O_RDONLY | O_CREAT, 0600) >= 0 ||
	       open("/dev/null", O_RDONLY | O_TRUNC) >= 0;
}

static bool can_change_processes(void)
{
	return can_fork(-1) || can_exec(-1) || can_connect(-1) || can_map_code(-1) ||
	       can_signal_parent(-1) || prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0 ||
	       setresuid(1, 1, 1) == 0;
}

static int open_two(const char *path, uint64_t flags)
{
	struct open_how how = { .flags = flags };

	return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
}

/* The filter does not see how openat2() opens. What everybody may write, this child may. */
static bool only_looks(void)
{
	return open_two("/etc/passwd", O_PATH) >= 0 && open_two("/etc/passwd", O_RDONLY) >= 0 &&
	       (geteuid() || open_two("/etc/shadow", O_RDONLY) >= 0) &&
	       open_two("/etc/passwd", O_WRONLY) < 0 &&
	       open_two("/etc/passwd", O_RDONLY | O_TRUNC) < 0 &&
	       open_two("/proc/self/oom_score_adj", O_WRONLY) < 0;
}

static int read_only(void *arg)
{
	int fd = open("/proc/self/maps", O_RDONLY), dir = open("/proc", O_RDONLY | O_DIRECTORY);
	char byte;

	*(int *)arg = 1; /* in the child's memory */
	return fd >= 0 && dir >= 0 && read(fd, &byte, 1) == 1 && only_looks() &&
			       !can_write_files() && !can_change_processes() ?
		       42 :
		       1;
}

static int crash(void *arg)
{
	__builtin_trap();
}

_Noreturn static int never_answer(void *arg)
{
	uint32_t word = 0;

	(void)arg;
	for (;;)
		syscall(SYS_futex, &word, 0 /* FUTEX_WAIT */, 0, NULL, NULL, 0);
}

/* arg: the inode of the standard output outside. */
static int print_elsewhere(void *arg)
{
	struct stat st;

	printf("printed");
	return fstat(STDOUT_FILENO, &st) || st.st_ino == *(ino_t *)arg;
}

/* A child that never ends, in the kernel, must not hold a pipe that somebody reads. */
TEST(what_it_prints_is_passed_on)
{
	int fd = keep_fd(memfd_create("stdout", MFD_CLOEXEC)), saved = keep_fd(dup(STDOUT_FILENO)),
	    status;
	char text[16] = "";
	struct stat st;

	assert_true(fd >= 0 && saved >= 0 && !fstat(fd, &st));
	fflush(stdout);
	dup2(fd, STDOUT_FILENO);
	status = sandbox_run_reading(print_elsewhere, &st.st_ino, 60);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	assert_int_equal(status, 0);
	assert_int_equal(pread(fd, text, sizeof(text), 0), 7);
	assert_string_equal(text, "printed");
}

TEST(who_may_read_can_change_nothing)
{
	int arg = 0;

	assert_int_equal(sandbox_run_reading(read_only, &arg, 60), 42);
	assert_int_equal(arg, 0);
	assert_int_equal(sandbox_run_reading(crash, NULL, 60), -EIO);
	assert_int_equal(sandbox_run_reading(never_answer, NULL, 1), -ETIMEDOUT);
}

RUN_TESTS()
