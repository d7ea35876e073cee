/* SPDX-License-Identifier: MIT */
/*
 * seccomp_probe.c - see features.h.
 *
 * The child allows itself exit_group and nothing else, calls a function with a return probe on it
 * and exits: it either does, or is killed by SIGSYS.
 */

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/features.h"

static int allow_only_exit(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_exit_group, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog prog = { sizeof(filter) / sizeof(*filter), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) ? -errno : 0;
}

/* Wait for the parent's byte, then run the trial. */
static void run_child(int fd)
{
	char byte;

	if (read(fd, &byte, 1) != 1 || allow_only_exit())
		syscall(__NR_exit_group, 1);
	probe_dummy_call();
	syscall(__NR_exit_group, 0);
}

int seccomp_probe_returns(bool *ret_is_safe)
{
	struct attach_links *links = NULL;
	int fds[2], status = 0, err;
	pid_t pid;

	if (pipe(fds))
		return -errno;
	pid = fork();
	if (!pid) {
		close(fds[1]);
		run_child(fds[0]);
	}
	close(fds[0]);
	err = pid < 0 ? -errno : probe_dummy_attach_return(pid, &links);
	if (!err && write(fds[1], "", 1) != 1)
		err = -errno;
	close(fds[1]); /* without the byte the child gives up */
	if (pid > 0 && waitpid(pid, &status, 0) != pid)
		err = -errno;
	attach_links_free_later(links); /* which may take the kernel seconds */
	if (err)
		return err;
	if (WIFEXITED(status) && WEXITSTATUS(status))
		return -ENOTSUP; /* no seccomp on this kernel */
	*ret_is_safe = WIFEXITED(status);
	return 0;
}
