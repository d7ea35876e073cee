/* SPDX-License-Identifier: MIT */
/*
 * launch.c - a child that waits before execve.
 *
 * Two channels, both close-on-exec: `go`, on which the child waits for one byte, and `failed`, on which it
 * sends the errno of a failed execve; a successful execve closes it. `go` is a socket pair because writing to a
 * pipe whose reader was killed raises SIGPIPE. When we end, the child reads end of file on `go` and exits. That
 * is not enough when another child of ours still holds our end, so the kernel is asked to kill it as well (a
 * parent-death signal, withdrawn just before execve, which would keep it).
 *
 * All signals are blocked across fork so that no handler of ours can run in the child.
 */
#include "proc/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_NOT_RUN 127

/* Runs in the child: only calls that are safe after fork. The C library keeps signals 32 and 33. */
static void reset_signals(void)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	sigset_t none;
	int sig;

	for (sig = 1; sig < NSIG; sig++)
		sigaction(sig, &dfl, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void __attribute__((noreturn))
child_main(const char *path, char *const argv[], int go_fd, int failed_fd, pid_t parent)
{
	ssize_t n;
	char byte;
	int err;

	reset_signals();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_NOT_RUN);
	do {
		n = read(go_fd, &byte, 1);
	} while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(EXIT_NOT_RUN);
	prctl(PR_SET_PDEATHSIG, 0);
	execve(path, argv, environ);
	err = errno;
	do {
		n = write(failed_fd, &err, sizeof(err));
	} while (n < 0 && errno == EINTR);
	_exit(EXIT_NOT_RUN);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static int fork_child(struct launch *l, char *const argv[], int go[2], int failed[2])
{
	pid_t parent = getpid(), pid;
	sigset_t all, old;
	int err;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	pid = fork();
	err = pid < 0 ? -errno : 0;
	if (pid == 0) {
		close(go[1]);
		close(failed[0]);
		child_main(l->path, argv, go[0], failed[1], parent);
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (err)
		return err;
	l->pid = pid;
	l->wait_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	return l->wait_fd < 0 ? -errno : 0;
}

int launch_prepare(char *const argv[], struct launch **ret)
{
	int go[2] = { -1, -1 }, failed[2] = { -1, -1 }, err;
	struct launch *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->go_fd = l->failed_fd = l->wait_fd = -1;
	err = find_program(argv[0], &l->path);
	if (!err)
		err = launch_check(l->path);
	if (err)
		goto out;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, go) || pipe2(failed, O_CLOEXEC)) {
		err = -errno;
		goto out;
	}
	err = fork_child(l, argv, go, failed);
	l->go_fd = go[1];
	l->failed_fd = failed[0];
	go[1] = failed[0] = -1;
	if (err)
		goto out;
	*ret = l;
	l = NULL;
out:
	close_fd(&go[0]);
	close_fd(&go[1]);
	close_fd(&failed[0]);
	close_fd(&failed[1]);
	launch_free(l);
	return err;
}

static int wait_pid(struct launch *l, int flags)
{
	pid_t pid;

	if (l->is_reaped)
		return 0;
	do {
		pid = waitpid(l->pid, &l->status, flags);
	} while (pid < 0 && errno == EINTR);
	if (pid < 0)
		return -errno;
	if (pid == 0)
		return -EAGAIN;
	l->is_reaped = true;
	return 0;
}

int launch_go(struct launch *l)
{
	int exec_err = 0;
	ssize_t n;

	if (l->is_running || l->go_fd < 0)
		return -EINVAL;
	if (send(l->go_fd, "g", 1, MSG_NOSIGNAL) != 1)
		return -ESRCH; /* somebody killed it */
	close_fd(&l->go_fd);
	do {
		n = read(l->failed_fd, &exec_err, sizeof(exec_err));
	} while (n < 0 && errno == EINTR);
	close_fd(&l->failed_fd);
	if (n == 0) {
		l->is_running = true;
		return 0;
	}
	wait_pid(l, 0);
	return n == (ssize_t)sizeof(exec_err) && exec_err > 0 ? -exec_err : -EIO;
}

int launch_reap(struct launch *l, int *ret_status)
{
	int err = wait_pid(l, WNOHANG);

	if (!err)
		*ret_status = l->status;
	return err;
}

void launch_free(struct launch *l)
{
	if (!l)
		return;
	if (l->pid > 0 && !l->is_running && !l->is_reaped) {
		/* it is still ours, waits in front of execve, and is not reaped */
		kill(l->pid, SIGKILL);
		wait_pid(l, 0);
	}
	close_fd(&l->go_fd);
	close_fd(&l->failed_fd);
	close_fd(&l->wait_fd);
	free(l->path);
	free(l);
}
