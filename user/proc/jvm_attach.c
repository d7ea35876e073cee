/* SPDX-License-Identifier: MIT */
/*
 * jvm_attach.c - see runtime_kind.h.
 *
 * The JVM trusts only a file and a peer of its own user (or root, where that is the same root: in a user
 * namespace it is not). So a child does everything that the JVM sees, with the ids of its user, in its /tmp,
 * which the child has entered before as root; paths are relative to there. The names contain the pid that the
 * JVM has in its own namespace. The signal goes to a descriptor of the process that was checked, not to its
 * pid.
 */
#include "proc/runtime_kind.h"

#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "proc/proc_text.h"
#include "proc/process.h"

#define WAIT_S 10
#define POLL_MS 20
#define REPLY_BYTES 512

/* Version, command, and always three arguments. */
static const char request[] = "1\0jcmd\0Compiler.perfmap\0\0";

struct attach {
	const struct process_info *info;
	char socket[32], trigger[32];
	int pidfd;
	uint64_t end_ns;
	bool is_refused; /* it was started with attaching disabled */
	bool has_trigger;
};

/* The child's result: how it ended, and a sentence. Sent by one write to a pipe, which is atomic up to
 * PIPE_BUF. */
struct outcome {
	int err;
	char why[256];
};

static int fail(struct outcome *o, int err, const char *why)
{
	o->err = err;
	snprintf(o->why, sizeof(o->why), "%s", why);
	return err;
}

bool jvm_is_hotspot(struct reader *reader, const struct process_info *info)
{
	const struct proc_map *m;
	struct proc_maps maps;
	bool has_jvm = false, is_other = false;

	if (proc_maps_read(reader, info->tgid, info->live_tid, &maps))
		return false;
	vec_each(&maps.maps, m) {
		const char *slash = strrchr(m->path, '/');

		has_jvm |= slash && m->is_exec && !strcmp(slash, "/libjvm.so");
		is_other |= slash && !strncmp(slash, "/libj9vm", 8);
	}
	proc_maps_release(&maps);
	return has_jvm && !is_other;
}

/* "SigCgt:\t0000000100000000" */
static uint64_t caught_signals(const char *status)
{
	static const char key[] = "\nSigCgt:";
	const char *at = strstr(status, key);

	return at ? strtoull(at + sizeof(key) - 1, NULL, 16) : 0;
}

/* Checked right before the signal. Only an exec could still come in between. */
static bool catches_sigquit(const struct process_info *info)
{
	uint64_t caught, bit = 1ULL << (SIGQUIT - 1);
	char *text;

	if (proc_text_read(info->tgid, "status", &text))
		return false;
	caught = caught_signals(text);
	free(text);
	return (caught & bit) != 0;
}

/* Enter the JVM's /tmp, then take on its user. */
static int enter(const struct process_info *info, struct outcome *o)
{
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/root/tmp", info->live_tid);
	if (chdir(path))
		return fail(o, -errno, "cannot enter its /tmp");
	snprintf(path, sizeof(path), "/proc/%d", info->tgid);
	/* The owner of the process's own folder: its effective user and group. */
	if (stat(path, &st))
		return fail(o, -ESRCH, "it has ended");
	if (st.st_uid != info->uid)
		return fail(o, -EPERM, "its /proc folder belongs to another user");
	if (setgroups(0, NULL) || setresgid(st.st_gid, st.st_gid, st.st_gid) ||
	    setresuid(st.st_uid, st.st_uid, st.st_uid))
		return fail(o, -errno, "cannot switch to its user");
	return 0;
}

static int connect_once(const struct attach *a)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct ucred peer;
	socklen_t len = sizeof(peer);
	struct stat st;
	int fd, err = 0;

	/* Anybody may have put this name there: only a socket of the JVM's own user is used. */
	if (lstat(a->socket, &st))
		return -errno;
	if (!S_ISSOCK(st.st_mode) || st.st_uid != a->info->uid)
		return -EPERM;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", a->socket);
	if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		err = -errno;
	else if (peer.pid != a->info->tgid)
		err = -EPERM;
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

/* The JVM looks for the file first: without it, it would print its threads. */
static int trigger(struct attach *a, struct outcome *o)
{
	int fd;

	if (a->is_refused)
		return fail(o, -EPERM, "it was started with -XX:+DisableAttachMechanism");
	fd = open(a->trigger, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail(o, -errno, "cannot write to its /tmp");
	close(fd);
	a->has_trigger = true;
	if (!catches_sigquit(a->info))
		return fail(o, -EPERM,
			    "it does not catch SIGQUIT (it has just started, or runs with -Xrs), "
			    "which would kill it");
	if (syscall(SYS_pidfd_send_signal, a->pidfd, SIGQUIT, NULL, 0))
		return fail(o, -errno, "cannot send it a signal");
	return 0;
}

static int get_socket(struct attach *a, struct outcome *o)
{
	struct pollfd gone = { .fd = a->pidfd, .events = POLLIN };
	int fd = connect_once(a);

	if (fd == -ENOENT) {
		if (trigger(a, o))
			return o->err;
		while (fd == -ENOENT && now_ns() < a->end_ns && !poll(&gone, 1, POLL_MS))
			fd = connect_once(a);
	}
	if (gone.revents)
		return fail(o, -ESRCH, "it has ended");
	if (fd == -ENOENT)
		return fail(o, -ETIMEDOUT, "it does not answer");
	return fd < 0 ? fail(o, fd, "cannot use its socket") : fd;
}

/* "0\n..." is a success; any other answer has the reason in its next line. */
static int ask(const struct attach *a, int fd, struct outcome *o)
{
	char reply[REPLY_BYTES];
	size_t len = 0;

	if (write_all(fd, request, sizeof(request)))
		return fail(o, -EPIPE, "it does not listen");
	for (;;) {
		struct pollfd ready = { .fd = fd, .events = POLLIN };
		uint64_t now = now_ns();
		ssize_t n;

		if (now >= a->end_ns || poll(&ready, 1, (int)((a->end_ns - now) / NS_PER_MS)) <= 0)
			return fail(o, -ETIMEDOUT, "it does not answer");
		n = read(fd, reply + len, sizeof(reply) - 1 - len);
		if (n <= 0 || (len += (size_t)n) == sizeof(reply) - 1)
			break;
	}
	reply[len] = '\0';
	if (!strncmp(reply, "0\n", 2) && !strstr(reply, "Exception"))
		return 0;
	return fail(o, -EPERM,
		    strstr(reply, "Unknown diagnostic") ? "its version is before 17" :
							  "it refuses");
}

static void run(struct attach *a, struct outcome *o)
{
	int fd = -1;

	/* If this cannot be read, the JVM may have been started so. */
	a->is_refused = runtime_has_option(a->info, "+DisableAttachMechanism") != 0;
	if (!enter(a->info, o))
		fd = get_socket(a, o);
	if (fd >= 0) {
		ask(a, fd, o);
		close(fd);
	}
	if (a->has_trigger)
		unlink(a->trigger);
}

static int in_child(struct attach *a, struct outcome *o)
{
	int pipe_fd[2], err;
	pid_t child;

	if (pipe2(pipe_fd, O_CLOEXEC))
		return -errno;
	child = fork();
	if (!child) {
		signal(SIGPIPE, SIG_IGN);
		/* A program may delay a process that connects or writes to it for ever. */
		signal(SIGALRM, SIG_DFL);
		alarm(WAIT_S + 1);
		run(a, o);
		_exit(write_all(pipe_fd[1], o, sizeof(*o)) != 0);
	}
	err = child < 0 ? -errno : 0;
	close(pipe_fd[1]);
	if (!err && read(pipe_fd[0], o, sizeof(*o)) != sizeof(*o))
		fail(o, -ETIMEDOUT, "it does not answer");
	close(pipe_fd[0]);
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	return err;
}

int jvm_write_perfmap(struct reader *reader, const struct process_info *info, struct err *why)
{
	struct attach a = { .info = info, .end_ns = now_ns() + WAIT_S * NS_PER_S };
	struct process_info now;
	struct outcome o = { 0 };
	int err;

	snprintf(a.socket, sizeof(a.socket), ".java_pid%d", info->ns_pid);
	snprintf(a.trigger, sizeof(a.trigger), ".attach_pid%d", info->ns_pid);
	a.pidfd = (int)syscall(SYS_pidfd_open, info->tgid, 0);
	if (a.pidfd < 0)
		return err_set(why, -errno, "%s", strerror(errno));
	/* The descriptor must be of the process that info is about. */
	if (process_info_read(reader, info->tgid, &now) ||
	    now.start_time_ticks != info->start_time_ticks || !jvm_is_hotspot(reader, info)) {
		err = fail(&o, -ESRCH, "it is no longer a JVM");
	} else {
		err = in_child(&a, &o);
		err = err ? fail(&o, err, strerror(-err)) : o.err;
	}
	close(a.pidfd);
	return err_set(why, err, "%s", o.why);
}
