/* SPDX-License-Identifier: MIT */
/* worker.c - see worker.h. */
#include "record/worker.h"

#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/fd.h"

#define WORK_NS (120 * NS_PER_S) /* then the child is ended */
#define CHILD_NICE 10
#define KILL_GRACE_NS (NS_PER_S / 2) /* between the kill and the end */
#define KILL_WAIT_MS 100

/* States of a file before there is a result. */
#define NOT_BEGUN 1
#define BEGUN 2

struct worker_news {
	_Atomic uint64_t begun_ns; /* of the file being made */
	_Atomic int err[WORKER_FILES_CAP];
};

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
		log_warn("%s: cannot kill process %d: left behind", command, pid);
}

static int prepare_news(struct worker *w, size_t file_cnt)
{
	void *shared;

	if (!w->news) {
		shared = mmap(NULL, sizeof(*w->news), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (shared == MAP_FAILED)
			return -ENOMEM;
		w->news = shared;
	}
	w->news->begun_ns = now_ns();
	for (size_t i = 0; i < file_cnt; i++)
		w->news->err[i] = NOT_BEGUN;
	return 0;
}

/* Runs in the child. */
static int make_files(struct worker_news *news, const struct worker_options *opts, size_t file_cnt,
		      worker_fn make, void *ctx)
{
	int failed_cnt = 0, err = 0;

	for (size_t i = 0; i < file_cnt && !(opts->file_ns && err == -ETIME); i++) {
		news->begun_ns = now_ns();
		news->err[i] = BEGUN;
		err = make(ctx, i);
		news->err[i] = err;
		failed_cnt += err != 0;
	}
	return failed_cnt > 0;
}

int worker_start(struct worker *w, const struct worker_options *opts, size_t file_cnt,
		 worker_fn make, void *ctx)
{
	int err = prepare_news(w, file_cnt);
	pid_t pid;

	if (err)
		return err;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close_copies();
		be_chosen_first();
		if (!opts->is_urgent)
			setpriority(PRIO_PROCESS, 0, CHILD_NICE);
		_exit(make_files(w->news, opts, file_cnt, make, ctx));
	}
	if (pid < 0)
		return -errno;
	w->opts = *opts;
	if (!opts->command)
		w->opts.command = "serve";
	w->fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (w->fd < 0) {
		err = -errno;
		kill_and_reap(pid, w->opts.command);
		return err;
	}
	fcntl(w->fd, F_SETFD, FD_CLOEXEC);
	w->pid = pid;
	w->was_stopped = false;
	w->began_ns = now_ns();
	return 0;
}

uint64_t worker_reader_since_ns(const struct worker *w)
{
	return w->pid ? w->opts.moment_ns : UINT64_MAX;
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

bool worker_check(struct worker *w)
{
	if (w->pid && w->opts.file_ns && now_ns() > w->news->begun_ns + w->opts.file_ns) {
		w->was_stopped = true;
		end(w);
	}
	if (w->pid && now_ns() > w->began_ns + WORK_NS)
		end(w);
	return is_hung(w) && free_hung(w);
}

static void forget(struct worker *w)
{
	close(w->fd);
	w->pid = 0;
	w->fd = 0;
	w->took_ns = now_ns() - w->began_ns;
	w->killed_ns = 0;
}

/* What it waits for in the kernel may let it go one day. */
static bool leave_alone(struct worker *w)
{
	pid_t *place = is_hung(w) ? free_hung(w) : NULL;

	if (!place)
		return false;
	log_warn("%s: %s: cannot kill process %d, because the file or memory that it reads does "
		 "not respond: left behind",
		 w->opts.command, w->opts.what, w->pid);
	*place = w->pid;
	forget(w);
	return true;
}

bool worker_reap(struct worker *w)
{
	struct rusage usage = { 0 };
	int status = 0;
	pid_t pid = w->pid ? wait4(w->pid, &status, WNOHANG, &usage) : 0;

	w->cpu_ns = 0;
	if (!pid)
		return leave_alone(w);
	if (pid == w->pid && !WIFEXITED(status) && !w->was_stopped)
		log_warn("%s: %s was ended by signal %d", w->opts.command, w->opts.what,
			 WTERMSIG(status));
	forget(w);
	w->cpu_ns = timeval_ns(&usage.ru_utime) + timeval_ns(&usage.ru_stime);
	return true;
}

void worker_release(struct worker *w)
{
	if (w->pid) {
		kill_and_reap(w->pid, w->opts.command);
		forget(w);
	}
	if (w->news)
		munmap(w->news, sizeof(*w->news));
	w->news = NULL;
}

enum worker_result worker_result(const struct worker *w, size_t i, int *ret_err)
{
	int err = w->news->err[i];

	*ret_err = err <= 0 ? err : -EINTR;
	/* On a busy machine a child may be stopped before it reaches its first file. */
	if (w->opts.file_ns &&
	    (err == -ETIME || (w->was_stopped && (err == BEGUN || (err == NOT_BEGUN && !i)))))
		return WORKER_TOO_SLOW;
	/* A child that ends by itself before it does anything would do so again. */
	return err == NOT_BEGUN && (w->was_stopped || w->news->err[0] != NOT_BEGUN) ?
		       WORKER_NOT_BEGUN :
		       WORKER_OVER;
}
