/* SPDX-License-Identifier: MIT */
/*
 * out_file_browse.c - a page in the browser of the user at the screen: see out_file.h.
 *
 * heaptap mostly runs as root, by sudo. A browser that runs as root puts every page in it above the machine, so it is
 * started as the user who called sudo or not at all. sudo does not pass on where the user's session is; what is missing
 * is taken from where systemd-logind has it.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "record/out_file.h"

#define OPENER "xdg-open"
/* Where no browser runs yet, the opener is the browser and does not end. */
#define OPENER_NS (2 * NS_PER_S)
/* exit status of the child, as a shell's */
#define NOT_READABLE 126
#define NO_OPENER 127

struct desktop_user {
	uid_t uid;
	gid_t gid;
	bool is_other; /* not who runs this */
	char session[64]; /* XDG_RUNTIME_DIR */
};

/* 0: sudo has not set it, or it is root's. */
static unsigned sudo_id(const char *variable)
{
	const char *text = getenv(variable);
	char *end;
	unsigned long id = text && *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0;

	return id && !*end && id < UINT_MAX ? (unsigned)id : 0;
}

/* false: there is only root */
static bool find_user(struct desktop_user *ret)
{
	*ret = (struct desktop_user){ .uid = geteuid(), .gid = getegid() };
	if (!ret->uid) {
		ret->is_other = true;
		ret->uid = sudo_id("SUDO_UID");
		ret->gid = sudo_id("SUDO_GID");
	}
	snprintf(ret->session, sizeof(ret->session), "/run/user/%u", ret->uid);
	return ret->uid && ret->gid;
}

static bool is_set(const char *variable)
{
	const char *text = getenv(variable);

	return text && *text;
}

static bool has_wayland(const struct desktop_user *user)
{
	char path[sizeof(user->session) + 16];
	struct stat st;

	snprintf(path, sizeof(path), "%s/wayland-0", user->session);
	return user->is_other && !stat(path, &st) && S_ISSOCK(st.st_mode);
}

void out_file_give(struct out_file *of)
{
	struct desktop_user user;
	struct stat st;

	if (find_user(&user) && user.is_other && !fstat(out_file_fd(of), &st) &&
	    S_ISREG(st.st_mode))
		(void)!fchown(out_file_fd(of), user.uid, user.gid); /* else he cannot read it */
}

static int become(const struct desktop_user *user)
{
	const struct passwd *pw = getpwuid(user->uid);

	if (setgroups(1, &user->gid) || setresgid(user->gid, user->gid, user->gid) ||
	    setresuid(user->uid, user->uid, user->uid))
		return -errno;
	if (pw) {
		setenv("HOME", pw->pw_dir, 1);
		setenv("USER", pw->pw_name, 1);
		setenv("LOGNAME", pw->pw_name, 1);
	}
	if (!access(user->session, X_OK))
		setenv("XDG_RUNTIME_DIR", user->session, 1);
	if (has_wayland(user))
		setenv("WAYLAND_DISPLAY", "wayland-0", 0);
	return 0;
}

/* In the child; never returns. */
static void open_it(const struct desktop_user *user, const char *path)
{
	int null = open("/dev/null", O_RDWR);
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	setsid(); /* Ctrl-C here is not meant for the browser */
	for (int fd = 0; fd <= 2; fd++)
		dup2(null, fd);
	syscall(__NR_close_range, 3, ~0U, 0);
	if (user->is_other && become(user))
		_exit(NO_OPENER);
	if (!access(path, R_OK)) /* as that user */
		execlp(OPENER, OPENER, path, (char *)NULL);
	_exit(errno == EACCES ? NOT_READABLE : NO_OPENER);
}

/* The exit status; 0: it still runs. */
static int wait_for(pid_t pid)
{
	const struct timespec pause = { .tv_nsec = 20 * NS_PER_MS };
	const uint64_t end_ns = now_ns() + OPENER_NS;
	int status = 0;

	while (!waitpid(pid, &status, WNOHANG) && now_ns() < end_ns)
		nanosleep(&pause, NULL);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int out_file_browse(const struct out_file *of, struct err *why)
{
	struct desktop_user user;
	char path[PATH_MAX];
	struct stat st;
	int status;
	pid_t pid;

	if (!find_user(&user))
		return err_set(why, -EPERM,
			       "heaptap starts no browser as root, and sudo was not used");
	if (!is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY") && !has_wayland(&user))
		return err_set(why, -ENXIO, "there is no display");
	if (!realpath(out_file_path(of), path) || stat(path, &st))
		return err_set_os(why, -errno, "cannot find it");
	if (!S_ISREG(st.st_mode))
		return err_set(why, -EINVAL, "it is not a regular file");
	signal(SIGCHLD,
	       SIG_DFL); /* ignored, as who started this may have left it, no status is kept */
	pid = fork();
	if (pid < 0)
		return err_set_os(why, -errno, "cannot start " OPENER);
	if (!pid)
		open_it(&user, path);
	status = wait_for(pid);
	if (status == NOT_READABLE)
		return err_set(why, -EACCES, "user %u may not read it", user.uid);
	if (status == NO_OPENER)
		return err_set(why, -ENOENT, OPENER " cannot be run: is it installed?");
	if (status)
		return err_set(why, -EIO, OPENER " ended with status %d", status);
	return 0;
}
