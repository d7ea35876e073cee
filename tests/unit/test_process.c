/* SPDX-License-Identifier: MIT */
/* test_process.c - what a process is, and why it cannot be recorded, for real processes. */
#include "child.h"

#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/err.h"
#include "proc/process.h"

#define ID64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID64_B "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define ID32 "0123456789abcdef0123456789abcdef"

TEST(test_container_ids)
{
	static const struct {
		const char *cgroup, *id;
	} cases[] = {
		{ "0::/\n", "" },
		{ "", "" },
		{ "0::/user.slice/user-1000.slice/session-2.scope\n", "" },
		{ "0::/system.slice/docker-" ID64 ".scope\n", ID64 },
		{ "0::/docker/" ID64 "\n", ID64 },
		{ "0::/docker/" ID64 "/docker/" ID64_B "\n", ID64_B }, /* the inner one */
		{ "0::/docker/" ID64 "/init.scope\n", ID64 },
		{ "12:cpuset:/docker/" ID64 "\n11:memory:/docker/" ID64 "\n1:name=systemd:/x\n",
		  ID64 },
		{ "12:cpuset:/\n11:memory:/kubepods/burstable/pod5b2c-1/" ID64 "\n", ID64 },
		{ "0::/kubepods.slice/kubepods-pod12_34.slice/cri-containerd-" ID64 ".scope",
		  ID64 },
		{ "0::/machine.slice/libpod-" ID64 ".scope/container\n", ID64 },
		{ "0::/machine.slice/libpod-conmon-" ID64 ".scope\n", "" },
		{ "0::/ecs/" ID32 "/" ID32 "-1234567890\n", ID32 "-1234567890" },
		{ "0::/lxc.payload.web1/system.slice/cron.service\n", "web1" },
		{ "4:memory:/lxc/web1\n", "web1" },
		{ "0::/lxc.payload.w\033[2Jb\n", "w?[2Jb" },
		{ "0::/machine.slice/machine-web1.scope\n", "web1" },
		{ "0::/a/" ID64 "0\n", "" }, /* 65 digits */
		{ "no colons at all " ID64 "\n", "" },
	};
	char id[CONTAINER_ID_BYTES];

	each_case(c, cases) {
		container_id_from_cgroup(c->cgroup, id);
		if (strcmp(id, c->id))
			fail_msg("%s: \"%s\", not \"%s\"", c->cgroup, id, c->id);
	}
}

/* Lines as the kernel writes them: a fixed part, the path on the file system, where it is mounted. */
#define MOUNT(root, point) "812 790 8:1 " root " " point " rw,relatime - ext4 /dev/sda1 rw\n"
#define OWN_ROOT "790 600 0:52 / / rw,relatime master:1 - overlay overlay rw,lowerdir=/x\n"

TEST(test_container_ids_of_mounts)
{
	static const struct {
		const char *mountinfo, *id;
	} cases[] = {
		{ "", "" },
		{ "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n", "" },
		/* docker */
		{ OWN_ROOT MOUNT("/var/lib/docker/containers/" ID64 "/resolv.conf",
				 "/etc/resolv.conf"),
		  ID64 },
		{ OWN_ROOT MOUNT("/docker/containers/" ID64 "/hostname", "/etc/hostname"), ID64 },
		/* podman, cri-o */
		{ OWN_ROOT MOUNT("/containers/overlay-containers/" ID64 "/userdata/hosts",
				 "/etc/hosts"),
		  ID64 },
		{ OWN_ROOT MOUNT("/overlay-containers/" ID64 "/userdata/.containerenv",
				 "/run/.containerenv"),
		  ID64 },
		/* containerd */
		{ OWN_ROOT MOUNT("/var/lib/containerd/io.containerd.grpc.v1.cri/sandboxes/" ID64
				 "/hostname",
				 "/etc/hostname"),
		  ID64 },
		/* a volume of another container is no sign */
		{ MOUNT("/var/lib/docker/containers/" ID64 "/x", "/data"), "" },
		{ MOUNT("/etc/hostname", "/etc/hostname"), "" },
		/* systemd-nspawn, lxc */
		{ MOUNT("/var/lib/machines/web1", "/"), "web1" },
		{ MOUNT("/var/lib/lxc/web1/rootfs", "/"), "web1" },
		{ MOUNT("/var/lib/lxc/web1/rootfs", "/mnt"), "" },
		{ MOUNT("/var/lib/machines/web1/sub", "/"), "" },
		{ MOUNT("/var/lib/machines/", "/"), "" },
		{ "812 790 8:1 /docker/containers/" ID64 "/hostname /etc/hostname", "" },
		{ "812 790", "" },
	};
	char id[CONTAINER_ID_BYTES];

	each_case(c, cases) {
		container_id_from_mountinfo(c->mountinfo, id);
		if (strcmp(id, c->id))
			fail_msg("%s: \"%s\", not \"%s\"", c->mountinfo, id, c->id);
	}
}

TEST(test_container_given)
{
	struct err why;

	assert_true(container_id_matches(ID64, ID64));
	assert_true(container_id_matches(ID64, "0123456789ab"));
	assert_true(container_id_matches(ID64, "containerd://" ID64));
	assert_true(container_id_matches(ID64, "docker://0123"));
	assert_false(container_id_matches(ID64, "123456789ab"));
	assert_false(container_id_matches("0123", ID64));
	assert_false(container_id_matches("", "0"));
	assert_false(container_id_matches(ID64, ""));
	assert_false(container_id_matches(ID64, "docker://"));
	assert_int_equal(container_check_given("web1", &why), 0);
	assert_int_equal(container_check_given("docker://" ID64, &why), 0);
	assert_int_equal(container_check_given("", &why), -EINVAL);
	assert_int_equal(container_check_given("docker://", &why), -EINVAL);
	assert_int_equal(container_check_given("/docker/x", &why), -EINVAL);
	assert_int_equal(container_check_given(ID64 "0", &why), -EINVAL);
	assert_says(why.text, "the id or its beginning");
}

TEST(test_self)
{
	struct process_info info;
	char exe[4096];
	struct err why;
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	assert_true(n > 0);
	exe[n] = '\0';
	prctl(PR_SET_NAME, "odd) R (name");
	assert_int_equal(process_info_read(NULL, getpid(), &info), 0);
	assert_int_equal(info.pid, getpid());
	assert_int_equal(info.tgid, getpid());
	assert_int_equal(info.live_tid, getpid());
	assert_string_equal(info.comm, "odd) R (name");
	assert_string_equal(info.exe, exe);
	assert_int_equal(info.state, 'R');
	assert_int_equal(info.uid, geteuid());
	assert_false(info.is_kernel_thread || info.is_zombie || info.is_main_thread_gone);
	assert_false(info.is_32bit);
	assert_int_equal(info.thread_cnt, 1);
	assert_true(info.rss_bytes > 100000);
	assert_true(info.start_time_ticks > 0);
	assert_int_equal(process_read_pss(&info), 0);
	assert_true(info.pss_bytes > 0 && info.pss_bytes <= info.rss_bytes * 2);
	assert_int_equal(process_check(&info, &why), 0);
}

/* The name counts only while there is a link of that name to the same file. */
TEST(test_called)
{
	static const char name[] = "heaptap-called";
	char was[16], exe[PATH_MAX], link[PATH_MAX + 32], *slash;
	struct process_info info;
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	assert_true(n > 0);
	exe[n] = '\0';
	slash = strrchr(exe, '/');
	snprintf(link, sizeof(link), "%.*s/%s", (int)(slash - exe), exe, name);
	prctl(PR_GET_NAME, was);
	assert_int_equal(prctl(PR_SET_NAME, name), 0);
	unlink(link);
	assert_int_equal(process_info_read(NULL, getpid(), &info), 0);
	assert_string_equal(info.called, "");
	assert_int_equal(symlink(slash + 1, link), 0);
	assert_int_equal(process_info_read(NULL, getpid(), &info), 0);
	unlink(link);
	assert_string_equal(info.called, name);
	assert_string_equal(info.exe, exe);
	assert_int_equal(symlink("/proc/self/exe", link), 0); /* the reader's own, or nobody's */
	assert_int_equal(process_info_read(NULL, getpid(), &info), 0);
	unlink(link);
	assert_string_equal(info.called, "");
	assert_int_equal(symlink("/bin/sh", link), 0); /* another file */
	assert_int_equal(process_info_read(NULL, getpid(), &info), 0);
	unlink(link);
	assert_string_equal(info.called, "");
	prctl(PR_SET_NAME, was);
}

TEST(test_no_such_process)
{
	struct process_info info;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	assert_int_equal(process_info_read(NULL, pid, &info), -ESRCH);
	assert_int_equal(process_info_read(NULL, 0, &info), -ESRCH);
	assert_int_equal(process_info_read(NULL, -1, &info), -ESRCH);
}

TEST(test_zombie)
{
	struct process_info info;
	struct err why;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	waitid(P_PID, (id_t)pid, NULL, WEXITED | WNOWAIT);
	assert_int_equal(process_info_read(NULL, pid, &info), 0);
	assert_true(info.is_zombie);
	assert_false(info.is_main_thread_gone);
	assert_int_equal(process_check(&info, &why), -ESRCH);
	assert_says(why.text, "zombie");
	waitpid(pid, NULL, 0);
}

TEST(test_kernel_thread)
{
	struct process_info info;
	struct err why;

	if (process_info_read(NULL, 2, &info) || strcmp(info.comm, "kthreadd")) {
		skip(); /* in a pid namespace there are none */
	}
	assert_true(info.is_kernel_thread);
	assert_int_equal(process_check(&info, &why), -EINVAL);
	assert_says(why.text, "kernel thread");
}

/* A child that runs fn, says so, and sleeps until it is killed. */
static pid_t start_child(void (*fn)(int ready_fd))
{
	int ready[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ready[0]);
		fn(ready[1]);
		if (write(ready[1], "r", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void *outlive_main(void *arg)
{
	struct process_info info;
	int ready_fd = *(int *)arg;

	/* it says "ready" only when the main thread has ended */
	do {
		usleep(1000);
	} while (process_info_read(NULL, getpid(), &info) || info.state != 'Z');
	if (write(ready_fd, "r", 1) == 1)
		pause();
	return NULL;
}

static void lose_main_thread(int ready_fd)
{
	static int fd;
	pthread_t thread;

	fd = ready_fd;
	if (!pthread_create(&thread, NULL, outlive_main, &fd))
		pthread_exit(NULL);
}

TEST(test_main_thread_gone)
{
	pid_t pid = start_child(lose_main_thread);
	const struct proc_map *m = NULL;
	struct process_info info, image;
	struct proc_maps maps;
	struct err why;
	int fd = -1;

	assert_int_equal(process_info_read(NULL, pid, &info), 0);
	assert_true(info.is_main_thread_gone);
	assert_false(info.is_zombie);
	assert_int_not_equal(info.live_tid, pid);
	assert_true(strlen(info.exe) > 0);
	assert_true(info.rss_bytes > 100000);
	assert_int_equal(process_image_read(NULL, pid, &image), 0);
	assert_int_equal(image.live_tid, info.live_tid);
	assert_string_equal(image.exe, info.exe);
	assert_true(image.rss_bytes > 100000);
	assert_false(process_has_ended(NULL, pid));
	assert_int_equal(process_check(&info, &why), 0);
	assert_int_equal(proc_maps_read(NULL, pid, 0, &maps), -ESRCH);
	assert_int_equal(proc_maps_read(NULL, pid, info.live_tid, &maps), 0);
	m = proc_maps_find(&maps, (uint64_t)(uintptr_t)test_main_thread_gone);
	if (m)
		fd = process_open_map(NULL, pid, info.live_tid, m, NULL);
	proc_maps_release(&maps);
	end_child(pid);
	assert_non_null(m);
	assert_true(fd >= 0);
	close(fd);
}

static pid_t other_tid;

static void *second_thread(void *arg)
{
	other_tid = (pid_t)syscall(SYS_gettid);
	pthread_barrier_wait(arg);
	pthread_barrier_wait(arg);
	return NULL;
}

TEST(test_thread_id)
{
	struct process_info info;
	pthread_barrier_t barrier;
	pthread_t thread;
	char want[64];
	struct err why;

	pthread_barrier_init(&barrier, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, second_thread, &barrier), 0);
	pthread_barrier_wait(&barrier);
	assert_int_equal(process_info_read(NULL, other_tid, &info), 0);
	assert_int_equal(info.tgid, getpid());
	assert_int_equal(info.thread_cnt, 2);
	assert_int_equal(process_check(&info, &why), -EINVAL);
	snprintf(want, sizeof(want), "use -p %d", getpid());
	assert_says(why.text, want);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
}

static void limit_memory(int ready_fd)
{
	struct rlimit limit = { .rlim_cur = 1ULL << 45, .rlim_max = 1ULL << 45 };

	setrlimit(RLIMIT_AS, &limit);
}

TEST(test_address_limit)
{
	pid_t pid = start_child(limit_memory);
	struct process_info info;

	assert_int_equal(process_info_read(NULL, pid, &info), 0);
	end_child(pid);
	assert_int_equal(info.address_limit_bytes, 1ULL << 45);
	assert_int_equal(process_info_read(NULL, getpid(), &info), 0);
	assert_int_equal(info.address_limit_bytes, 0);
}

static void *strict_thread(void *arg)
{
	int ready_fd = *(int *)arg;

	prctl(PR_SET_SECCOMP, 1 /* SECCOMP_MODE_STRICT */);
	if (syscall(SYS_write, ready_fd, "r", 1) == 1)
		for (;;)
			;
	return NULL;
}

/* Only one of its threads, which is not the main one. */
static void restrict_one_thread(int ready_fd)
{
	static int fd;
	pthread_t thread;

	fd = ready_fd;
	pthread_create(&thread, NULL, strict_thread, &fd);
	for (;;)
		pause();
}

TEST(test_seccomp)
{
	pid_t pid = start_child(restrict_one_thread);
	struct process_info info;

	assert_int_equal(process_info_read(NULL, pid, &info), 0);
	end_child(pid);
	assert_int_equal(info.seccomp, 1);
	assert_int_equal(info.thread_cnt, 2);
}

/* Another user, asked from a process that may not read others. */
TEST(test_not_ours)
{
	struct process_info info;
	int status, fds[2];
	struct err why = { 0 };
	pid_t pid;

	if (geteuid())
		skip();
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		int err;

		if (setgroups(0, NULL) || setgid(65534) || setuid(65534) ||
		    process_info_read(NULL, getppid(), &info))
			_exit(1);
		err = process_check(&info, &why);
		if (write(fds[1], why.text, PIPE_BUF) != PIPE_BUF)
			_exit(2);
		_exit(err == -EACCES && info.uid == 0 ? 0 : 3);
	}
	close(fds[1]); /* a child that fails must not leave us waiting */
	if (read(fds[0], why.text, PIPE_BUF) != PIPE_BUF)
		why.text[0] = '\0';
	close(fds[0]);
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	assert_says(why.text, "of uid 0 as uid 65534");
	assert_says(why.text, "as root");
}

TEST(test_pid_namespace)
{
	struct process_info info;
	pid_t helper, pid = 0;
	int fds[2];

	assert_int_equal(process_info_read(NULL, getpid(), &info), 0);
	if (geteuid() || info.in_pid_namespace)
		skip();
	assert_int_equal(pipe(fds), 0);
	helper = fork();
	if (helper == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWPID))
			_exit(1);
		pid = fork();
		if (pid == 0)
			pause();
		if (write(fds[1], &pid, sizeof(pid)) != sizeof(pid))
			_exit(1);
		pause();
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &pid, sizeof(pid)), sizeof(pid));
	close(fds[0]);
	assert_int_equal(process_info_read(NULL, pid, &info), 0);
	kill(pid, SIGKILL);
	end_child(helper);
	assert_true(info.in_pid_namespace);
}

/* A 32-bit program that waits: made by hand, so that no 32-bit compiler is needed. */
TEST(test_32bit)
{
	static const unsigned char image[] = {
		0x7f, 'E',  'L',  'F',	1,    1,    1, 0, 0, 0,	   0,	 0,
		0,    0,    0,	  0, /* ELFCLASS32 */
		2,    0,    3,	  0,	1,    0,    0, 0, /* ET_EXEC, EM_386 */
		0x54, 0x80, 0x04, 0x08, 0x34, 0,    0, 0, 0, 0,	   0,	 0,
		0,    0,    0,	  0, /* entry */
		0x34, 0,    0x20, 0,	1,    0,    0, 0, 0, 0,	   0,	 0, /* one program header */
		1,    0,    0,	  0,	0,    0,    0, 0, 0, 0x80, 0x04, 0x08,
		0,    0x80, 0x04, 0x08, /* PT_LOAD */
		0x5b, 0,    0,	  0,	0x5b, 0,    0, 0, 5, 0,	   0,	 0,
		0,    0x10, 0,	  0,	0xb8, 0x1d, 0, 0, 0, 0xcd, 0x80, /* mov $29 (pause), %eax; int $0x80 */
	};
	char path[] = "/tmp/heaptap-test-32bit-XXXXXX";
	struct err why;
	struct process_info info = { 0 };
	int fd = mkstemp(path), i, err;
	pid_t pid;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, image, sizeof(image)), sizeof(image));
	assert_int_equal(fchmod(fd, 0755), 0);
	close(fd);
	pid = fork();
	if (pid == 0) {
		char *const argv[] = { path, NULL };

		execv(path, argv);
		_exit(99);
	}
	for (i = 0; i < 500; i++) { /* until it has become that program, or failed to */
		assert_int_equal(process_info_read(NULL, pid, &info), 0);
		if (info.is_zombie || !strcmp(info.exe, path))
			break;
		usleep(10000);
	}
	err = process_check(&info, &why);
	unlink(path);
	end_child(pid);
	if (info.is_zombie)
		skip(); /* a kernel without 32-bit support */
	assert_true(info.is_32bit);
	assert_int_equal(err, -ENOTSUP);
	assert_says(why.text, "32-bit");
}

TEST(test_cmdline)
{
	char text[4096], small[4];
	pid_t pid = fork();
	size_t bytes;

	assert_true(pid >= 0);
	if (!pid) {
		execlp("sleep", "a name", "1000", NULL);
		_exit(1);
	}
	for (int i = 0; i < 500; i++) {
		assert_int_equal(process_read_cmdline(NULL, pid, text, sizeof(text), &bytes), 0);
		if (!strcmp(text, "a name"))
			break;
		usleep(10000);
	}
	assert_int_equal(bytes, sizeof("a name\0001000"));
	assert_memory_equal(text, "a name\0001000", bytes);
	assert_int_equal(process_read_cmdline(NULL, pid, small, sizeof(small), &bytes), 0);
	assert_int_equal(bytes, 3);
	assert_string_equal(small, "a n");
	kill(pid, SIGKILL);
	while (process_read_cmdline(NULL, pid, text, sizeof(text), &bytes) == 0 &&
	       strcmp(text, "sleep"))
		usleep(10000); /* a zombie has none */
	end_child(pid);
	assert_int_equal(process_read_cmdline(NULL, pid, text, sizeof(text), &bytes), -ESRCH);
}

RUN_TESTS()
