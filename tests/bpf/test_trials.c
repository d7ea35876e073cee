/* SPDX-License-Identifier: MIT */
/*
 * test_trials.c - trying out the kernel's features leaves nothing behind, also when the process
 * ends before the trials' probes are out.
 */
#include "rig.h"

#include <fcntl.h>

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
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		if (kernel_features_probe(&features) || !kernel_features_suffice(&features))
			_exit(1);
		usleep(delay_us);
		if (is_killed)
			raise(SIGKILL);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(is_killed ? WIFSIGNALED(status) : WIFEXITED(status) && !WEXITSTATUS(status));
}

static void test_end(void **state)
{
	int log_fd;

	(void)state;
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

/* Nobody else's child: who waits for any child must not meet those of the trials. */
static void test_no_child(void **state)
{
	struct kernel_features features;

	(void)state;
	if (geteuid())
		skip();
	assert_int_equal(kernel_features_probe(&features), 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
	assert_int_equal(errno, ECHILD);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_no_child),
	};

	return cmocka_run_group_tests_name("trials", tests, NULL, NULL);
}
