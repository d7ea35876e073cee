/* SPDX-License-Identifier: MIT */
/* worker.c - see worker.h. */
#include "result/worker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/write_all.h"

#define WORK_NS (120 * NS_PER_S) /* then the child is ended */
#define CHILD_NICE 10
#define KILL_GRACE_NS (NS_PER_S / 2) /* between the kill and the end */
#define KILL_WAIT_MS 100

/* When memory runs out, let the kernel choose the child, whose work can be done again, not the daemon. Raising the
 * score needs no privilege; if it fails, the kernel chooses. */
static void be_chosen_first(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	write_all(fd, "1000", 4);
	close(fd);
}

/* Profiles are made from and written to files, those in memory too, and BPF maps. */
static bool is_of_use(int fd)
{
	char path[64], name[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof(name) - 1);
	name[n > 0 ? n : 0] = '\0';
	return name[0] == '/' || !strcmp(name, "anon_inode:bpf-map");
}

/*
 * Copies keep alive what the parent lets go meanwhile: probes, connections, and whatever an epoll set watches.
 * Chosen by kind, because there is no list: some belong to libraries. The first three, which may be sockets, take
 * messages.
 */
static void close_copies(void)
{
	struct dirent *entry;
	DIR *dir = opendir("/proc/self/fd");

	while (dir && (entry = readdir(dir))) {
		int fd = (int)strtol(entry->d_name, NULL, 10);

		if (fd > STDERR_FILENO && !is_of_use(fd))
			close(fd);
	}
	if (dir)
		closedir(dir);
}

/* A child that waits in the kernel for what it reads ends later, or never; whoever reaps us reaps it. */
static void kill_and_reap(pid_t pid, const char *command)
{
	int ms = 0;

	kill(pid, SIGKILL);
	for (; ms < KILL_WAIT_MS && !waitpid(pid, NULL, WNOHANG); ms++)
		usleep(1000);
	if (ms == KILL_WAIT_MS)
		log_warn("%s: process %d does not end when it is killed: it is left alone", command,
			 pid);
}

int worker_start(struct worker *w, const struct worker_options *opts, int (*fn)(void *ctx),
		 void *ctx)
{
	pid_t pid = fork();
	int err;

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close_copies();
		be_chosen_first();
		if (!opts->is_urgent)
			setpriority(PRIO_PROCESS, 0, CHILD_NICE);
		_exit(fn(ctx));
	}
	if (pid < 0)
		return -errno;
	w->command = opts->command ? opts->command : "serve";
	w->fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (w->fd < 0) {
		err = -errno;
		kill_and_reap(pid, w->command);
		return err;
	}
	fcntl(w->fd, F_SETFD, FD_CLOEXEC);
	w->pid = pid;
	w->was_stopped = false;
	w->began_ns = now_ns();
	w->moment_ns = opts->moment_ns;
	return 0;
}

uint64_t worker_reader_since_ns(const struct worker *w)
{
	return w->pid ? w->moment_ns : UINT64_MAX;
}

static pid_t *free_hung(struct worker *w)
{
	for (size_t i = 0; i < WORKER_HUNG_CAP; i++)
		if (w->hung[i] && waitpid(w->hung[i], NULL, WNOHANG))
			w->hung[i] = 0;
	for (size_t i = 0; i < WORKER_HUNG_CAP; i++)
		if (!w->hung[i])
			return &w->hung[i];
	return NULL;
}

static bool is_hung(const struct worker *w)
{
	return w->pid && w->killed_ns && now_ns() > w->killed_ns + KILL_GRACE_NS;
}

static void end(struct worker *w)
{
	if (!w->pid || w->killed_ns)
		return;
	kill(w->pid, SIGKILL);
	w->killed_ns = now_ns();
}

void worker_stop(struct worker *w)
{
	w->was_stopped = true;
	end(w);
}

bool worker_check(struct worker *w)
{
	if (w->pid && now_ns() > w->began_ns + WORK_NS)
		end(w);
	return is_hung(w) && free_hung(w);
}

static void forget(struct worker *w)
{
	close(w->fd);
	w->pid = 0;
	w->fd = 0;
	w->began_ns = w->moment_ns = w->killed_ns = 0;
}

/* What it waits for in the kernel may let it go one day. */
static bool leave_alone(struct worker *w, const char *what)
{
	pid_t *place = is_hung(w) ? free_hung(w) : NULL;

	if (!place)
		return false;
	log_warn(
		"%s: %s: process %d does not end when it is killed, because what it reads does not "
		"answer. It is left alone",
		w->command, what, w->pid);
	*place = w->pid;
	forget(w);
	return true;
}

static uint64_t timeval_ns(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * NS_PER_S + (uint64_t)t->tv_usec * 1000;
}

bool worker_reap(struct worker *w, const char *what, uint64_t *ret_cpu_ns)
{
	struct rusage usage = { 0 };
	int status = 0;
	pid_t pid = w->pid ? wait4(w->pid, &status, WNOHANG, &usage) : 0;

	*ret_cpu_ns = 0;
	if (!pid)
		return leave_alone(w, what);
	if (pid == w->pid && !WIFEXITED(status) && !w->was_stopped)
		log_warn("%s: %s was ended by signal %d", w->command, what, WTERMSIG(status));
	forget(w);
	*ret_cpu_ns = timeval_ns(&usage.ru_utime) + timeval_ns(&usage.ru_stime);
	return true;
}

void worker_kill(struct worker *w)
{
	if (!w->pid)
		return;
	kill_and_reap(w->pid, w->command);
	forget(w);
}
