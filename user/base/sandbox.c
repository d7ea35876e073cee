/* SPDX-License-Identifier: MIT */
/*
 * sandbox.c - rlimits, privileges and system calls of the symbol helper.
 *
 * Promises, once sealed: no file can be opened, no process started, no memory made executable; the process is nobody
 * without capabilities, ends with its parent, and cannot use more memory or CPU time than it was given. On a kernel
 * without filters for system calls the first three do not hold: sandbox_is_whole() tells.
 *
 * Does not hide the parent's memory, of which the child has a copy: a hostile file that reads it could only write it
 * into the answer.
 */
#include "base/sandbox.h"

#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"

#define NOBODY_ID 65534
#define NOFILE_CAP 64
/* Exit statuses. */
#define SANDBOX_NOT_WRITTEN 124
#define SANDBOX_NOT_RUN 125
#define END_WAITS 20 /* for a child that was killed */
#define END_WAIT_US 1000
#define READING_DATA_BYTES (4ULL << 30) /* a browser's unwind rows and symbols, all files at once */
#define READING_MAP_BYTES (64ULL << 30)

#if defined(__x86_64__)
#define AUDIT_ARCH_HERE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define AUDIT_ARCH_HERE AUDIT_ARCH_AARCH64
#endif

static int set_limit(int what, uint64_t value)
{
	struct rlimit lim = { .rlim_cur = value, .rlim_max = value };
	struct rlimit old;

	/* A hard limit can only go down. */
	if (getrlimit((__rlimit_resource_t)what, &old) == 0 && old.rlim_max < value)
		lim.rlim_cur = lim.rlim_max = old.rlim_max;
	return setrlimit((__rlimit_resource_t)what, &lim) == 0 ? 0 : -errno;
}

/* SIGXCPU, which tells the reason, comes at the soft limit. */
static int limit_cpu(uint64_t seconds)
{
	struct rlimit lim = { .rlim_cur = seconds, .rlim_max = seconds + 1 };
	struct rlimit old;

	if (!seconds || (getrlimit(RLIMIT_CPU, &old) == 0 && old.rlim_max <= seconds))
		return 0;
	if (old.rlim_max < lim.rlim_max)
		lim.rlim_max = old.rlim_max;
	return setrlimit(RLIMIT_CPU, &lim) == 0 ? 0 : -errno;
}

/* Get the present address space and private writable memory of this process. */
static int memory_now(uint64_t *ret_as_bytes, uint64_t *ret_data_bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	unsigned long size, resident, shared, text, lib, data;
	FILE *f = fopen("/proc/self/statm", "re");
	int got;

	if (!f)
		return -errno;
	got = fscanf(f, "%lu %lu %lu %lu %lu %lu", &size, &resident, &shared, &text, &lib, &data);
	fclose(f);
	if (got != 6)
		return -EIO;
	*ret_as_bytes = size * page;
	*ret_data_bytes = data * page;
	return 0;
}

static int limit_memory(const struct sandbox_limits *limits)
{
	uint64_t as_bytes = 0, data_bytes = 0;
	int err = memory_now(&as_bytes, &data_bytes);

	if (!err)
		err = set_limit(RLIMIT_AS, as_bytes + limits->map_bytes);
	if (!err)
		err = set_limit(RLIMIT_DATA, data_bytes + limits->data_bytes);
	return err;
}

static bool is_kept(int fd, const int *keep_fd, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		if (keep_fd[i] == fd)
			return true;
	return false;
}

static int close_others(const int *keep_fd, size_t cnt)
{
	int null_fd = null_fd_open();
	int last = 2;

	if (null_fd < 0)
		return null_fd;
	for (int fd = 0; fd <= 2; fd++)
		if (!is_kept(fd, keep_fd, cnt) && null_fd != fd && dup2(null_fd, fd) < 0)
			return -errno;
	for (size_t i = 0; i < cnt; i++)
		last = keep_fd[i] > last ? keep_fd[i] : last;
	for (int fd = 3; fd <= last; fd++)
		if (!is_kept(fd, keep_fd, cnt))
			close(fd);
	/* From Linux 5.9; on older kernels the rest stays open and is still out of reach. */
	(void)syscall(SYS_close_range, (unsigned int)last + 1, ~0U, 0U);
	return 0;
}

/* A signal that ends the profiler must not end the helper, which the last snapshot needs; the parent
 * kills it when it is time. */
static void set_signals(void)
{
	static const int ignored[] = { SIGINT,	SIGTERM, SIGHUP,  SIGQUIT,
				       SIGPIPE, SIGTSTP, SIGUSR1, SIGUSR2 };
	static const int defaults[] = { SIGALRM, SIGCHLD, SIGXCPU, SIGBUS, SIGILL, SIGFPE };
	sigset_t none;

	for (size_t i = 0; i < ARRAY_CNT(ignored); i++)
		signal(ignored[i], SIG_IGN);
	for (size_t i = 0; i < ARRAY_CNT(defaults); i++)
		signal(defaults[i], SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static int die_with_parent(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
		return -errno;
	return getppid() == parent ? 0 : -ESRCH;
}

int sandbox_begin(pid_t parent, const int *keep_fds, size_t keep_fd_cnt, uint64_t cpu_seconds)
{
	int err;

	set_signals();
	err = die_with_parent(parent);
	if (err)
		return err;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -errno;
	err = close_others(keep_fds, keep_fd_cnt);
	if (!err)
		err = set_limit(RLIMIT_CPU, cpu_seconds);
	if (!err)
		err = set_limit(RLIMIT_CORE, 0);
	return err;
}

static int drop_privileges(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2];

	/* In a user namespace there may be no user nobody; the capabilities below are dropped in any case. */
	if (geteuid() == 0 &&
	    (setgroups(0, NULL) != 0 || setresgid(NOBODY_ID, NOBODY_ID, NOBODY_ID) != 0 ||
	     setresuid(NOBODY_ID, NOBODY_ID, NOBODY_ID) != 0) &&
	    errno != EINVAL && errno != EPERM)
		return -errno;
	memset(none, 0, sizeof(none));
	if (syscall(SYS_capset, &head, none) != 0)
		return -errno;
	return 0;
}

/* Which ways to open files the filter allows. */
enum opens { OPENS_NONE, OPENS_PLAIN, OPENS_ALL };

#ifdef AUDIT_ARCH_HERE

#define ALLOW(name)                                            \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* Allow the call unless its third argument asks for executable memory. */
#define ALLOW_NO_EXEC(name)                                                                 \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 4),                              \
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])), \
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0),                      \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),                               \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

/* Allow the call unless its third argument, a file's flags, asks for more than reading. */
#define ALLOW_NO_WRITE(name)                                                                \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 4),                              \
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])), \
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_ACCMODE | O_CREAT | O_TRUNC, 1, 0),  \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),                               \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

static void add_rules(struct sock_fprog *prog, const struct sock_filter *rules, size_t cnt)
{
	memcpy(prog->filter + prog->len, rules, cnt * sizeof(*rules));
	prog->len += (unsigned short)cnt;
}

static int filter_system_calls(enum opens opens_what)
{
	static const struct sock_filter begin[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_HERE, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	static const struct sock_filter opens[] = {
		ALLOW_NO_WRITE(openat),	 ALLOW(readlinkat), ALLOW(getdents64), ALLOW(statx),
		ALLOW(faccessat),	 ALLOW(uname),	    ALLOW(geteuid),    ALLOW(fstatfs),
		ALLOW(process_vm_readv), ALLOW(kcmp),	    ALLOW(dup),	       ALLOW(writev),
		ALLOW(clock_nanosleep),
#ifdef SYS_readlink
		ALLOW(readlink),	 ALLOW(access),	    ALLOW(stat),       ALLOW(lstat),
#endif
	};
	static const struct sock_filter open_two[] = { ALLOW(openat2) };
	static const struct sock_filter always[] = {
		ALLOW_NO_EXEC(mmap),
		ALLOW_NO_EXEC(mprotect),
		ALLOW(read),
		ALLOW(pread64),
		ALLOW(write),
		ALLOW(close),
		ALLOW(fstat),
		ALLOW(newfstatat),
		ALLOW(lseek),
		ALLOW(fcntl),
		ALLOW(munmap),
		ALLOW(mremap),
		ALLOW(madvise),
		ALLOW(brk),
		ALLOW(futex),
		ALLOW(exit),
		ALLOW(exit_group),
		ALLOW(rt_sigaction),
		ALLOW(rt_sigprocmask),
		ALLOW(rt_sigreturn),
		ALLOW(sigaltstack),
		ALLOW(clock_gettime),
		ALLOW(getpid),
		ALLOW(gettid),
		ALLOW(getrandom),
		ALLOW(sched_yield),
		/* An error, not a kill: libraries try calls that they can do without. */
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	};
	struct sock_filter
		code[ARRAY_CNT(begin) + ARRAY_CNT(opens) + ARRAY_CNT(open_two) + ARRAY_CNT(always)];
	struct sock_fprog prog = { .filter = code };

	add_rules(&prog, begin, ARRAY_CNT(begin));
	if (opens_what)
		add_rules(&prog, opens, ARRAY_CNT(opens));
	if (opens_what == OPENS_ALL)
		add_rules(&prog, open_two, ARRAY_CNT(open_two));
	add_rules(&prog, always, ARRAY_CNT(always));
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) != 0)
		return errno == EINVAL ? 0 : -errno; /* see sandbox_is_whole() */
	return 0;
}

/* A kernel that has filters looks for this one, and finds none. */
bool sandbox_is_whole(void)
{
	return !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) || errno != EINVAL;
}

#else

static int filter_system_calls(enum opens opens_what)
{
	(void)opens_what;
	return 0;
}

bool sandbox_is_whole(void)
{
	return false;
}

#endif

int sandbox_seal(pid_t parent, const struct sandbox_limits *limits)
{
	int err = limit_memory(limits);

	if (!err)
		err = limit_cpu(limits->cpu_seconds);
	if (!err)
		err = drop_privileges();

	/* A change of user clears the parent-death signal. */
	if (!err)
		err = die_with_parent(parent);
	if (!err)
		err = set_limit(RLIMIT_NOFILE, NOFILE_CAP);
	if (!err)
		err = set_limit(RLIMIT_FSIZE, 0);
	if (!err)
		err = filter_system_calls(OPENS_NONE);
	return err;
}

static int keep_capabilities(const int *needed, size_t cnt)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };
	uint32_t kept[2] = { 0 };

	if (syscall(SYS_capget, &head, data))
		return -errno;
	for (size_t i = 0; i < cnt; i++)
		kept[CAP_TO_INDEX(needed[i])] |= CAP_TO_MASK(needed[i]);
	for (size_t i = 0; i < 2; i++) {
		data[i].permitted &= kept[i];
		data[i].effective = data[i].permitted; /* setfsuid() has cleared some */
		data[i].inheritable = 0;
	}
	return syscall(SYS_capset, &head, data) ? -errno : 0;
}

int sandbox_keep_reading(void)
{
	static const int needed[] = {
		CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_SETUID,
		CAP_SETGID,	  CAP_SYS_PTRACE,      CAP_CHECKPOINT_RESTORE
	};

	return keep_capabilities(needed, ARRAY_CNT(needed));
}

static bool may_read_all(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	return !syscall(SYS_capget, &head, data) &&
	       data[CAP_TO_INDEX(CAP_DAC_READ_SEARCH)].permitted & CAP_TO_MASK(CAP_DAC_READ_SEARCH);
}

/* For files it is nobody, who may read all and write nothing. This takes the death signal back. */
static void be_nobody_for_files(void)
{
	(void)setgroups(0, NULL);
	(void)setfsgid(NOBODY_ID);
	(void)setfsuid(NOBODY_ID);
}

/*
 * What the child prints comes through pipes: one that waits for ever, in the kernel, must not hold the other end of a
 * pipe that somebody else reads. [0]: standard output, [1]: standard error.
 */
struct printed {
	int read_fd[2], write_fd[2];
};

static void close_both(int fd[2])
{
	for (int i = 0; i < 2; i++) {
		if (fd[i] >= 0)
			close(fd[i]);
		fd[i] = -1;
	}
}

static int printed_init(struct printed *p)
{
	*p = (struct printed){ { -1, -1 }, { -1, -1 } };
	for (int i = 0; i < 2; i++) {
		int fd[2];

		if (pipe2(fd, O_CLOEXEC))
			return -errno;
		p->read_fd[i] = fd[0];
		p->write_fd[i] = fd[1];
	}
	return 0;
}

int sandbox_seal_reading(pid_t parent, uint64_t data_bytes)
{
	static const int needed[] = { CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_CHECKPOINT_RESTORE };
	const struct sandbox_limits limits = { .data_bytes = data_bytes,
					       .map_bytes = READING_MAP_BYTES };
	/* Without that capability it reads as it is, and without openat2(), of which the filter does not see how it
	 * opens. */
	bool is_nobody = may_read_all();
	int err;

	if (is_nobody)
		be_nobody_for_files();
	err = die_with_parent(parent);
	if (!err)
		err = limit_memory(&limits);
	if (!err)
		err = is_nobody ? keep_capabilities(needed, ARRAY_CNT(needed)) :
				  sandbox_keep_reading();
	return err ? err : filter_system_calls(is_nobody ? OPENS_ALL : OPENS_PLAIN);
}

static void run_reading(pid_t parent, int (*fn)(void *), void *arg, uint32_t wall_s,
			const struct printed *printed)
{
	static const int kept_fd[] = { STDOUT_FILENO, STDERR_FILENO };
	int status;

	/* First of all: a process that is killed cannot take probes out, so it must not be the last that has one
	 * open. */
	if (dup2(printed->write_fd[0], STDOUT_FILENO) < 0 ||
	    dup2(printed->write_fd[1], STDERR_FILENO) < 0 || close_others(kept_fd, 2))
		_exit(SANDBOX_NOT_RUN);
	if (sandbox_begin(parent, kept_fd, 2, wall_s) ||
	    sandbox_seal_reading(parent, READING_DATA_BYTES))
		_exit(SANDBOX_NOT_RUN);
	status = fn(arg);
	if (fflush(NULL) && !status)
		status = SANDBOX_NOT_WRITTEN;
	_exit(status);
}

/* As poll(), but it takes what it waits from *left_ns: what is done meanwhile is not the child's fault. */
static int poll_for(struct pollfd *pfd, nfds_t cnt, uint64_t *left_ns)
{
	uint64_t start_ns = now_ns(), waited_ns;
	int n = poll(pfd, cnt, (int)(*left_ns / NS_PER_MS));

	if (n < 0 && errno != EINTR)
		return -errno;
	waited_ns = now_ns() - start_ns;
	*left_ns -= waited_ns < *left_ns ? waited_ns : *left_ns;
	return n || *left_ns >= NS_PER_MS ? 0 : -ETIMEDOUT;
}

/* Write what the child prints, until it prints no more. */
static int pass_on(struct printed *p, uint64_t *left_ns)
{
	struct pollfd pfd[2] = { { .fd = p->read_fd[0], .events = POLLIN },
				 { .fd = p->read_fd[1], .events = POLLIN } };
	char part[4096];
	int err = 0;

	while (!err && (pfd[0].fd >= 0 || pfd[1].fd >= 0)) {
		err = poll_for(pfd, 2, left_ns);
		for (int i = 0; i < 2 && !err; i++) {
			ssize_t n;

			if (pfd[i].fd < 0 || !pfd[i].revents)
				continue;
			n = read(pfd[i].fd, part, sizeof(part));
			if (n <= 0)
				pfd[i].fd = -1;
			else if (write_all(i ? STDERR_FILENO : STDOUT_FILENO, part, (size_t)n))
				err = -ENOSPC;
		}
	}
	return err;
}

/* Return the exit status of the child, or a negative errno. */
static int wait_for_reading(pid_t child, struct printed *p, uint32_t wall_s)
{
	struct pollfd pfd = { .fd = (int)syscall(SYS_pidfd_open, child, 0), .events = POLLIN };
	uint64_t left_ns = wall_s * NS_PER_S;
	int status, err = pfd.fd < 0 ? -errno : pass_on(p, &left_ns);

	while (!err && !pfd.revents)
		err = poll_for(&pfd, 1, &left_ns);
	if (pfd.fd >= 0)
		close(pfd.fd);
	if (err) { /* not waited for: not even this ends one that is in the kernel */
		kill(child, SIGKILL);
		return err;
	}
	if (waitpid(child, &status, 0) != child)
		return -errno;
	if (!WIFEXITED(status) || WEXITSTATUS(status) == SANDBOX_NOT_RUN)
		return -EIO;
	return WEXITSTATUS(status) == SANDBOX_NOT_WRITTEN ? -ENOSPC : WEXITSTATUS(status);
}

int sandbox_run_reading(int (*fn)(void *), void *arg, uint32_t wall_s)
{
	struct printed printed;
	pid_t parent = getpid(), child;
	int err = printed_init(&printed);

	if (err)
		goto out;
	fflush(NULL);
	child = fork();
	if (!child)
		run_reading(parent, fn, arg, wall_s, &printed);
	err = child < 0 ? -errno : 0;
	close_both(printed.write_fd);
	if (!err)
		err = wait_for_reading(child, &printed, wall_s);
out:
	close_both(printed.read_fd);
	close_both(printed.write_fd);
	return err;
}

int sandbox_begin_reading(int (*fn)(void *), void *arg, uint32_t wall_s,
			  struct sandbox_reading *ret)
{
	struct printed printed;
	pid_t parent = getpid(), child = -1;
	int err = printed_init(&printed), closed_fd[2] = { -1, -1 };
	char c;

	*ret = (struct sandbox_reading){ .fd = -1 };
	if (!err && fcntl(printed.read_fd[0], F_SETFL, O_NONBLOCK))
		err = -errno;
	if (err)
		goto out;
	if (pipe2(closed_fd, O_CLOEXEC)) {
		err = -errno;
		goto out;
	}
	fflush(NULL);
	child = fork();
	if (!child)
		run_reading(parent, fn, arg, wall_s, &printed);
	err = child < 0 ? -errno : 0;
	if (err)
		goto out;
	close(closed_fd[1]);
	closed_fd[1] = -1;
	/* Its end is closed with all others. Until then the child must not be killed; this waits for nobody else. */
	while (read(closed_fd[0], &c, 1) < 0 && errno == EINTR)
		;
	*ret = (struct sandbox_reading){ child, printed.read_fd[0] };
	printed.read_fd[0] = -1;
out:
	close_both(closed_fd);
	close_both(printed.read_fd);
	close_both(printed.write_fd);
	return err;
}

void sandbox_end_reading(struct sandbox_reading *r)
{
	if (!r->child)
		return;
	kill(r->child, SIGKILL);
	for (int i = 0; i < END_WAITS && !waitpid(r->child, NULL, WNOHANG); i++)
		usleep(END_WAIT_US);
	close(r->fd);
	*r = (struct sandbox_reading){ .fd = -1 };
}

const char *sandbox_reading_error(int err)
{
	return err == -ENOSPC ?
		       "cannot write to standard output" :
	       err == -ETIMEDOUT ?
		       "its files or memory do not respond" :
	       err == -EIO ?
		       "the process that reads its files has crashed, or could not be sandboxed" :
		       strerror(-err);
}
